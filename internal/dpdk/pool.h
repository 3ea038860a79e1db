/* A mempool of mbufs with a good layout also in pages of 4 KiB. */
#ifndef CNPGATE_POOL_H
#define CNPGATE_POOL_H

#include <stdint.h>

struct rte_mempool;

/* As rte_pktmbuf_pool_create; NULL and rte_errno on failure. room includes the headroom. */
struct rte_mempool *cnp_pool_create(const char *name, unsigned int frames, unsigned int cache, uint16_t room, int socket);

void cnp_pool_free(struct rte_mempool *pool);

/* Buffers that aren't in use, those in workers' caches among them. */
unsigned int cnp_pool_available(const struct rte_mempool *pool);

/* Allocates all of the pool's memory now and locks it. 0, or the errno of the lock. */
int cnp_pool_lock(struct rte_mempool *pool);

#endif
