/*
 * start.h - the core comes to life in a process: what both doors do.
 */
#ifndef DF_INTERCEPT_START_H
#define DF_INTERCEPT_START_H

#include "intercept/intercept.h"

/*
 * Everything but arming: the run of a descriptor is mapped, the calling thread gets its state, the
 * handlers of paths and descriptors their configuration (text: what the program before execve left
 * for this one, or NULL). NULL and a negative errno in *error when the program cannot be run.
 */
struct dfi_thread *dfi_start(int run_fd, const char *text, size_t size, long *error);

/* Why a run could not be joined, in words for its user. */
const char *dfi_start_refusal(long error);

#endif
