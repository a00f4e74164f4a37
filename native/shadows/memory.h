/*
 * memory.h - the memory that a batch job or container may have, by the limit of its cgroup, which
 * `directfuse run` has found (process/memory_limit.h). Memory of mapped files counts there and
 * cannot be given up by the kernel: beyond the limit it kills.
 */
#ifndef DF_SHADOWS_MEMORY_H
#define DF_SHADOWS_MEMORY_H

#include "client/files.h"

#define DFI_CGROUP_MAX                                                                             \
    1024 /* bytes of the name of its directory; of a longer one nothing is known */

/* Whether so many bytes more leave a rest of the limit. Yes, where there is none, or where it
 * cannot be read: in a mount namespace that does not have the directory. */
bool dfi_memory_has_room(const struct dfi_files *files, uint64_t size);

#endif
