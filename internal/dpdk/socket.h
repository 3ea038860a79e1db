/* A worker's packet sockets on one of the kernel's interfaces. */
#ifndef CNPGATE_SOCKET_H
#define CNPGATE_SOCKET_H

#include <stdint.h>

#include "crossing.h"

/*
 * rx is a packet socket bound to the interface, with PACKET_VNET_HDR and PACKET_AUXDATA; tx one that receives nothing, with
 * PACKET_QDISC_BYPASS. Both stay the caller's, who may put other sockets in their place (dup3) while frames move. NULL without memory.
 */
struct cnp_socket *cnp_socket_new(int rx, int tx, struct rte_mempool *pool, uint32_t capacity);

/* Gives the buffers back that wait for frames, and the memory. */
void cnp_socket_free(struct cnp_socket *s);

/* Frames for which there was no buffer. */
uint64_t cnp_socket_no_buffer(const struct cnp_socket *s);

/* Receives at most burst frames into pk; counts in q what has no place in a buffer. */
uint32_t cnp_socket_receive(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t burst);

/* Sends n frames, in order, until the kernel has no place for more; frames that it refuses for ever are lost. Sets q->sent. */
void cnp_socket_send(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t n);

#endif
