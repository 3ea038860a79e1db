/* What the kernel leaves to a device that offloads: checksums to complete, and large TCP and UDP packets to cut into frames. */
#ifndef CNPGATE_SEGMENT_H
#define CNPGATE_SEGMENT_H

#include <stdint.h>

#include <linux/virtio_net.h>

/* Bytes of the largest packet the kernel hands over whole, its link header and a tag included. */
#define CNP_SUPER_SIZE (65536 + 256)

/* A large packet, and how much of it has been cut off. Offsets are from the first byte. */
struct cnp_super {
	uint8_t *data; /* CNP_SUPER_SIZE bytes */
	uint32_t len;
	uint32_t network;   /* the IP header */
	uint32_t transport; /* the TCP or UDP header */
	uint32_t payload;
	uint32_t size; /* bytes of payload in each frame */
	uint32_t done; /* bytes of payload in frames already */
	uint16_t frames;
	uint8_t protocol; /* 6 or 17 */
	uint8_t version;  /* of IP */
};

/* Completes the checksum of a frame whose header asks for it. 0, or -1 when the header and the frame don't match. */
int cnp_checksum(uint8_t *frame, uint32_t len, const struct virtio_net_hdr *h);

/* Looks at the headers of s->data and s->len. 0, or -1 for a packet that can't be cut. */
int cnp_super_begin(struct cnp_super *s, const struct virtio_net_hdr *h);

/* Writes the next frame, as the kernel's own segmentation makes it. Its length, or 0 when there is none, or it doesn't fit. */
uint32_t cnp_super_next(struct cnp_super *s, uint8_t *to, uint32_t capacity);

#endif
