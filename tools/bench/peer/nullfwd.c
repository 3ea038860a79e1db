/* The floor: takes bursts from one port to the other and back, and nothing else.
 * Arguments: EAL's, "--", the burst. It takes the first two ports there are. */
#include "eal.h"

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

static void
set_up(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };

	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 || rte_eth_rx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL, pool) != 0 ||
	    rte_eth_tx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL) != 0 || rte_eth_dev_start(port) != 0)
		die("a port can't be set up");
}

static uint64_t
forward(uint16_t from, uint16_t to, uint16_t burst)
{
	struct rte_mbuf *pk[BURST_MAX];
	uint16_t n = rte_eth_rx_burst(from, 0, pk, burst);
	uint16_t sent = rte_eth_tx_burst(to, 0, pk, n);

	if (unlikely(sent < n))
		rte_pktmbuf_free_bulk(&pk[sent], n - sent);
	return sent;
}

int
main(int argc, char **argv)
{
	int eal = start_eal(argc, argv);
	struct rte_mempool *pool;
	char what[16];
	uint16_t burst;
	uint64_t ms;

	if (argc - eal != 2 || rte_eth_dev_count_avail() < 2)
		die("expected a burst, and two ports");
	burst = (uint16_t)atoi(argv[eal + 1]);
	if (burst < 1 || burst > BURST_MAX)
		die("expected a burst of 1 to 64");
	pool = rte_pktmbuf_pool_create("pool", 8192, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		die(rte_strerror(rte_errno));
	set_up(0, pool);
	set_up(1, pool);
	ready();
	while (question(what, &ms)) {
		uint64_t ops = 0, began = wall_ns(), cpu = cpu_ns();

		do {
			for (int i = 0; i < 1024; i++)
				ops += forward(0, 1, burst) + forward(1, 0, burst);
		} while (cpu_ns() - cpu < ms * 1000000);
		answer(ops, cpu_ns() - cpu, wall_ns() - began);
	}
	return 0;
}
