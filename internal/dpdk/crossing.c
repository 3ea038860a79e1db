//go:build !nodpdk

#include "crossing.h"
#include "socket.h"

#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

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

static inline void
lose(struct cnp_queue *q, uint32_t place, uint32_t cause)
{
	rte_pktmbuf_free(mbuf_of(q->tx[place].buf));
	q->lost[q->n_lost++] = (struct cnp_loss){ .place = place, .cause = cause };
}

/*
 * Drops all offered frames: without a link the device would keep them, and send them when the link is back.
 */
static void
lose_all(struct cnp_queue *q, uint32_t waiting)
{
	for (uint32_t i = 0; i < waiting; i++)
		lose(q, i, CNP_LINK_DOWN);
	q->sent = waiting;
}

/*
 * Returns the mbufs of a list of frames that is just what a port has received last, as most are: so the mbufs need not be collected, nor their
 * lengths written. NULL for any other list. A port that has received again by now has another list.
 */
static inline struct rte_mbuf **
lent(const struct cnp_batch *b, const struct cnp_queue *q, uint32_t n)
{
	for (uint32_t i = 0; i < b->n_queue; i++) {
		const struct cnp_queue *from = &b->queue[i];

		if (from->n_rx == n && from->rx[0].buf == q->tx[0].buf)
			return from->fits && memcmp(from->rx, q->tx, n * sizeof(*q->tx)) == 0 ? from->received : NULL;
	}
	return NULL;
}

/*
 * Collects the mbufs of frames, up to one that the device would always refuse. The mbuf of a frame that waited in a queue has left the cache: ask
 * for all of them before the first is written.
 */
static inline uint32_t
collect(const struct cnp_queue *q, struct rte_mbuf **pk, uint32_t waiting)
{
	uint32_t n = 0;

	for (; n < waiting && q->tx[n].len <= q->longest; n++) {
		pk[n] = mbuf_of(q->tx[n].buf);
		rte_prefetch0(pk[n]);
	}
	for (uint32_t i = 0; i < n; i++) {
		pk[i]->pkt_len = q->tx[i].len;
		pk[i]->data_len = (uint16_t)q->tx[i].len;
	}
	return n;
}

/* A frame that the device would always refuse is dropped if it is the first, otherwise it would block the port. */
static inline void
send_burst(const struct cnp_batch *b, struct cnp_queue *q)
{
	struct rte_mbuf *collected[CNP_TX_BURSTS * CNP_MAX_BURST], **pk;
	uint32_t n, waiting = RTE_MIN(q->n_tx, CNP_TX_BURSTS * b->burst);

	q->sent = q->n_lost = 0;
	if (waiting == 0)
		return;
	if (unlikely(__atomic_load_n(q->carrier, __ATOMIC_RELAXED) == 0)) {
		lose_all(q, waiting);
		return;
	}
	n = waiting;
	if ((pk = lent(b, q, waiting)) == NULL)
		n = collect(q, pk = collected, waiting);
	if (unlikely(q->socket != NULL))
		cnp_socket_send(q, pk, RTE_MIN(n, (uint32_t)CNP_MAX_BURST));
	else if (n != 0)
		q->sent = rte_eth_tx_burst(q->port, q->queue, pk, (uint16_t)n);
	if (unlikely(n == 0)) {
		lose(q, 0, CNP_TOO_LONG);
		q->sent = 1;
	}
}

/*
 * A frame in several segments is longer than a buffer. The setup of devices avoids such frames; others are dropped and counted:
 * the code here reads only one segment, and a device without scattered sending would send only the first segment.
 */
static uint32_t
drop_segmented(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pk[i]->nb_segs == 1) {
			pk[kept++] = pk[i];
			continue;
		}
		cnp_count(&q->unusable, pk[i]->pkt_len);
		rte_pktmbuf_free(pk[i]);
	}
	return kept;
}

/*
 * Headers of RoCEv2 over IPv6, or behind VLAN tags, reach into the second cache line. The lines go into the second level: a core has few places for what
 * it fetches into the first one, and waits for them with two bursts of headers that aren't cached.
 */
static inline void
prefetch_headers(struct rte_mbuf **pk, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *data = rte_pktmbuf_mtod(pk[i], const char *);

		rte_prefetch1(data);
		rte_prefetch1(data + RTE_CACHE_LINE_SIZE);
	}
}

static inline uint32_t
receive_ethdev(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t burst)
{
	uint32_t n = rte_eth_rx_burst(q->port, q->queue, pk, (uint16_t)burst);

	if (!q->copied)
		prefetch_headers(pk, n);
	return n;
}

static void
receive_nothing(struct cnp_queue *q)
{
	q->n_rx = 0;
	q->unusable = q->unfinished = (struct cnp_volume){ 0, 0 };
}

/* Lists the received frames, and returns whether one has several segments. */
static inline int
list_received(const struct cnp_batch *b, struct cnp_queue *q, struct rte_mbuf **pk, uint32_t n)
{
	uint32_t segments = 0, over = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = pk[i]->pkt_len;

		frame_of(&q->rx[i], pk[i], b->base);
		q->rx[i].len = q->rx[i].head = len;
		segments |= pk[i]->nb_segs;
		over |= b->shortest - len; /* below 0 if it is longer */
	}
	q->n_rx = n;
	q->fits = (int32_t)over >= 0;
	return segments > 1;
}

static inline void
receive_burst(const struct cnp_batch *b, struct cnp_queue *q)
{
	struct rte_mbuf **pk = q->received;
	uint32_t n;

	receive_nothing(q);
	n = unlikely(q->socket != NULL) ? cnp_socket_receive(q, pk, b->burst) : receive_ethdev(q, pk, b->burst);
	if (unlikely(list_received(b, q, pk, n)))
		list_received(b, q, pk, drop_segmented(q, pk, n));
}

/* All or nothing: the last buffers of a nearly empty pool are reserved for reception. */
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

	if (b->n_free != 0)
		cnp_release(batch);
	b->shortest = INT32_MAX;
	for (uint32_t i = 0; i < b->n_queue; i++)
		b->shortest = RTE_MIN(b->shortest, b->queue[i].longest);
	/*
	 * Each port receives right after another one has sent: a device without a queue of its own has just freed a burst of buffers, which
	 * are still in the nearest cache.
	 */
	for (uint32_t i = 0; i < b->n_queue; i++) {
		send_burst(b, &b->queue[(i + 1) % b->n_queue]);
		if (b->drain)
			receive_nothing(&b->queue[i]);
		else
			receive_burst(b, &b->queue[i]);
	}
	refill_spares(b); /* from what reception has left */
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
