//go:build !nodpdk

#define _GNU_SOURCE
#include "eal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_first[512];

/* The first error is the cause ("No such device"); those that follow only say what could not be done because of it. */
static ssize_t
log_write(void *cookie, const char *text, size_t size)
{
	RTE_SET_USED(cookie);
	pthread_mutex_lock(&log_lock);
	if (log_first[0] == 0 && rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR) {
		size_t n = RTE_MIN(size, sizeof(log_first) - 1);

		memcpy(log_first, text, n);
		log_first[n] = 0;
	}
	pthread_mutex_unlock(&log_lock);
	fwrite(text, 1, size, stderr);
	return (ssize_t)size;
}

int
cnp_log_start(void)
{
	static const cookie_io_functions_t io = { .write = log_write };
	FILE *f = fopencookie(NULL, "w", io);

	return f == NULL ? -ENOMEM : rte_openlog_stream(f);
}

void
cnp_log_clear(void)
{
	pthread_mutex_lock(&log_lock);
	log_first[0] = 0;
	pthread_mutex_unlock(&log_lock);
}

void
cnp_log_first(char *out, size_t size)
{
	pthread_mutex_lock(&log_lock);
	snprintf(out, size, "%s", log_first);
	pthread_mutex_unlock(&log_lock);
}

int
cnp_errno(void)
{
	return rte_errno;
}

int
cnp_link(uint16_t port)
{
	struct rte_eth_link link;
	int ret = rte_eth_link_get_nowait(port, &link);

	return ret < 0 ? ret : link.link_status == RTE_ETH_LINK_UP;
}

uint32_t
cnp_discard(uint16_t port, uint16_t queue, uint32_t max)
{
	struct rte_mbuf *pk[64];
	uint32_t total = 0;

	while (total < max) {
		uint16_t n = rte_eth_rx_burst(port, queue, pk, RTE_DIM(pk));

		if (n == 0)
			break;
		rte_pktmbuf_free_bulk(pk, n);
		total += n;
	}
	return total;
}

int
cnp_eth_from_rings(const char *name, struct rte_ring **rx, unsigned int n_rx, struct rte_ring **tx, unsigned int n_tx)
{
	typedef int (*from_rings)(const char *, struct rte_ring *const *, unsigned int, struct rte_ring *const *, unsigned int,
		unsigned int);
	void *plugin = dlopen("librte_net_ring.so.23", RTLD_NOW);
	from_rings f = plugin == NULL ? NULL : (from_rings)dlsym(plugin, "rte_eth_from_rings");
	int port;

	if (f == NULL)
		return -ENOENT;
	port = f(name, rx, n_rx, tx, n_tx, rte_socket_id());
	return port < 0 ? -rte_errno : port;
}

/* A segment of 0 octets puts the frame in one piece. */
int
cnp_ring_inject(struct rte_ring *ring, struct rte_mempool *pool, const void *octets, uint32_t len, uint32_t segment)
{
	struct rte_mbuf *head = NULL;
	uint32_t done = 0;

	do {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		uint32_t n = segment == 0 ? len : RTE_MIN(segment, len - done);
		char *to = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)n);

		if (to == NULL || n > UINT16_MAX) {
			rte_pktmbuf_free(m);
			rte_pktmbuf_free(head);
			return m == NULL ? -ENOMEM : -EMSGSIZE;
		}
		memcpy(to, (const char *)octets + done, n);
		done += n;
		if (head == NULL)
			head = m;
		else if (rte_pktmbuf_chain(head, m) != 0) {
			rte_pktmbuf_free(m);
			rte_pktmbuf_free(head);
			return -EMSGSIZE;
		}
	} while (done < len);
	if (rte_ring_enqueue(ring, head) != 0) {
		rte_pktmbuf_free(head);
		return -ENOBUFS;
	}
	return 0;
}

int
cnp_ring_collect(struct rte_ring *ring, void *octets, uint32_t room)
{
	struct rte_mbuf *m;
	uint32_t len;
	const void *data;

	if (rte_ring_dequeue(ring, (void **)&m) != 0)
		return -1;
	len = RTE_MIN(m->pkt_len, room);
	data = rte_pktmbuf_read(m, 0, len, octets);
	if (data != octets)
		memcpy(octets, data, len);
	rte_pktmbuf_free(m);
	return (int)len;
}
