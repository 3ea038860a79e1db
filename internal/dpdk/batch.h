/* Shared by Go and C: the layout of frames and of a worker's batch. */
#ifndef CNPGATE_BATCH_H
#define CNPGATE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define CNP_MAX_BURST 64 /* burst.MaxSize */
#define CNP_TX_BURSTS 2  /* burst.TxBursts */

struct rte_mbuf;
struct rte_mempool;
struct cnp_socket;

/* burst.Frame, byte for byte; backend.go checks the same numbers from the other side. */
struct cnp_frame {
	uint64_t buf;  /* struct rte_mbuf * */
	uint64_t data; /* first byte, counted from cnp_batch.base */
	uint32_t len;
	uint32_t head;
};

_Static_assert(sizeof(struct cnp_frame) == 24, "burst.Frame has 24 bytes");
_Static_assert(offsetof(struct cnp_frame, data) == 8, "burst.Frame.Data is at 8");
_Static_assert(offsetof(struct cnp_frame, len) == 16, "burst.Frame.Len is at 16");
_Static_assert(offsetof(struct cnp_frame, head) == 20, "burst.Frame.Head is at 20");

/* burst.Loss, byte for byte. */
struct cnp_loss {
	uint32_t place;
	uint32_t cause;
};

/* burst.Volume, byte for byte. */
struct cnp_volume {
	uint64_t frames;
	uint64_t bytes;
};

/* burst.Cause */
enum { CNP_TOO_LONG, CNP_LINK_DOWN, CNP_REFUSED };

/* One worker's pair of queues on one port. */
struct cnp_queue {
	struct cnp_frame *rx;      /* burst frames, written by C */
	struct rte_mbuf **received; /* the mbufs of rx, in the same order */
	struct cnp_frame *tx;      /* n_tx frames, written by Go; not always the same memory */
	struct cnp_loss *lost;     /* CNP_TX_BURSTS bursts of losses, written by C */
	struct cnp_socket *socket; /* of a kernel interface; NULL: the port is an ethdev */
	const int32_t *carrier;    /* the port's: 0 when it is known to have no link */
	uint32_t n_rx;
	uint32_t fits; /* any port sends each frame in rx */
	uint32_t n_tx;
	uint32_t n_lost;
	uint32_t sent;
	uint32_t longest;             /* bytes of the longest frame that the device sends */
	uint32_t copied;              /* the driver copies received frames: their headers are in this core's cache */
	struct cnp_volume unusable;   /* received and dropped: they don't lie in one buffer */
	struct cnp_volume unfinished; /* received and dropped: the sender left work on them that can't be done */
	uint16_t port;
	uint16_t queue;
};

static inline void
cnp_count(struct cnp_volume *v, uint32_t bytes)
{
	v->frames++;
	v->bytes += bytes;
}

/* One worker's batch. All of it is C memory, so that cgo has nothing to check or to pin. */
struct cnp_batch {
	uint64_t base;
	struct rte_mempool *pool;
	struct cnp_queue *queue;
	uint64_t *free; /* struct rte_mbuf *, n_free of them */
	struct cnp_frame *spare;
	uint32_t n_queue;
	uint32_t n_free;
	uint32_t n_spare;
	uint32_t spares; /* capacity of spare */
	uint32_t burst;  /* frames that a port receives, at most CNP_MAX_BURST; it sends CNP_TX_BURSTS times as many */
	uint32_t drain;  /* receive nothing */
	uint32_t shortest; /* of the ports' longest */
};

#endif
