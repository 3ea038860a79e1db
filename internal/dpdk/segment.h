/* Offloads that the kernel leaves to a device: checksums to complete, and large TCP and UDP packets to segment. */
#ifndef CNPGATE_SEGMENT_H
#define CNPGATE_SEGMENT_H

#include <stdint.h>

#include <linux/virtio_net.h>

/* Bytes of the largest packet that the kernel delivers (GSO_MAX_SIZE, for BIG TCP), with its link header and tags. */
#define CNP_SUPER_SIZE (8 * 65536)

/* Headers before the payload with a length, an identification or a checksum. */
#define CNP_MAX_LAYERS 8

enum cnp_layer_kind { CNP_IPV4, CNP_IPV6, CNP_UDP, CNP_GRE };

struct cnp_layer {
	uint32_t at; /* offset of the header */
	enum cnp_layer_kind kind;
};

/* A large packet, and the part of it that is already segmented. Offsets are from the packet's first byte. */
struct cnp_super {
	uint8_t *memory; /* CNP_SUPER_SIZE bytes, which the packet lies in */
	uint8_t *data;   /* the packet's first byte */
	uint32_t len;
	uint32_t transport; /* the TCP or UDP header whose payload is cut: the innermost one */
	uint32_t payload;
	uint32_t size; /* bytes of payload in each frame */
	uint32_t done; /* bytes of payload in frames already */
	uint32_t frames;
	uint32_t layers;
	struct cnp_layer layer[CNP_MAX_LAYERS]; /* in front of transport, the outermost first */
	uint8_t protocol;                       /* of transport: 6 or 17 */
};

/* Completes the checksum of a frame if its virtio header requires it. 0, or -1 if the header and the frame don't match. */
int cnp_checksum(uint8_t *frame, uint32_t len, const struct virtio_net_hdr *h);

/*
 * Parses the headers of s->data and s->len, also of VXLAN, Geneve, GRE or IP in IP, and removes the jumbo payload option of IPv6, which
 * no frame needs. 0, or -1 if the headers don't end at the virtio header's offset of the transport header.
 */
int cnp_super_begin(struct cnp_super *s, const struct virtio_net_hdr *h);

/* Writes the next frame, as in the kernel's own segmentation. Returns its length, or 0 if there is none, or it doesn't fit. */
uint32_t cnp_super_next(struct cnp_super *s, uint8_t *to, uint32_t capacity);

#endif
