/*
 * reply.c - fuse_reply_*, fuse_req_* and directory entries: the node lane answers its requests
 * itself, so each of these is one jump.
 */
#include "libfuse/abi.h"
#include "lowlevel/lowlevel.h"

int fuse_reply_err(fuse_req_t req, int err)
{
    return df_reply_err(req, err);
}

void fuse_reply_none(fuse_req_t req)
{
    df_reply_none(req);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
    return df_reply_entry(req, e);
}

int fuse_reply_create(fuse_req_t req, const struct fuse_entry_param *e,
                      const struct fuse_file_info *fi)
{
    return df_reply_create(req, e, fi);
}

int fuse_reply_attr(fuse_req_t req, const struct stat *attr, double attr_timeout)
{
    return df_reply_attr(req, attr, attr_timeout);
}

int fuse_reply_readlink(fuse_req_t req, const char *link)
{
    return df_reply_readlink(req, link);
}

int fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
    return df_reply_open(req, fi);
}

int fuse_reply_write(fuse_req_t req, size_t count)
{
    return df_reply_write(req, count);
}

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
    return df_reply_buf(req, buf, size);
}

int fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
    return df_reply_iov(req, iov, count);
}

int fuse_reply_statfs(fuse_req_t req, const struct statvfs *stbuf)
{
    return df_reply_statfs(req, stbuf);
}

int fuse_reply_xattr(fuse_req_t req, size_t count)
{
    return df_reply_xattr(req, count);
}

int fuse_reply_lock(fuse_req_t req, const struct flock *lock)
{
    return df_reply_lock(req, lock);
}

int fuse_reply_bmap(fuse_req_t req, uint64_t idx)
{
    return df_reply_bmap(req, idx);
}

int fuse_reply_ioctl(fuse_req_t req, int result, const void *buf, size_t size)
{
    return df_reply_ioctl(req, result, buf, size);
}

int fuse_reply_ioctl_iov(fuse_req_t req, int result, const struct iovec *iov, int count)
{
    return df_reply_ioctl_iov(req, result, iov, count);
}

int fuse_reply_ioctl_retry(fuse_req_t req, const struct iovec *in_iov, size_t in_count,
                           const struct iovec *out_iov, size_t out_count)
{
    return df_reply_ioctl_retry(req, in_iov, in_count, out_iov, out_count);
}

int fuse_reply_poll(fuse_req_t req, unsigned revents)
{
    return df_reply_poll(req, revents);
}

int fuse_reply_lseek(fuse_req_t req, off_t off)
{
    return df_reply_lseek(req, off);
}

/* ---- directory entries ------------------------------------------------------------------- */

size_t fuse_add_direntry(fuse_req_t req, char *buf, size_t bufsize, const char *name,
                         const struct stat *stbuf, off_t off)
{
    return df_reply_direntry(req, buf, bufsize, name, stbuf, off);
}

size_t fuse_add_direntry_plus(fuse_req_t req, char *buf, size_t bufsize, const char *name,
                              const struct fuse_entry_param *e, off_t off)
{
    return df_reply_direntry_plus(req, buf, bufsize, name, e, off);
}

/* ---- the request -------------------------------------------------------------------------- */

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
    return df_req_ctx(req);
}

int fuse_req_getgroups(fuse_req_t req, int size, gid_t list[])
{
    return df_req_getgroups(req, size, list);
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    df_req_interrupt_func(req, func, data);
}

int fuse_req_interrupted(fuse_req_t req)
{
    return df_req_interrupted(req);
}

/* The flags are of AT_STATX_SYNC_TYPE, and nobody has read them yet. */
int fuse_reply_statx(fuse_req_t req, int flags, const struct statx *st, double attr_timeout)
{
    (void)flags;
    return df_reply_statx(req, st, attr_timeout);
}
