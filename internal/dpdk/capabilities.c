//go:build !nodpdk

#include "capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t kept;
static struct sigaction before;

/* Only system calls: it interrupts whatever the thread does. Who sent the signal looks in /proc at what came of it. */
static void give_up(int signal)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[2];
	int error = errno;

	(void)signal;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capget, &header, sets) == 0) {
		for (int i = 0; i < 2; i++) {
			sets[i].permitted &= (uint32_t)(kept >> (32 * i));
			sets[i].effective &= sets[i].permitted;
			sets[i].inheritable = 0;
		}
		syscall(SYS_capset, &header, sets);
	}
	errno = error;
}

int cnp_capabilities_begin(int signal, uint64_t keep)
{
	/* Go's threads have stacks too small for handlers, hence SA_ONSTACK. */
	struct sigaction action = {.sa_handler = give_up, .sa_flags = SA_ONSTACK | SA_RESTART};

	kept = keep;
	sigfillset(&action.sa_mask);
	return sigaction(signal, &action, &before) == 0 ? 0 : -errno;
}

void cnp_capabilities_end(int signal)
{
	sigaction(signal, &before, NULL);
}
