/* The one call an iteration. */
#ifndef CNPGATE_CROSSING_H
#define CNPGATE_CROSSING_H

#include "batch.h"

/* Frees, sends, receives and refills; returns CLOCK_MONOTONIC in nanoseconds. batch is a struct cnp_batch *. */
int64_t cnp_exchange(uintptr_t batch);

/* Frees the first n_free buffers of the batch and nothing else. */
void cnp_release(uintptr_t batch);

#endif
