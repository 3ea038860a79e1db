//go:build !nodpdk

#define _GNU_SOURCE
#include "eal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_first[512];
static int log_fd = -1;

/*
 * Sends a record to the reader at the other end of log_fd, and waits until the reader has logged a record that may be the process's last.
 */
static int
log_pass(uint8_t level, const char *text, size_t size)
{
	struct iovec piece[] = { { &level, 1 }, { (void *)(uintptr_t)text, size } };
	struct msghdr m = { .msg_iov = piece, .msg_iovlen = 2 };
	struct pollfd answer = { .fd = log_fd, .events = POLLIN };
	char byte;

	if (log_fd < 0 || sendmsg(log_fd, &m, MSG_NOSIGNAL) < 0)
		return -1;
	if (level <= RTE_LOG_CRIT && poll(&answer, 1, 1000) == 1)
		(void)!recv(log_fd, &byte, 1, MSG_DONTWAIT);
	return 0;
}

/* The first error is the cause ("No such device"); later ones are only consequences. */
static ssize_t
log_write(void *cookie, const char *text, size_t size)
{
	int level = rte_log_cur_msg_loglevel();

	RTE_SET_USED(cookie);
	pthread_mutex_lock(&log_lock);
	if (log_first[0] == 0 && level <= (int)RTE_LOG_ERR) {
		size_t n = RTE_MIN(size, sizeof(log_first) - 1);

		memcpy(log_first, text, n);
		log_first[n] = 0;
	}
	if (log_pass((uint8_t)level, text, size) != 0)
		fwrite(text, 1, size, stderr);
	pthread_mutex_unlock(&log_lock);
	return (ssize_t)size;
}

void
cnp_log_to(int fd)
{
	pthread_mutex_lock(&log_lock);
	log_fd = fd;
	pthread_mutex_unlock(&log_lock);
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
cnp_link_speed(uint16_t port)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(port, &link) < 0 || link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
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
