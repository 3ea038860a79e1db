//go:build !nodpdk

#include "crossing.h"

#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#define CNP_MAX_BURST 64 /* burst.MaxSize */

static inline struct rte_mbuf *
mbuf_of(uint64_t handle)
{
	return (struct rte_mbuf *)(uintptr_t)handle;
}

static inline void
frame_of(struct cnp_frame *f, struct rte_mbuf *m, uint64_t base)
{
	f->buf = (uint64_t)(uintptr_t)m;
	f->data = (uint64_t)rte_pktmbuf_mtod(m, uintptr_t) - base;
}

/*
 * The mbuf of a frame that waited in a queue has left the cache: ask for all of them before the first is written. The burst ends
 * before a frame that the device would refuse for ever; when that is the first, it is dropped, or it would stop the port.
 */
static inline void
send_burst(struct cnp_queue *q, uint32_t burst)
{
	struct rte_mbuf *pk[CNP_MAX_BURST];
	uint32_t n = 0, waiting = RTE_MIN(q->n_tx, burst);

	for (; n < waiting && q->tx[n].len <= q->longest; n++) {
		pk[n] = mbuf_of(q->tx[n].buf);
		rte_prefetch0(pk[n]);
	}
	for (uint32_t i = 0; i < n; i++) {
		/* A frame of several segments can't have been built here, so its lengths still hold. */
		if (likely(pk[i]->nb_segs == 1)) {
			pk[i]->pkt_len = q->tx[i].len;
			pk[i]->data_len = (uint16_t)q->tx[i].len;
		}
	}
	q->sent = n == 0 ? 0 : rte_eth_tx_burst(q->port, q->queue, pk, (uint16_t)n);
	q->dropped = 0;
	if (unlikely(n == 0 && waiting != 0)) {
		rte_pktmbuf_free(mbuf_of(q->tx[0].buf));
		q->sent = q->dropped = 1;
	}
}

static inline void
receive_burst(struct cnp_queue *q, uint32_t burst, uint64_t base)
{
	struct rte_mbuf *pk[CNP_MAX_BURST];
	uint32_t n = rte_eth_rx_burst(q->port, q->queue, pk, (uint16_t)burst);

	/* Headers of RoCEv2 over IPv6, or behind VLAN tags, reach into the second cache line. */
	for (uint32_t i = 0; i < n; i++) {
		const char *data = rte_pktmbuf_mtod(pk[i], const char *);

		rte_prefetch0(data);
		rte_prefetch0(data + RTE_CACHE_LINE_SIZE);
	}
	for (uint32_t i = 0; i < n; i++) {
		frame_of(&q->rx[i], pk[i], base);
		q->rx[i].len = pk[i]->pkt_len;
		q->rx[i].head = pk[i]->data_len;
	}
	q->n_rx = n;
}

/* All or nothing: the last buffers of a pool that runs dry are left to reception. */
static inline void
refill_spares(struct cnp_batch *b)
{
	struct rte_mbuf *pk[CNP_MAX_BURST];
	uint32_t n = RTE_MIN(b->spares - b->n_spare, (uint32_t)CNP_MAX_BURST);

	if (n == 0 || rte_pktmbuf_alloc_bulk(b->pool, pk, n) != 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct cnp_frame *f = &b->spare[b->n_spare + i];

		frame_of(f, pk[i], b->base);
		f->len = 0;
		f->head = rte_pktmbuf_tailroom(pk[i]);
	}
	b->n_spare += n;
}

void
cnp_release(uintptr_t batch)
{
	struct cnp_batch *b = (struct cnp_batch *)batch;

	rte_pktmbuf_free_bulk((struct rte_mbuf **)b->free, b->n_free);
	b->n_free = 0;
}

int64_t
cnp_exchange(uintptr_t batch)
{
	struct cnp_batch *b = (struct cnp_batch *)batch;
	struct timespec now;

	for (uint32_t i = 0; i < b->n_queue; i++)
		send_burst(&b->queue[i], b->burst);
	if (b->n_free != 0)
		cnp_release(batch);
	refill_spares(b);
	for (uint32_t i = 0; i < b->n_queue; i++) {
		if (b->drain)
			b->queue[i].n_rx = 0;
		else
			receive_burst(&b->queue[i], b->burst, b->base);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
