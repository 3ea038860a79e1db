/*
 * Helpers of the control path: EAL's log, and bit fields and inlines that cgo can't use. None of DPDK's headers is included here: cgo compiles each
 * file's several times, and some take a second.
 */
#ifndef CNPGATE_EAL_H
#define CNPGATE_EAL_H

#include <stddef.h>
#include <stdint.h>

/* Redirects EAL's log (by default stdout and syslog) and stores the first error since the last clear. */
int cnp_log_start(void);
/*
 * Destination of the log: records, a byte of level and some text, to a SOCK_SEQPACKET socket, which acknowledges those up to
 * RTE_LOG_CRIT; -1: text to stderr.
 */
void cnp_log_to(int fd);
void cnp_log_clear(void);
void cnp_log_first(char *out, size_t size);

int cnp_errno(void);

/* 1 up, 0 down, negative errno. */
int cnp_link(uint16_t port);

/* Mbit/s, 0 if it isn't known. */
uint32_t cnp_link_speed(uint16_t port);

/* Receives and discards the frames that wait in a queue, at most max; returns their number. */
uint32_t cnp_discard(uint16_t port, uint16_t queue, uint32_t max);

#endif
