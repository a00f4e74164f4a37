/*
 * statx.h - a plugin's answer to statx, for both lanes. _GNU_SOURCE, for struct statx.
 */
#ifndef DF_HOST_STATX_H
#define DF_HOST_STATX_H

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/ops.h"

/* All that FUSE tells, whatever the caller wants: fuse_do_statx() of the kernel. */
#define DF_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

static inline struct timespec df_statx_time(struct statx_timestamp time)
{
    return (struct timespec){.tv_sec = time.tv_sec,
                             .tv_nsec = time.tv_nsec < 1000000000 ? time.tv_nsec : 999999999};
}

/* As the kernel does, all basic fields as they are, whatever of them the mask names. The caller is
 * told a type in any case, which is the host's to add. */
static inline void df_statx_take(struct df_statx *to, const struct statx *from)
{
    memset(to, 0, sizeof(*to));
    to->mask = from->stx_mask & DF_STATX_MASK;
    to->btime = df_statx_time(from->stx_btime);
    to->st = (struct stat){
        .st_ino = from->stx_ino,
        .st_mode = from->stx_mode,
        .st_nlink = from->stx_nlink,
        .st_uid = from->stx_uid,
        .st_gid = from->stx_gid,
        .st_rdev = makedev(from->stx_rdev_major, from->stx_rdev_minor),
        .st_size = (off_t)from->stx_size,
        .st_blksize = from->stx_blksize,
        .st_blocks = (blkcnt_t)from->stx_blocks,
        .st_atim = df_statx_time(from->stx_atime),
        .st_mtim = df_statx_time(from->stx_mtime),
        .st_ctim = df_statx_time(from->stx_ctime),
    };
}

#endif
