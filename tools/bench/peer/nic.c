/* Ports that cost a core what a NIC does, for cnpgate and the programs beside it alike. Preloaded into a program (LD_PRELOAD), it makes each port
 * of DPDK's net_ring that has such arguments one of them, the memory being each queue's:
 *
 *     net_ring0,queues=1,frames=/tmp/fabric.pcap,memory=268435456
 *
 * A ring moves pointers to mbufs, and touches no frame. What the program transmits comes back from the ring, as blank mbufs: reception points each
 * to the next frame of the port's memory, and sets what a NIC's driver sets. The memory has the capture's frames over and over, at random places,
 * written once. If it is much larger than the cache, headers are cold, as after DMA without DDIO; if it fits L3, but not L2, they are as with it.
 * Of a frame only the first HEAD bytes exist: nobody reads a payload. What a program writes into a header stays there.
 *
 * DPDK's headers for drivers aren't in Debian's libdpdk-dev: so this is a callback of a port's reception, by the public API. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_random.h>

#define HEAD 576    /* bytes of a frame that exist: more than the longest message of the connection manager with its headers */
#define PLACE 192   /* bytes between places of frames: an odd number of cache lines, as between the buffers of a mempool */
#define DEPTH 511   /* mbufs in a port's ring: those that wait in a NIC's queues */
#define WINDOW 4096 /* frames */
#define PAGE (2 << 20)
#define RING_QUEUE 24 /* bytes of a queue of net_ring */

struct frame {
	uint32_t place; /* in units of PLACE */
	uint16_t len;
};

struct nic {
	uint8_t *memory;
	struct frame *frames;
	uint32_t n, next;
	struct rte_mempool *blank;
};

static void
die(const char *what, const char *of)
{
	fprintf(stderr, "nic: %s: %s\n", of, what);
	exit(1);
}

static void *
large(size_t bytes)
{
	void *p;

	bytes = RTE_ALIGN(bytes, (size_t)PAGE);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED && (p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static uint8_t *
read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *octets;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0)
		die("can't be read", path);
	*size = (size_t)ftell(f);
	rewind(f);
	octets = malloc(*size + 1);
	if (octets == NULL || fread(octets, 1, *size, f) != *size)
		die("can't be read", path);
	fclose(f);
	return octets;
}

/* The header of a pcap file, and that of a packet in it: its captured length is at 8. The bench program writes in this machine's byte order. */
#define FILE_HEADER 24
#define PACKET_HEADER 16

static inline uint32_t
length_of(const uint8_t *packet)
{
	uint32_t len;

	memcpy(&len, packet + 8, sizeof(len));
	return len;
}

static inline uint32_t
places_of(uint32_t len)
{
	return (RTE_MIN(len, (uint32_t)HEAD) + PLACE - 1) / PLACE;
}

/* Fills the memory with the frames of a capture, as often as they fit and at least once. */
static void
fill(struct nic *d, const char *path, size_t memory)
{
	size_t size, once = 0, at, *start;
	uint32_t n = 0, copies, place = 0, *order;
	uint8_t *capture = read_file(path, &size);

	for (at = FILE_HEADER; at + PACKET_HEADER <= size; at += PACKET_HEADER + length_of(capture + at), n++)
		once += places_of(length_of(capture + at)) * PLACE;
	if (n == 0 || at != size)
		die("expected a pcap file with frames", path);
	copies = (uint32_t)RTE_MAX(memory / once, (size_t)1);
	d->n = n * copies;
	d->memory = large(once * copies);
	d->frames = large(d->n * sizeof(*d->frames));
	if (d->memory == MAP_FAILED || (void *)d->frames == MAP_FAILED)
		die("its memory can't be had", path);
	/*
	 * Frames are received in the capture's order, and lie in memory in another, so that a processor foresees none; but within windows, as a NIC's
	 * buffers lie in little memory: its pages' addresses are known to the core.
	 */
	order = malloc(d->n * sizeof(*order));
	start = malloc(n * sizeof(*start));
	if (order == NULL || start == NULL)
		die("its memory can't be had", path);
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t begin = i - i % WINDOW, j = begin + (uint32_t)rte_rand_max(i - begin + 1);

		order[i] = order[j];
		order[j] = i;
	}
	at = FILE_HEADER;
	for (uint32_t i = 0; i < n; i++, at += PACKET_HEADER + length_of(capture + at))
		start[i] = at;
	for (uint32_t i = 0; i < d->n; i++) {
		const uint8_t *packet = capture + start[order[i] % n];
		uint32_t len = length_of(packet);

		d->frames[order[i]] = (struct frame){ .place = place, .len = (uint16_t)len };
		memcpy(d->memory + (size_t)place * PLACE, packet + PACKET_HEADER, RTE_MIN(len, (uint32_t)HEAD));
		place += places_of(len);
	}
	free(order);
	free(start);
	free(capture);
}

/* Puts blank mbufs into the port's ring, when there are none: at the start, and should the program have dropped them all. */
static uint16_t
refill(struct nic *d, uint16_t port, uint16_t queue)
{
	struct rte_mbuf *pk[DEPTH];
	uint16_t n = (uint16_t)RTE_MIN(rte_mempool_avail_count(d->blank), (unsigned int)DEPTH);

	if (n != 0 && rte_mempool_get_bulk(d->blank, (void **)pk, n) == 0)
		n = rte_eth_tx_burst(port, queue, pk, n);
	return 0;
}

static uint16_t
receive(uint16_t port, uint16_t queue, struct rte_mbuf *pk[], uint16_t n, uint16_t most, void *of)
{
	struct nic *d = of;
	uint16_t kept = 0;

	(void)most;
	if (unlikely(n == 0))
		return refill(d, port, queue);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pk[i];
		const struct frame *f = &d->frames[d->next];

		if (unlikely(m->pool != d->blank)) { /* what the program itself made, and has sent */
			rte_pktmbuf_free(m);
			continue;
		}
		if (++d->next == d->n)
			d->next = 0;
		m->buf_addr = d->memory + (size_t)f->place * PLACE;
		m->data_off = 0;
		m->port = port;
		m->ol_flags = 0;
		m->packet_type = 0;
		m->pkt_len = m->data_len = f->len;
		pk[kept++] = m;
	}
	return kept;
}

/* Makes a blank mbuf's private area the same as those of the program's own mbufs, in which it may keep what it has set once (OVS). */
static void
like(struct rte_mempool *blank, void *own, void *object, unsigned int i)
{
	(void)i;
	memcpy((struct rte_mbuf *)object + 1, (struct rte_mbuf *)own + 1, rte_pktmbuf_priv_size(blank));
}

static void
apart(void **queue)
{
	void *own = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_SIZE);

	if (own == NULL)
		die("a queue can't be had", "net_ring");
	*queue = memcpy(own, *queue, RING_QUEUE);
}

/* The arguments of a port, "" for none. */
static const char *
arguments(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);

	return args != NULL && args->args != NULL ? args->args : "";
}

static bool
like_nic(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_ring") == 0 && arguments(info)[0] != '\0';
}

static size_t
number_of(const char *args, const char *name)
{
	const char *at = strstr(args, name);

	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

static void
install(uint16_t port, uint16_t queue, const char *args, struct rte_mempool *pool)
{
	static struct rte_mempool *blank;
	struct rte_mbuf *own;
	const char *path = strstr(args, "frames=");
	struct nic *d = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*d), (size_t)RTE_CACHE_LINE_SIZE)); /* its own: a queue is one worker's */
	char name[4096] = "";

	if (d == NULL || path == NULL || sscanf(path, "frames=%4095[^,]", name) != 1)
		die("expected queues=NUMBER,frames=PCAP,memory=BYTES", args);
	memset(d, 0, sizeof(*d));
	if (blank == NULL) {
		blank = rte_pktmbuf_pool_create("nic", 2 * DEPTH * number_of(args, "queues="), 0, rte_pktmbuf_priv_size(pool), 0, SOCKET_ID_ANY);
		if (blank == NULL || (own = rte_pktmbuf_alloc(pool)) == NULL)
			die("the pool of mbufs can't be made", args);
		rte_mempool_obj_iter(blank, like, own);
		rte_pktmbuf_free(own);
	}
	d->blank = blank;
	fill(d, name, number_of(args, "memory="));
	if (rte_eth_add_rx_callback(port, queue, receive, d) == NULL)
		die("the reception has no callback", args);
}

/* These stand before DPDK's own. */

/* net_ring has as many queues as EAL has threads, but each loops to itself: what a program sends by one that it doesn't poll would be lost. */
int
rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	int (*own)(uint16_t, struct rte_eth_dev_info *) = dlsym(RTLD_NEXT, __func__);
	int ret = own(port, info);

	if (ret == 0 && like_nic(info))
		info->max_rx_queues = info->max_tx_queues = number_of(arguments(info), "queues=");
	return ret;
}

int
rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned int socket, const struct rte_eth_rxconf *conf,
		struct rte_mempool *pool)
{
	int (*own)(uint16_t, uint16_t, uint16_t, unsigned int, const struct rte_eth_rxconf *, struct rte_mempool *) = dlsym(RTLD_NEXT, __func__);
	int ret = own(port, queue, descriptors, socket, conf, pool);
	struct rte_eth_dev_info info;

	if (ret == 0 && rte_eth_dev_info_get(port, &info) == 0 && like_nic(&info))
		install(port, queue, arguments(&info), pool);
	return ret;
}

/* A queue of net_ring is a pointer and two counters, so those of two workers lie in one cache line, which a NIC's don't. Each gets its own, whose counters
 * the port's statistics leave out. */
int
rte_eth_dev_start(uint16_t port)
{
	int (*own)(uint16_t) = dlsym(RTLD_NEXT, __func__);
	int ret = own(port);
	struct rte_eth_dev_info info;

	if (ret != 0 || rte_eth_dev_info_get(port, &info) != 0 || !like_nic(&info) || info.nb_rx_queues == 1)
		return ret;
	for (uint16_t queue = 0; queue < info.nb_rx_queues; queue++)
		apart(&rte_eth_fp_ops[port].rxq.data[queue]);
	for (uint16_t queue = 0; queue < info.nb_tx_queues; queue++)
		apart(&rte_eth_fp_ops[port].txq.data[queue]);
	return 0;
}
