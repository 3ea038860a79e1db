/* Capabilities (capabilities(7)) belong to threads. Go changes those of all threads only in programs without cgo, so this does it by a signal. */
#ifndef CNPGATE_CAPABILITIES_H
#define CNPGATE_CAPABILITIES_H

#include <stdint.h>

/* Installs a handler of the signal, by which a thread gives up every capability but those of keep, and the right to get others by execve.
 * 0, or a negative errno. */
int cnp_capabilities_begin(int signal, uint64_t keep);
/* Installs the handler again that was there before. */
void cnp_capabilities_end(int signal);

#endif
