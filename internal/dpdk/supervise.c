//go:build !nodpdk

#include "supervise.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

static struct {
	struct sock_fprog program;
	int audit, calls, error;
	sem_t installed;
} it;

/* A thread of C: a Go thread that waits for an answer may hold what another Go thread needs to give it. */
static void *supervise(void *unused)
{
	struct seccomp_notif asked;
	struct seccomp_notif_resp answer;
	int listener, audit = it.audit, calls = it.calls; /* of this one: another, which the kernel refuses, has its own */

	(void)unused;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, &it.program);
	it.error = listener < 0 ? -errno : 0;
	sem_post(&it.installed);
	while (listener >= 0) {
		memset(&asked, 0, sizeof(asked)); /* the kernel refuses anything else */
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
			continue; /* a signal, or the caller has ended */
		memset(&answer, 0, sizeof(answer));
		answer.id = asked.id;
		if (audit)
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else
			answer.error = -EPERM;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		if (write(calls, &asked.data.nr, sizeof(asked.data.nr)) < 0)
			continue; /* the pipe is full */
	}
	return NULL;
}

int cnp_supervise(const struct sock_filter *filter, unsigned short instructions, int audit, int calls)
{
	pthread_t thread;
	sigset_t all, before;
	int error;

	it.program.filter = (struct sock_filter *)(uintptr_t)filter;
	it.program.len = instructions;
	it.audit = audit;
	it.calls = calls;
	sem_init(&it.installed, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, supervise, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
		return -error;
	pthread_detach(thread);
	while (sem_wait(&it.installed) != 0)
		;
	return it.error;
}
