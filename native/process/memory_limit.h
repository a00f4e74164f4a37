/*
 * memory_limit.h - the memory that a batch job or container may have (cgroups(7)), where that is
 * less than the machine has.
 */
#ifndef DF_PROCESS_MEMORY_LIMIT_H
#define DF_PROCESS_MEMORY_LIMIT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

struct df_memory_limit {
    uint64_t bytes;
    char directory[PATH_MAX]; /* of the cgroup */
};

/* The smallest of those that hold for this process. False: there is none, or it cannot be known. */
DF_PRIVATE_EXPORT bool df_memory_limit_find(struct df_memory_limit *limit);

/* Less than a sixteenth of it is left, the kernel's copies of files on disk not counted. */
bool df_memory_is_scarce(const struct df_memory_limit *limit);

/* Of so many bytes for a cache those that it may have: no more than an eighth of the limit. */
uint64_t df_memory_share(uint64_t bytes);

#endif
