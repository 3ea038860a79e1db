/* The C side of Ring: a net_ring port whose far end is in a test's hands. */
#ifndef CNPGATE_DPDKTEST_RING_H
#define CNPGATE_DPDKTEST_RING_H

#include <stdint.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

int ring_errno(void);

/* rte_eth_from_rings of the net_ring PMD, a plugin that is only there once the EAL has loaded it. Port, or negative errno. */
int ring_port(const char *name, struct rte_ring **rx, unsigned int n_rx, struct rte_ring **tx, unsigned int n_tx);

/* Closes and removes the port. 0, or negative errno. */
int ring_port_close(uint16_t port);

/* A frame in, in segments of at most so many bytes (0: in one piece). 0, or negative errno. */
int ring_inject(struct rte_ring *ring, struct rte_mempool *pool, const void *bytes, uint32_t len, uint32_t segment);

/* A frame out, of which at most room bytes are copied. Its length, or -1 when there is none. */
int ring_collect(struct rte_ring *ring, void *bytes, uint32_t room);

#endif
