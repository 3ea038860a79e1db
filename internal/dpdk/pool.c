//go:build !nodpdk

#include "pool.h"

#include <errno.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

static void
lock_chunk(struct rte_mempool *pool, void *result, struct rte_mempool_memhdr *chunk, unsigned int index)
{
	int *error = result;

	RTE_SET_USED(pool);
	RTE_SET_USED(index);
	if (mlock(chunk->addr, chunk->len) == 0)
		return;
	if (*error == 0)
		*error = errno;
	/* Not locked, but allocated: a lack of memory shows now, and not when the queue fills. */
	for (size_t at = 0; at < chunk->len; at += 4096) {
		volatile char *byte = (volatile char *)chunk->addr + at;

		*byte = *byte;
	}
}

int
cnp_pool_lock(struct rte_mempool *pool)
{
	int error = 0;

	if (!rte_eal_has_hugepages()) /* those are never swapped out, and were taken at once */
		rte_mempool_mem_iter(pool, lock_chunk, &error);
	return error;
}

static void
free_zone(struct rte_mempool_memhdr *chunk, void *zone)
{
	RTE_SET_USED(chunk);
	rte_memzone_free(zone);
}

/* All buffers in one contiguous piece of memory, across page boundaries. */
static int
populate_packed(struct rte_mempool *pool)
{
	size_t each = pool->header_size + pool->elt_size + pool->trailer_size;
	const struct rte_memzone *zone = rte_memzone_reserve_aligned(pool->name, each * pool->size + RTE_MEMPOOL_ALIGN, SOCKET_ID_ANY,
		RTE_MEMZONE_IOVA_CONTIG, RTE_MEMPOOL_ALIGN);
	int got;

	if (zone == NULL)
		return -rte_errno;
	(void)madvise(zone->addr, zone->len, MADV_POPULATE_WRITE); /* at once, instead of by a fault of each page; what fails here comes by them */
	got = rte_mempool_populate_iova(pool, zone->addr, zone->iova, zone->len, free_zone, (void *)(uintptr_t)zone);
	if (got <= 0)
		rte_memzone_free(zone);
	return got == (int)pool->size ? 0 : got < 0 ? got : -ENOMEM;
}

struct rte_mempool *
cnp_pool_create(const char *name, unsigned int frames, unsigned int cache, uint16_t room, int socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = room };
	struct rte_mempool *pool;
	int ret;

	/*
	 * rte_pktmbuf_pool_create lets no buffer cross a page, since pages may not be contiguous for the device. With pages of 4 KiB that puts
	 * every mbuf at the same offset in its page, so that they all compete for the same few cache lines, and wastes half the memory. If
	 * devices use virtual addresses, pages are contiguous for them, too.
	 */
	if (rte_eal_has_hugepages() || rte_eal_iova_mode() != RTE_IOVA_VA)
		return rte_pktmbuf_pool_create(name, frames, cache, 0, room, socket);
	pool = rte_mempool_create_empty(name, frames, sizeof(struct rte_mbuf) + room, cache, sizeof(private), socket,
		RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	ret = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret == 0) {
		rte_pktmbuf_pool_init(pool, &private);
		ret = populate_packed(pool);
	}
	if (ret != 0) {
		rte_mempool_free(pool);
		rte_errno = -ret;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

void
cnp_pool_free(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

unsigned int
cnp_pool_available(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}
