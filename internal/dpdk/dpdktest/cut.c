//go:build !nodpdk

/* A copy of segment.c, with other names: internal/dpdk has the same functions in the test binary. The links let Go see when it changes. */
#define cnp_checksum dpdktest_checksum
#define cnp_super_begin dpdktest_super_begin
#define cnp_super_next dpdktest_super_next
#include "segment_source.h"

#include <stdlib.h>

#include "cut.h"

uint32_t
cut(const uint8_t *packet, uint32_t len, const uint8_t *header, uint8_t *out, uint32_t room, uint32_t *lengths, uint32_t capacity)
{
	struct cnp_super s = { .memory = malloc(len), .len = len };
	struct virtio_net_hdr h;
	uint32_t n = 0;

	memcpy(&h, header, sizeof(h));
	memcpy(s.memory, packet, len);
	s.data = s.memory;
	if (cnp_super_begin(&s, &h) == 0)
		while (n < room && (lengths[n] = cnp_super_next(&s, out + (size_t)n * capacity, capacity)) != 0)
			n++;
	free(s.memory);
	return n;
}

int
complete(uint8_t *frame, uint32_t len, uint16_t start, uint16_t offset)
{
	struct virtio_net_hdr h = { .csum_start = start, .csum_offset = offset };

	return cnp_checksum(frame, len, &h) == 0;
}
