#ifndef CNP_SUPERVISE_H
#define CNP_SUPERVISE_H

#include <linux/filter.h>

/*
 * Puts all threads of the process under a filter, and starts a thread that answers for calls that the filter doesn't allow: they fail with EPERM, or go on if audit is
 * set. Their numbers are written to the pipe `calls`, an int each; those that don't fit are left out. Returns 0, or the negative error number.
 */
int cnp_supervise(const struct sock_filter *filter, unsigned short instructions, int audit, int calls);

#endif
