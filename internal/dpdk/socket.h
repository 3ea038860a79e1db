/* A worker's packet sockets on one of the kernel's interfaces. */
#ifndef CNPGATE_SOCKET_H
#define CNPGATE_SOCKET_H

#include <stdint.h>

#include "batch.h"

/*
 * rx is a packet socket bound to the interface, with PACKET_VNET_HDR and PACKET_AUXDATA; tx one that receives nothing, with
 * PACKET_QDISC_BYPASS. Both belong to the caller, who may replace them (dup3) while frames move. NULL without memory.
 */
struct cnp_socket *cnp_socket_new(int rx, int tx, struct rte_mempool *pool, uint32_t capacity);

/* Frees the buffers that wait for frames, and the memory. */
void cnp_socket_free(struct cnp_socket *s);

/* Frames for which there was no buffer. */
uint64_t cnp_socket_no_buffer(const struct cnp_socket *s);

/*
 * Discards frames that no worker has received: fetched packets, the rest of a packet that is being segmented, and packets that wait in
 * the kernel, up to max. Returns the number of frames; a large packet in the kernel counts as one. No reception is allowed afterwards.
 */
uint32_t cnp_socket_discard(struct cnp_socket *s, uint32_t max);

/*
 * Receives at most burst frames into pk; counts in q frames that don't fit into a buffer, and frames with offloads that can't be
 * completed.
 */
uint32_t cnp_socket_receive(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t burst);

/* Sends n frames, in order, until the kernel has no space for more; frames that it always refuses are lost. Sets q->sent. */
void cnp_socket_send(struct cnp_queue *q, struct rte_mbuf **pk, uint32_t n);

#endif
