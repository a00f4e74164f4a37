/*
 * later.h - operations of libfuse 3.17 (tmpfile) and 3.18 (statx) for file systems that are built
 * with older headers too.
 *
 * The table of operations only ever grows at its end, and fuse_session_new() is told its size: a
 * library that knows more calls more. One that does not would warn of the longer table, so it gets
 * the short one; fuse_reply_statx() tells them apart.
 */
#ifndef BACKENDS_LATER_H
#define BACKENDS_LATER_H

#include <fuse_lowlevel.h>
#include <stddef.h>
#include <sys/stat.h>

/* Initialised as {.ops = {...}, .LATER_TMPFILE = ..., .LATER_STATX = ...}: with the headers that
 * have them they stand in the table itself. */
struct later_ops {
    struct fuse_lowlevel_ops ops;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
#define LATER_TMPFILE ops.tmpfile
#else
#define LATER_TMPFILE tmpfile
    void (*tmpfile)(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi);
#endif
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
#define LATER_STATX ops.statx
#else
#define LATER_STATX statx
    void (*statx)(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi);
#endif
};

int fuse_reply_statx(fuse_req_t req, int flags, struct statx *stx, double attr_timeout)
    __attribute__((weak));

/* What to tell fuse_session_new() of a struct later_ops. */
static inline size_t later_ops_size(void)
{
    return fuse_reply_statx ? sizeof(struct later_ops) : sizeof(struct fuse_lowlevel_ops);
}

#endif
