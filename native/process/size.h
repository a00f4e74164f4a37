/*
 * size.h - sizes that users set by the environment, such as DIRECTFUSE_CACHE=256M.
 */
#ifndef DF_PROCESS_SIZE_H
#define DF_PROCESS_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "core/export.h"

/* Bytes. `*bytes` stays as it is where the variable is not set, or empty. 0; or -EINVAL, and words
 * that name it: it is no size, and must not be taken for a small one. */
DF_PRIVATE_EXPORT int df_size_of(const char *variable, uint64_t *bytes, char *message, size_t size);

#endif
