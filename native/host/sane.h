/*
 * sane.h - attributes that a file system can mean, what is shown of them, and where a file is full.
 */
#ifndef DF_HOST_SANE_H
#define DF_HOST_SANE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/calls.h"
#include "core/export.h"

/* False: an unknown type, or a negative size. The kernel calls such an answer an error, too. A bit
 * for each type: this is asked of every answer. */
static inline bool df_sane(const struct stat *st)
{
#define DF_TYPE_BIT(type) (1U << ((type) >> 12))
    const unsigned types = DF_TYPE_BIT(S_IFREG) | DF_TYPE_BIT(S_IFDIR) | DF_TYPE_BIT(S_IFLNK) |
                           DF_TYPE_BIT(S_IFCHR) | DF_TYPE_BIT(S_IFBLK) | DF_TYPE_BIT(S_IFIFO) |
                           DF_TYPE_BIT(S_IFSOCK);
    return (types & DF_TYPE_BIT(st->st_mode & S_IFMT)) && st->st_size >= 0;
#undef DF_TYPE_BIT
}

/* Where an append begins, by the size of the file or -errno. Within a call's reach of the largest
 * offset nothing is appended: generic_write_checks() of the kernel. */
static inline off_t df_append_start(off_t size)
{
    return DF_LIKELY(size <= INT64_MAX - (off_t)DF_RW_MAX) ? size : -EFBIG;
}

static inline long df_shown_nsec(long nsec)
{
    return (uint32_t)nsec < 1000000000 ? (uint32_t)nsec : 999999999;
}

/* A block for I/O is a power of two, 4096 bytes where the plugin leaves it out. */
static inline blksize_t df_shown_blksize(blksize_t size)
{
    uint32_t told = (uint32_t)size;

    if (DF_LIKELY(told == 4096) || told == 0)
        return 4096;
    return (blksize_t)1 << (31 - __builtin_clz(told));
}

/* What is no device has no such number, whatever the plugin says: init_special_inode(). */
static inline dev_t df_shown_rdev(const struct stat *st)
{
    return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? (uint32_t)st->st_rdev : 0;
}

/* As the attributes come out of the kernel: FUSE's messages have 32 bits for most of them, and
 * fuse_change_attributes() takes what it can of these. */
static inline void df_show(struct stat *st)
{
    st->st_mode &= S_IFMT | 07777;
    st->st_nlink = (uint32_t)st->st_nlink;
    st->st_rdev = df_shown_rdev(st);
    st->st_blksize = df_shown_blksize(st->st_blksize);
    st->st_atim.tv_nsec = df_shown_nsec(st->st_atim.tv_nsec);
    st->st_mtim.tv_nsec = df_shown_nsec(st->st_mtim.tv_nsec);
    st->st_ctim.tv_nsec = df_shown_nsec(st->st_ctim.tv_nsec);
}

#endif
