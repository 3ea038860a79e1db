/* Helpers of the control path: EAL's log, and what cgo cannot call by itself (bit fields, inlines, a plugin's function). */
#ifndef CNPGATE_EAL_H
#define CNPGATE_EAL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* Sends EAL's log to stderr (its default is stdout and syslog) and remembers the first error of each span. */
int cnp_log_start(void);
void cnp_log_clear(void);
void cnp_log_first(char *out, size_t size);

int cnp_errno(void);

/* 1 up, 0 down, negative errno. */
int cnp_link(uint16_t port);

/* Receives and throws away what waits in a queue, at most max frames; returns how many. */
uint32_t cnp_discard(uint16_t port, uint16_t queue, uint32_t max);

/* rte_eth_from_rings of the net_ring PMD, a plugin that is only there once the EAL has loaded it. Port, or negative errno. */
int cnp_eth_from_rings(const char *name, struct rte_ring **rx, unsigned int n_rx, struct rte_ring **tx, unsigned int n_tx);

/* The far end of a ring port: a frame in (0, or negative errno), a frame out (its length, or -1 when there is none). */
int cnp_ring_inject(struct rte_ring *ring, struct rte_mempool *pool, const void *octets, uint32_t len, uint32_t segment);
int cnp_ring_collect(struct rte_ring *ring, void *octets, uint32_t room);

#endif
