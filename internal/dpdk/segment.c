//go:build !nodpdk

#include "segment.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#define ETHER_HEADER 14
#define VLAN_TAG 4
#define MAX_TAGS 3
#define UDP_HEADER 8
#define VXLAN_HEADER 8
#define GENEVE_HEADER 8
#define JUMBO_OPTION 8 /* a hop-by-hop header with nothing else in it */
#define FLAG_FIN 0x01
#define FLAG_PSH 0x08
#define FLAG_CWR 0x80

static inline uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline uint32_t
get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* Stores the complement of a sum of 16-bit words in memory order; 0 is written as its other form, which UDP demands and TCP allows. */
static inline void
put_checksum(uint8_t *p, uint32_t sum)
{
	uint16_t folded = (uint16_t)~__rte_raw_cksum_reduce(sum);

	if (folded == 0)
		folded = 0xffff;
	memcpy(p, &folded, sizeof(folded));
}

int
cnp_checksum(uint8_t *frame, uint32_t len, const struct virtio_net_hdr *h)
{
	uint32_t start = h->csum_start, at = start + h->csum_offset;

	if (start >= len || at + 2 > len)
		return -1;
	/* The field holds the sum of the pseudo-header. */
	put_checksum(frame + at, __rte_raw_cksum(frame + start, len - start, 0));
	return 0;
}

/* The next header in a packet, for walk: an IP protocol number below 256, or one of these. */
enum {
	TYPE_ETHERNET = 0x6558, /* GRE's and Geneve's EtherType for an Ethernet frame */
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_8021Q = 0x8100,
	TYPE_8021AD = 0x88a8,
	PROTO_HOP_BY_HOP = 0,
	PROTO_IPV4 = 4,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_IPV6 = 41,
	PROTO_ROUTING = 43,
	PROTO_GRE = 47,
	PROTO_OPTIONS = 60,
	UNKNOWN = 0x10000
};

/* State of the walk over a packet's headers, up to the transport header at end. */
struct walk {
	struct cnp_super *s;
	uint32_t at;
	uint32_t end;
};

static int
push(struct walk *w, enum cnp_layer_kind kind)
{
	if (w->s->layers == CNP_MAX_LAYERS)
		return -1;
	w->s->layer[w->s->layers++] = (struct cnp_layer){ .at = w->at, .kind = kind };
	return 0;
}

/* An EtherType as the next header; below 0x600 it is a length, and must not be confused with an IP protocol. */
static uint32_t
ether_type(uint32_t type)
{
	return type < 0x600 ? UNKNOWN : type;
}

/* Each of these skips the header at w->at, if it is before w->end, and returns the next header. */

static uint32_t
ethernet(struct walk *w)
{
	w->at += ETHER_HEADER;
	for (int tags = 0; tags <= MAX_TAGS && w->at <= w->end; tags++, w->at += VLAN_TAG) {
		uint32_t type = get16(w->s->data + w->at - 2);

		if (type != TYPE_8021Q && type != TYPE_8021AD)
			return ether_type(type);
	}
	return UNKNOWN;
}

static uint32_t
ipv4(struct walk *w)
{
	const uint8_t *ip = w->s->data + w->at;
	uint32_t size;

	if (w->at + 20 > w->end || ip[0] >> 4 != 4 || (get16(ip + 6) & 0x3fff) != 0 || push(w, CNP_IPV4) != 0)
		return UNKNOWN;
	size = 4 * (ip[0] & 15);
	if (size < 20)
		return UNKNOWN;
	w->at += size;
	return ip[9];
}

/*
 * A BIG TCP packet has its length in a hop-by-hop header, since 16 bits are too few. For a frame they are enough.
 */
static void
remove_jumbo_option(struct walk *w)
{
	uint8_t *ip = w->s->data + w->at, *option = ip + 40;

	if (w->at + 40 + JUMBO_OPTION > w->end || ip[6] != PROTO_HOP_BY_HOP || get16(ip + 4) != 0 || option[1] != 0 || option[2] != 0xc2 ||
		option[3] != 4)
		return;
	ip[6] = option[0];
	memmove(w->s->data + JUMBO_OPTION, w->s->data, w->at + 40);
	w->s->data += JUMBO_OPTION;
	w->s->len -= JUMBO_OPTION;
	w->end -= JUMBO_OPTION;
}

static uint32_t
ipv6(struct walk *w)
{
	uint32_t next;

	if (w->at + 40 > w->end || w->s->data[w->at] >> 4 != 6 || push(w, CNP_IPV6) != 0)
		return UNKNOWN;
	remove_jumbo_option(w);
	next = w->s->data[w->at + 6];
	w->at += 40;
	while (next == PROTO_HOP_BY_HOP || next == PROTO_ROUTING || next == PROTO_OPTIONS) {
		const uint8_t *option = w->s->data + w->at;

		if (w->at + 8 > w->end)
			return UNKNOWN;
		if (next == PROTO_ROUTING && option[3] != 0) /* the checksum is about another destination than the header's */
			return UNKNOWN;
		next = option[0];
		w->at += 8 + 8 * option[1];
	}
	return next;
}

/* A GRE header with a sequence number would need a new number for each frame. */
static uint32_t
gre(struct walk *w)
{
	const uint8_t *p = w->s->data + w->at;
	uint16_t flags;

	if (w->at + 4 > w->end || push(w, CNP_GRE) != 0)
		return UNKNOWN;
	flags = get16(p);
	if ((flags & ~0xa000) != 0)
		return UNKNOWN;
	w->at += 4 + ((flags & 0x8000) != 0 ? 4 : 0) + ((flags & 0x2000) != 0 ? 4 : 0);
	return ether_type(get16(p + 2));
}

/* Hosts may use any UDP port, so tunnels are recognised by their headers: Geneve's has an EtherType where VXLAN's has zeros. */
static uint32_t
udp_tunnel(struct walk *w)
{
	const uint8_t *p = w->s->data + w->at + UDP_HEADER;
	uint16_t type;

	if (w->at + UDP_HEADER + VXLAN_HEADER > w->end || push(w, CNP_UDP) != 0)
		return UNKNOWN;
	type = get16(p + 2);
	w->at += UDP_HEADER;
	if (p[0] >> 6 == 0 && (type == TYPE_ETHERNET || type == TYPE_IPV4 || type == TYPE_IPV6)) {
		w->at += GENEVE_HEADER + 4 * (p[0] & 63);
		return type;
	}
	if ((p[0] & ~0x80) != 0x08) /* the network identifier is valid; a group policy may be there */
		return UNKNOWN;
	w->at += VXLAN_HEADER;
	return TYPE_ETHERNET;
}

/* Finds the headers before the transport header. 0, or -1 if they don't end there. */
static int
walk(struct cnp_super *s, uint32_t transport)
{
	struct walk w = { .s = s, .at = 0, .end = transport };
	uint32_t next = TYPE_ETHERNET;

	s->layers = 0;
	while (w.at < w.end) {
		switch (next) {
		case TYPE_ETHERNET:
			next = ethernet(&w);
			break;
		case TYPE_IPV4:
		case PROTO_IPV4:
			next = ipv4(&w);
			break;
		case TYPE_IPV6:
		case PROTO_IPV6:
			next = ipv6(&w);
			break;
		case PROTO_GRE:
			next = gre(&w);
			break;
		case PROTO_UDP:
			next = udp_tunnel(&w);
			break;
		default:
			return -1;
		}
	}
	s->transport = w.end;
	return w.at == w.end && next == s->protocol && s->layers > 0 && s->layer[s->layers - 1].kind <= CNP_IPV6 ? 0 : -1;
}

int
cnp_super_begin(struct cnp_super *s, const struct virtio_net_hdr *h)
{
	uint32_t least = 0;

	switch (h->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		s->protocol = PROTO_TCP;
		least = 20;
		break;
	case 5: /* VIRTIO_NET_HDR_GSO_UDP_L4, newer than the headers of Debian 12 */
		s->protocol = PROTO_UDP;
		least = UDP_HEADER;
		break;
	default:
		return -1;
	}
	s->size = h->gso_size;
	s->done = s->frames = 0;
	if ((h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0 || s->size == 0 || h->csum_start + least > s->len || walk(s, h->csum_start) != 0)
		return -1;
	s->payload = s->transport + (s->protocol == PROTO_UDP ? UDP_HEADER : 4 * (s->data[s->transport + 12] >> 4));
	return s->payload < s->transport + least || s->payload >= s->len ? -1 : 0;
}

/* Sum of the pseudo-header for n bytes after an IP header. */
static uint32_t
pseudo_header(const uint8_t *frame, const struct cnp_layer *ip, uint8_t protocol, uint32_t n)
{
	const uint8_t *p = frame + ip->at;
	uint32_t sum = ip->kind == CNP_IPV6 ? __rte_raw_cksum(p + 8, 32, 0) : __rte_raw_cksum(p + 12, 8, 0);

	return sum + rte_cpu_to_be_16(protocol) + rte_cpu_to_be_16((uint16_t)n);
}

static void
sum_into(uint8_t *field, const uint8_t *from, uint32_t n, uint32_t sum)
{
	memset(field, 0, 2);
	put_checksum(field, __rte_raw_cksum(from, n, sum));
}

/* Adapts a header before the transport header to this frame. Later headers must already be adapted. */
static void
fix_layer(const struct cnp_super *s, uint32_t i, uint8_t *frame, uint32_t len)
{
	const struct cnp_layer *layer = &s->layer[i];
	uint8_t *p = frame + layer->at;
	uint32_t n = len - layer->at;

	switch (layer->kind) {
	case CNP_IPV4:
		put16(p + 2, n);
		put16(p + 4, get16(p + 4) + s->frames);
		sum_into(p + 10, p, 4 * (p[0] & 15), 0);
		break;
	case CNP_IPV6:
		put16(p + 4, n - 40);
		break;
	case CNP_UDP: /* walk has found an IP header in front of it */
		put16(p + 4, n);
		if (get16(p + 6) != 0) /* otherwise the tunnel does without */
			sum_into(p + 6, p, n, pseudo_header(frame, layer - 1, PROTO_UDP, n));
		break;
	case CNP_GRE:
		if ((p[0] & 0x80) != 0)
			sum_into(p + 4, p, n, 0);
		break;
	}
}

static void
fix_transport(const struct cnp_super *s, uint8_t *frame, uint32_t len, int last)
{
	uint8_t *l4 = frame + s->transport;
	uint32_t n = len - s->transport, field = s->protocol == PROTO_UDP ? 6 : 16;

	if (s->protocol == PROTO_UDP) {
		put16(l4 + 4, n);
	} else {
		put32(l4 + 4, get32(l4 + 4) + s->done);
		if (!last)
			l4[13] &= (uint8_t)~(FLAG_FIN | FLAG_PSH);
		if (s->frames != 0)
			l4[13] &= (uint8_t)~FLAG_CWR;
	}
	sum_into(l4 + field, l4, n, pseudo_header(frame, &s->layer[s->layers - 1], s->protocol, n));
}

uint32_t
cnp_super_next(struct cnp_super *s, uint8_t *to, uint32_t capacity)
{
	uint32_t left = s->len - s->payload - s->done, n = RTE_MIN(left, s->size), len = s->payload + n;

	if (left == 0 || len > capacity)
		return 0;
	memcpy(to, s->data, s->payload);
	memcpy(to + s->payload, s->data + s->payload + s->done, n);
	fix_transport(s, to, len, n == left);
	for (uint32_t i = s->layers; i-- > 0;)
		fix_layer(s, i, to, len);
	s->done += n;
	s->frames++;
	return len;
}
