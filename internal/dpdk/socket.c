//go:build !nodpdk

#define _GNU_SOURCE
#include "socket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_mbuf.h>

#include "segment.h"

#define VLAN_TAG 4
#define MAC_ADDRESSES 12
#define TPID_8021Q 0x8100
#define MAX_PACKET (CNP_SUPER_SIZE - VLAN_TAG) /* bytes of a large packet without the tag that the kernel keeps beside it */

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

/* The kernel writes one packet here: the virtio header, the packet into a buffer, and the rest into overflow. */
struct slot {
	struct virtio_net_hdr head;
	struct rte_mbuf *buffer;
	uint8_t *overflow; /* CNP_SUPER_SIZE bytes */
	struct iovec piece[3];
	union control control;
};

struct cnp_socket {
	int rx;
	int tx;
	struct rte_mempool *pool;
	uint32_t capacity; /* bytes of data in a buffer */
	uint32_t received; /* slots that the last recvmmsg filled */
	uint32_t taken;    /* of these */
	uint64_t no_buffer;
	struct cnp_super super; /* under way if len isn't 0 */
	struct slot slot[CNP_MAX_BURST];
	struct mmsghdr in[CNP_MAX_BURST];
	struct iovec piece[CNP_MAX_BURST];
	struct mmsghdr out[CNP_MAX_BURST];
};

struct cnp_socket *
cnp_socket_new(int rx, int tx, struct rte_mempool *pool, uint32_t capacity)
{
	struct cnp_socket *s = calloc(1, sizeof(*s));
	/* One block; only the part that large packets reach becomes resident. */
	uint8_t *memory = calloc(CNP_MAX_BURST + 1, CNP_SUPER_SIZE);

	if (s == NULL || memory == NULL) {
		free(s);
		free(memory);
		return NULL;
	}
	s->rx = rx;
	s->tx = tx;
	s->pool = pool;
	s->capacity = capacity;
	s->super.memory = memory;
	for (uint32_t i = 0; i < CNP_MAX_BURST; i++) {
		struct slot *slot = &s->slot[i];
		struct msghdr *m = &s->in[i].msg_hdr;

		slot->overflow = memory + (size_t)(i + 1) * CNP_SUPER_SIZE;
		slot->piece[0] = (struct iovec){ &slot->head, sizeof(slot->head) };
		slot->piece[2] = (struct iovec){ slot->overflow, MAX_PACKET };
		m->msg_iov = slot->piece;
		m->msg_iovlen = RTE_DIM(slot->piece);
		m->msg_control = &slot->control;
		s->out[i].msg_hdr.msg_iov = &s->piece[i];
		s->out[i].msg_hdr.msg_iovlen = 1;
	}
	return s;
}

void
cnp_socket_free(struct cnp_socket *s)
{
	for (uint32_t i = 0; i < CNP_MAX_BURST; i++)
		rte_pktmbuf_free(s->slot[i].buffer);
	free(s->super.memory);
	free(s);
}

uint64_t
cnp_socket_no_buffer(const struct cnp_socket *s)
{
	return __atomic_load_n(&s->no_buffer, __ATOMIC_RELAXED);
}

static void
miss(struct cnp_socket *s, uint64_t frames)
{
	__atomic_store_n(&s->no_buffer, s->no_buffer + frames, __ATOMIC_RELAXED);
}

/* The VLAN tag that the kernel keeps outside of the packet; 0 if there is none. */
static int
vlan_tag(struct msghdr *m, uint8_t tag[VLAN_TAG])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		struct tpacket_auxdata aux;
		uint16_t tpid = TPID_8021Q;

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if ((aux.tp_status & TP_STATUS_VLAN_VALID) == 0)
			return 0;
		if ((aux.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0)
			tpid = aux.tp_vlan_tpid;
		tag[0] = (uint8_t)(tpid >> 8);
		tag[1] = (uint8_t)tpid;
		tag[2] = (uint8_t)(aux.tp_vlan_tci >> 8);
		tag[3] = (uint8_t)aux.tp_vlan_tci;
		return 1;
	}
	return 0;
}

/* Restores a tag in the frame: the addresses move to the front. frame has VLAN_TAG bytes before its first one. */
static void
insert_tag(uint8_t *frame, const uint8_t tag[VLAN_TAG])
{
	memmove(frame - VLAN_TAG, frame, MAC_ADDRESSES);
	memcpy(frame - VLAN_TAG + MAC_ADDRESSES, tag, VLAN_TAG);
}

/* Makes a large packet contiguous, and begins to segment it. */
static void
begin_super(struct cnp_socket *s, struct cnp_queue *q, struct slot *slot, struct msghdr *m, uint32_t len)
{
	struct cnp_super *super = &s->super;
	uint32_t first = RTE_MIN(len, s->capacity);
	uint8_t tag[VLAN_TAG], *at = super->memory + VLAN_TAG;
	int tagged = vlan_tag(m, tag);

	memcpy(at, rte_pktmbuf_mtod(slot->buffer, void *), first);
	memcpy(at + first, slot->overflow, len - first);
	super->data = at;
	super->len = len;
	if (tagged) {
		insert_tag(at, tag);
		super->data -= VLAN_TAG;
		super->len += VLAN_TAG;
		slot->head.csum_start += VLAN_TAG;
	}
	if (cnp_super_begin(super, &slot->head) != 0) {
		cnp_count(&q->unfinished, super->len);
		super->len = 0;
	}
}

/* The next frame of a large packet; NULL at its end. */
static struct rte_mbuf *
next_of_super(struct cnp_socket *s, struct cnp_queue *q)
{
	struct cnp_super *super = &s->super;
	struct rte_mbuf *m;
	uint32_t left = super->len - super->payload - super->done, len;

	if (left == 0) {
		super->len = 0;
		return NULL;
	}
	m = rte_pktmbuf_alloc(s->pool);
	if (m == NULL) {
		miss(s, (left + super->size - 1) / super->size);
		super->len = 0;
		return NULL;
	}
	len = cnp_super_next(super, rte_pktmbuf_mtod(m, uint8_t *), s->capacity);
	if (len == 0) {
		cnp_count(&q->unusable, left);
		super->len = 0;
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->pkt_len = len;
	m->data_len = (uint16_t)len;
	return m;
}

/* The packet in a slot that the kernel has filled; NULL if there is none, or if it is large and must be segmented first. */
static struct rte_mbuf *
take_slot(struct cnp_socket *s, struct cnp_queue *q, struct slot *slot, struct mmsghdr *in)
{
	struct msghdr *m = &in->msg_hdr;
	struct rte_mbuf *frame = slot->buffer;
	uint32_t len = in->msg_len - RTE_MIN(in->msg_len, (uint32_t)sizeof(slot->head));
	uint8_t tag[VLAN_TAG];

	if (len < MAC_ADDRESSES + 2) {
		cnp_count(&q->unfinished, len);
		return NULL;
	}
	if (slot->head.gso_type != VIRTIO_NET_HDR_GSO_NONE && len <= MAX_PACKET && (m->msg_flags & MSG_TRUNC) == 0) {
		begin_super(s, q, slot, m, len);
		return NULL;
	}
	if (len > s->capacity) {
		cnp_count(&q->unusable, len);
		return NULL;
	}
	if ((slot->head.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0 && cnp_checksum(rte_pktmbuf_mtod(frame, uint8_t *), len, &slot->head) != 0) {
		cnp_count(&q->unfinished, len);
		return NULL;
	}
	frame->pkt_len = len;
	frame->data_len = (uint16_t)len;
	if (vlan_tag(m, tag)) {
		insert_tag(rte_pktmbuf_mtod(frame, uint8_t *), tag);
		rte_pktmbuf_prepend(frame, VLAN_TAG);
	}
	slot->buffer = NULL;
	return frame;
}

/* Gives the first slots a buffer each; returns the number that have one. */
static uint32_t
fill_slots(struct cnp_socket *s, uint32_t wanted)
{
	for (uint32_t i = 0; i < wanted; i++) {
		struct slot *slot = &s->slot[i];

		if (slot->buffer == NULL) {
			slot->buffer = rte_pktmbuf_alloc(s->pool);
			if (slot->buffer == NULL)
				return i;
			slot->piece[1] = (struct iovec){ rte_pktmbuf_mtod(slot->buffer, void *), s->capacity };
		}
		s->in[i].msg_hdr.msg_controllen = sizeof(slot->control);
	}
	return wanted;
}

static void
fetch(struct cnp_socket *s, struct cnp_queue *q, uint32_t burst)
{
	uint32_t slots = fill_slots(s, burst);
	int n = slots == 0 ? 0 : recvmmsg(s->rx, s->in, slots, MSG_DONTWAIT, NULL);

	s->taken = 0;
	s->received = n > 0 ? (uint32_t)n : 0;
	if (n < 0 && errno == EINVAL) /* an offload that the virtio header can't describe: the kernel has dropped the packet, and doesn't say its length */
		cnp_count(&q->unfinished, 0);
}

uint32_t
cnp_socket_discard(struct cnp_socket *s, uint32_t max)
{
	const struct cnp_super *super = &s->super;
	uint32_t frames = s->received - s->taken;

	if (super->len != 0)
		frames += (super->len - super->payload - super->done + super->size - 1) / super->size;
	while (frames < max && (recv(s->rx, s->super.memory, 1, MSG_DONTWAIT) >= 0 || errno == EINVAL))
		frames++;
	return frames;
}

uint32_t
cnp_socket_receive(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t burst)
{
	struct cnp_socket *s = q->socket;
	uint32_t n = 0;
	int fetched = 0;

	while (n < burst) {
		struct rte_mbuf *m = NULL;

		if (s->super.len != 0) {
			m = next_of_super(s, q);
		} else if (s->taken < s->received) {
			m = take_slot(s, q, &s->slot[s->taken], &s->in[s->taken]);
			s->taken++;
		} else if (fetched++ == 0) {
			fetch(s, q, burst);
		} else {
			break;
		}
		if (m != NULL)
			pk[n++] = m;
	}
	return n;
}

/* Translates an error of sendmmsg for the first frame that it didn't send: the cause of its loss, or -1 to try again later. */
static int
cause_of(int error, int carrier)
{
	switch (error) {
	case EAGAIN:
	case ENOBUFS: /* the device or who reads behind it has no place: the frame waits in the queue, where its depth shows */
	case ENOMEM:
	case EINTR:
		return carrier ? -1 : CNP_LINK_DOWN;
	case EMSGSIZE:
		return CNP_TOO_LONG;
	case ENETDOWN:
	case ENXIO:
	case ENODEV:
		return CNP_LINK_DOWN;
	default:
		return CNP_REFUSED;
	}
}

void
cnp_socket_send(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t n)
{
	struct cnp_socket *s = q->socket;

	for (uint32_t i = 0; i < n; i++)
		s->piece[i] = (struct iovec){ rte_pktmbuf_mtod(pk[i], void *), pk[i]->data_len };
	q->sent = 0;
	while (q->sent < n) {
		int sent = sendmmsg(s->tx, s->out + q->sent, n - q->sent, MSG_DONTWAIT), cause;

		if (sent > 0) {
			q->sent += (uint32_t)sent;
			continue;
		}
		cause = cause_of(errno, __atomic_load_n(q->carrier, __ATOMIC_RELAXED));
		if (cause < 0)
			break;
		q->lost[q->n_lost++] = (struct cnp_loss){ .place = q->sent++, .cause = (uint32_t)cause };
	}
	rte_pktmbuf_free_bulk(pk, q->sent);
}
