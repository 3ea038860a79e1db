/* What the C programs beside cnpgate share: how they start, and the line protocol of the bench program ("ready", then an answer in
 * JSON to each line "WHAT MILLISECONDS"). They run on the core that EAL's only lcore has. */
#ifndef BENCH_EAL_H
#define BENCH_EAL_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>

#define BURST_MAX 64

static inline void
die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

/* The time that the calling thread has run, ns. */
static inline uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline uint64_t
wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Starts the EAL with the arguments up to "--"; returns how many those were. */
static inline int
start_eal(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);

	if (n < 0)
		die(rte_strerror(rte_errno));
	return n;
}

/* Takes the next question; 0 at the end of the input. */
static inline int
question(char what[16], uint64_t *ms)
{
	char line[64];

	if (fgets(line, sizeof(line), stdin) == NULL)
		return 0;
	if (sscanf(line, "%15s %" SCNu64, what, ms) != 2)
		die("expected WHAT MILLISECONDS");
	return 1;
}

static inline void
answer(uint64_t ops, uint64_t cpu, uint64_t wall)
{
	printf("{\"ops\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64 "}\n", ops, cpu, wall);
	fflush(stdout);
}

static inline void
ready(void)
{
	puts("ready");
	fflush(stdout);
}

#endif
