/*
 * mounts.h - the kernel's lists of mounts, with those of the run.
 */
#ifndef DF_SHOWN_MOUNTS_H
#define DF_SHOWN_MOUNTS_H

#include "client/files.h"

/* The id that a mount has in mountinfo, far above any that the kernel has given out; `mount` is
 * that of native/core, the minor number of st_dev. */
static inline uint64_t dfi_mounts_id(int32_t mount)
{
    return (UINT64_C(1) << 30) + (uint32_t)mount;
}

/*
 * `fd` is what the kernel has opened by that absolute path. If it is /proc/<pid>/mountinfo,
 * /proc/<pid>/mounts or another name of these, a file takes its place that has the same lines and
 * behind them one for each mount: proc(5). The descriptor; or -errno, and fd is closed.
 */
long dfi_mounts_listed(const struct dfi_files *files, const char *path, int fd);

#endif
