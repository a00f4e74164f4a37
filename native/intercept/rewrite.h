/*
 * rewrite.h - sites of system calls that trap, and turning them into jumps.
 */
#ifndef DF_INTERCEPT_REWRITE_H
#define DF_INTERCEPT_REWRITE_H

#include "intercept/intercept.h"

/*
 * A syscall instruction has trapped. Rewrites its site when that is worth it and possible. *nr is
 * corrected when the trap came from a site that another thread is rewriting this moment.
 */
void dfi_rewrite_hit(uintptr_t site, unsigned long *nr);

/* Whether sites are rewritten in this process; decided at start. */
extern bool dfi_rewrite_on;

#endif
