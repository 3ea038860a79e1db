/* DPDK's rte_hash on given keys: "run" looks them up in bulk in a given order. "insert" adds the next INSERT_PART of them, or fills the
 * empty table repeatedly if it holds no more, one by one, as rte_hash has no bulk insertion. A full table is emptied first.
 * Arguments: EAL's, "--", file of keys, octets of a key, file of keys to look up, 1 for lock-free concurrent readers. */
#include "eal.h"

#include <rte_hash.h>
#include <rte_lcore.h>

#define INSERT_PART 65536

static char *
read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *data;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0)
		die("a file of keys can't be read");
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size);
	if (data == NULL || fread(data, 1, *size, f) != *size)
		die("a file of keys can't be read");
	fclose(f);
	return data;
}

static void
insert(struct rte_hash *h, const char *keys, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (rte_hash_add_key(h, keys + i * size) < 0)
			die("rte_hash is full");
}

/* Looks up a burst; returns how many were found. */
static inline uint64_t
lookup(struct rte_hash *h, const char *keys, size_t size)
{
	const void *pointers[BURST_MAX];
	int32_t at[BURST_MAX];

	for (int i = 0; i < BURST_MAX; i++)
		pointers[i] = keys + i * size;
	if (rte_hash_lookup_bulk(h, pointers, BURST_MAX, at) != 0)
		die("rte_hash_lookup_bulk failed");
	for (int i = 0; i < BURST_MAX; i++)
		if (unlikely(at[i] < 0))
			die("a key was not found");
	return BURST_MAX;
}

int
main(int argc, char **argv)
{
	struct rte_hash_parameters p = { .name = "flows" };
	int eal = start_eal(argc, argv);
	size_t keys_size, wanted_size, size, n, m, filled, at = 0;
	char *keys, *wanted, what[16];
	struct rte_hash *h;
	uint64_t ms;

	if (argc - eal != 5)
		die("expected 4 arguments behind EAL's");
	keys = read_file(argv[eal + 1], &keys_size);
	size = (size_t)atoi(argv[eal + 2]);
	wanted = read_file(argv[eal + 3], &wanted_size);
	n = keys_size / size;
	m = wanted_size / size / BURST_MAX;
	p.entries = (uint32_t)(2 * n); /* half full, as cnpgate's table is when it holds as many flows as it may */
	p.key_len = (uint32_t)size;
	p.socket_id = (int)rte_socket_id();
	if (atoi(argv[eal + 4]) == 1)
		p.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF;
	h = rte_hash_create(&p);
	if (h == NULL)
		die(rte_strerror(rte_errno));
	insert(h, keys, n, size);
	filled = n;
	ready();
	while (question(what, &ms)) {
		uint64_t ops = 0, began = wall_ns(), cpu = 0;
		int inserting = strcmp(what, "insert") == 0;

		do {
			uint64_t before;

			if (inserting) {
				size_t part;

				if (filled == n) {
					rte_hash_reset(h);
					filled = 0;
				}
				part = RTE_MIN(n - filled, (size_t)INSERT_PART);
				before = cpu_ns();
				insert(h, keys + filled * size, part, size);
				filled += part;
				ops += part;
			} else {
				before = cpu_ns();
				for (int i = 0; i < 1024; i++) {
					ops += lookup(h, wanted + at * BURST_MAX * size, size);
					at = at + 1 == m ? 0 : at + 1;
				}
			}
			cpu += cpu_ns() - before;
		} while (cpu < ms * 1000000 && !(inserting && n > INSERT_PART));
		answer(ops, cpu, wall_ns() - began);
	}
	return 0;
}
