/*
 * filter.h - trapping system calls where the kernel has no Syscall User Dispatch.
 */
#ifndef DF_INTERCEPT_FILTER_H
#define DF_INTERCEPT_FILTER_H

#include "intercept/intercept.h"

#define DFI_FILTER_DATA 0xdf1 /* si_errno of a trap that our filter made */

/* Whether the kernel has Syscall User Dispatch (Linux 5.11 and later; container policies). */
bool dfi_dispatch_supported(void);

/*
 * Installs a seccomp filter that traps every call but the core's, in this process and all that
 * come of it, for ever. Only for a core that lies at the same addresses in all of them. 0 or
 * -errno.
 */
long dfi_filter_install(void);

/* Set where the filter stands in for Syscall User Dispatch. */
extern bool dfi_filtered;

#endif
