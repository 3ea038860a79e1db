//go:build !nodpdk

#include "ring.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_lcore.h>

int
ring_errno(void)
{
	return rte_errno;
}

int
ring_port(const char *name, struct rte_ring **rx, unsigned int n_rx, struct rte_ring **tx, unsigned int n_tx)
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

int
ring_port_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret == 0)
		ret = rte_eth_dev_close(port);
	return ret == 0 ? rte_dev_remove(info.device) : ret;
}

int
ring_inject(struct rte_ring *ring, struct rte_mempool *pool, const void *bytes, uint32_t len, uint32_t segment)
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
		memcpy(to, (const char *)bytes + done, n);
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
ring_collect(struct rte_ring *ring, void *bytes, uint32_t room)
{
	struct rte_mbuf *m;
	uint32_t len;
	const void *data;

	if (rte_ring_dequeue(ring, (void **)&m) != 0)
		return -1;
	len = RTE_MIN(m->pkt_len, room);
	data = rte_pktmbuf_read(m, 0, len, bytes);
	if (data != bytes)
		memcpy(bytes, data, len);
	rte_pktmbuf_free(m);
	return (int)len;
}
