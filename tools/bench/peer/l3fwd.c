/* What DPDK's example l3fwd lacks to be measured: slices of CPU time, and the line protocol of eal.h. scripts/bench compiles it into
 * l3fwd, whose main then calls serve_slices in place of starting its loop. The loop itself is unchanged: a CPU timer ends it by the flag
 * that a signal sets otherwise. */
#include "eal.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

extern volatile bool force_quit;

static int answers = -1; /* where standard output was */
static uint64_t missed;

/* l3fwd prints each rule: that isn't an answer. */
__attribute__((constructor)) static void
keep_output(void)
{
	answers = dup(STDOUT_FILENO);
	if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		die("standard output can't be moved");
}

static void
stop(int signum)
{
	(void)signum;
	force_quit = true;
}

/* The sum of the frames that both ports have sent or refused. */
static uint64_t
sent(void)
{
	struct rte_eth_stats s;
	uint64_t n = 0;
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port) {
		if (rte_eth_stats_get(port, &s) != 0)
			die("a port has no statistics");
		if (s.oerrors != 0)
			die("frames were dropped");
		n += s.opackets;
	}
	return n;
}

/* Runs the loop for so much CPU time. */
static void
slice(int (*loop)(void *), timer_t timer, uint64_t ns)
{
	struct itimerspec t = { .it_value = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 } };

	force_quit = false;
	if (timer_settime(timer, 0, &t, NULL) != 0)
		die(strerror(errno));
	loop(NULL);
}

/* l3fwd sends a frame whose five-tuple no rule has back to the port that it came from. */
static uint16_t
count_missed(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, void *param)
{
	(void)queue;
	(void)param;
	for (uint16_t i = 0; i < n; i++)
		missed += pkts[i]->port == port;
	return n;
}

/* Ends the program if a frame misses the table. */
static void
check_hits(int (*loop)(void *), timer_t timer)
{
	const struct rte_eth_rxtx_callback *seen[RTE_MAX_ETHPORTS];
	uint64_t before = sent();
	char why[64];
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port) {
		seen[port] = rte_eth_add_tx_callback(port, 0, count_missed, NULL);
		if (seen[port] == NULL)
			die("a port takes no callback");
	}
	slice(loop, timer, 20000000);
	RTE_ETH_FOREACH_DEV(port)
		rte_eth_remove_tx_callback(port, 0, seen[port]);
	if (missed == 0 && sent() > before)
		return;
	snprintf(why, sizeof(why), "%" PRIu64 " of %" PRIu64 " frames missed the table", missed, sent() - before);
	die(why);
}

/* Serves slices until the end of the input. It runs on the core of the only lcore. */
void
serve_slices(int (*loop)(void *))
{
	struct sigevent by = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	char what[16];
	timer_t timer;
	uint64_t ms;

	fflush(stdout);
	if (dup2(answers, STDOUT_FILENO) < 0 || signal(SIGUSR1, stop) == SIG_ERR || timer_create(CLOCK_THREAD_CPUTIME_ID, &by, &timer) != 0)
		die(strerror(errno));
	check_hits(loop, timer);
	ready();
	while (question(what, &ms)) {
		uint64_t ops = sent(), began = wall_ns(), cpu = cpu_ns();

		slice(loop, timer, ms * 1000000);
		cpu = cpu_ns() - cpu;
		answer(sent() - ops, cpu, wall_ns() - began);
	}
	exit(0);
}
