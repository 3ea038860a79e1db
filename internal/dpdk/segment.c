//go:build !nodpdk

#include "segment.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#define ETHER_HEADER 14
#define VLAN_TAG 4
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

/* Offset of the IP header, behind any tags; 0 for a frame without one. */
static uint32_t
network_header(const uint8_t *frame, uint32_t len, uint8_t *version)
{
	uint32_t at = ETHER_HEADER;

	for (int tags = 0; tags < 3 && at <= len; tags++, at += VLAN_TAG) {
		switch (get16(frame + at - 2)) {
		case 0x0800:
			*version = 4;
			return at;
		case 0x86dd:
			*version = 6;
			return at;
		case 0x8100:
		case 0x88a8:
			continue;
		default:
			return 0;
		}
	}
	return 0;
}

int
cnp_super_begin(struct cnp_super *s, const struct virtio_net_hdr *h)
{
	uint32_t least = 0;

	switch (h->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		s->protocol = 6;
		least = 20;
		break;
	case 5: /* VIRTIO_NET_HDR_GSO_UDP_L4, newer than the headers of Debian 12 */
		s->protocol = 17;
		least = 8;
		break;
	default:
		return -1;
	}
	s->transport = h->csum_start;
	s->size = h->gso_size;
	s->done = s->frames = 0;
	s->network = network_header(s->data, s->len, &s->version);
	if ((h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0 || s->network == 0 || s->size == 0 ||
		s->transport < s->network + (s->version == 4 ? 20 : 40) || s->transport + least > s->len)
		return -1;
	s->payload = s->transport + (s->protocol == 17 ? 8 : 4 * (s->data[s->transport + 12] >> 4));
	return s->payload < s->transport + least || s->payload >= s->len ? -1 : 0;
}

static void
fix_network(const struct cnp_super *s, uint8_t *frame, uint32_t len)
{
	uint8_t *ip = frame + s->network;

	if (s->version == 6) {
		put16(ip + 4, len - s->network - 40);
		return;
	}
	put16(ip + 2, len - s->network);
	put16(ip + 4, get16(ip + 4) + s->frames);
	memset(ip + 10, 0, 2);
	put_checksum(ip + 10, __rte_raw_cksum(ip, s->transport - s->network, 0));
}

static void
fix_transport(const struct cnp_super *s, uint8_t *frame, uint32_t len, int last)
{
	uint8_t *ip = frame + s->network, *l4 = frame + s->transport;
	uint32_t n = len - s->transport, field = s->protocol == 17 ? 6 : 16;
	uint32_t sum = s->version == 6 ? __rte_raw_cksum(ip + 8, 32, 0) : __rte_raw_cksum(ip + 12, 8, 0);

	if (s->protocol == 17) {
		put16(l4 + 4, n);
	} else {
		put32(l4 + 4, get32(l4 + 4) + s->done);
		if (!last)
			l4[13] &= (uint8_t)~(FLAG_FIN | FLAG_PSH);
		if (s->frames != 0)
			l4[13] &= (uint8_t)~FLAG_CWR;
	}
	sum += rte_cpu_to_be_16(s->protocol);
	sum += rte_cpu_to_be_16((uint16_t)n);
	memset(l4 + field, 0, 2);
	put_checksum(l4 + field, __rte_raw_cksum(l4, n, sum));
}

uint32_t
cnp_super_next(struct cnp_super *s, uint8_t *to, uint32_t capacity)
{
	uint32_t left = s->len - s->payload - s->done, n = RTE_MIN(left, s->size), len = s->payload + n;

	if (left == 0 || len > capacity)
		return 0;
	memcpy(to, s->data, s->payload);
	memcpy(to + s->payload, s->data + s->payload + s->done, n);
	fix_network(s, to, len);
	fix_transport(s, to, len, n == left);
	s->done += n;
	s->frames++;
	return len;
}
