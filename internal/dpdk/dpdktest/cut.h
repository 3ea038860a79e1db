/* Finishes what a sender left to be offloaded, as internal/dpdk does. */
#ifndef CNPGATE_DPDKTEST_CUT_H
#define CNPGATE_DPDKTEST_CUT_H

#include <stdint.h>

/* Writes at most room frames of at most capacity bytes to out, and their lengths. How many; 0 for a packet that can't be cut. */
uint32_t cut(const uint8_t *packet, uint32_t len, const uint8_t *header, uint8_t *out, uint32_t room, uint32_t *lengths, uint32_t capacity);

/* Completes a checksum as internal/dpdk does. 0 for one that doesn't lie in the frame, which stays as it is. */
int complete(uint8_t *frame, uint32_t len, uint16_t start, uint16_t offset);

#endif
