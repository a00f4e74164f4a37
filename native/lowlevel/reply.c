/*
 * reply.c - fuse_reply_*: a reply goes straight to where the request wants it, then the
 * request is the caller's again.
 */
#include <limits.h>
#include <linux/fuse.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lend.h"
#include "host/answer.h"
#include "host/bufvec.h"
#include "host/sane.h"
#include "host/statx.h"
#include "lowlevel/request.h"

/* A struct df_node_found is what the plugin calls a fuse_entry_param. */
_Static_assert(sizeof(struct df_node_found) == sizeof(struct fuse_entry_param) &&
                   offsetof(struct df_node_found, attr) ==
                       offsetof(struct fuse_entry_param, attr) &&
                   offsetof(struct df_node_found, attr_timeout) ==
                       offsetof(struct fuse_entry_param, attr_timeout) &&
                   offsetof(struct df_node_found, entry_timeout) ==
                       offsetof(struct fuse_entry_param, entry_timeout),
               "an answer to LOOKUP is copied as one");

/* The last touch: from here on the request may be gone. Inside the operation the caller looks at
 * the state only when the operation has returned, on this very thread. */
static void finish(struct fuse_req *req, ssize_t result)
{
    req->result = result;
    if (DF_LIKELY(req->thread == df_request_here()))
        atomic_store_explicit(&req->state, DF_REQUEST_REPLIED, memory_order_relaxed);
    else if (atomic_exchange_explicit(&req->state, DF_REQUEST_REPLIED, memory_order_acq_rel) ==
             DF_REQUEST_AWAITED)
        syscall(SYS_futex, &req->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int refuse(struct fuse_req *req)
{
    finish(req, -EIO);
    return -EINVAL;
}

/* 0: go on. A second reply or one of a kind that the request does not take ends here. */
static inline int begin(struct fuse_req *req, uint32_t kind)
{
    if (DF_UNLIKELY(atomic_load_explicit(&req->state, memory_order_relaxed) == DF_REQUEST_REPLIED))
        return -ENOENT;
    return DF_LIKELY(req->takes & kind) ? 0 : refuse(req);
}

/* A reply that is a number. */
static int reply_number(struct fuse_req *req, uint32_t kind, ssize_t number)
{
    int error = begin(req, kind);

    if (error == 0)
        finish(req, number);
    return error;
}

/* ---- errors and structures ----------------------------------------------------------------- */

/* No error is an answer without a body, and so one to a question for data: there are none. What can
 * be no error number becomes ERANGE, as in libfuse. */
int df_reply_err(fuse_req_t req, int err)
{
    if (err == 0)
        return reply_number(req, DF_TAKES_OK | DF_TAKES_DATA | DF_TAKES_LINK, 0);
    return reply_number(req, ~0u, err > 0 && err < DF_ANSWER_ERRORS ? -err : -ERANGE);
}

void df_reply_none(fuse_req_t req)
{
    reply_number(req, DF_TAKES_NONE, 0);
}

int df_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
    int error = begin(req, DF_TAKES_ENTRY);

    if (error)
        return error;
    memcpy(req->found, entry, sizeof(*entry));
    df_show(&req->found->attr);
    finish(req, 0);
    return 0;
}

/* It may be the program's own, and then no longer than its headers made it. */
static void take_file_info(struct fuse_req *req, const struct fuse_file_info *fi)
{
    if (fi != req->fi)
        memcpy(req->fi, fi, DF_FILE_INFO_3);
}

int df_reply_create(fuse_req_t req, const struct fuse_entry_param *entry,
                    const struct fuse_file_info *fi)
{
    int error = begin(req, DF_TAKES_CREATE);

    if (error)
        return error;
    memcpy(req->found, entry, sizeof(*entry));
    df_show(&req->found->attr);
    take_file_info(req, fi);
    finish(req, 0);
    return 0;
}

int df_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
    int error = begin(req, DF_TAKES_OPEN);

    if (error)
        return error;
    take_file_info(req, fi);
    finish(req, 0);
    return 0;
}

int df_reply_attr(fuse_req_t req, const struct stat *attr, double attr_timeout)
{
    int error = begin(req, DF_TAKES_ATTR);

    if (error)
        return error;
    req->attr->st = *attr;
    df_show(&req->attr->st);
    req->attr->timeout = attr_timeout;
    finish(req, 0);
    return 0;
}

int df_reply_statx(fuse_req_t req, const struct statx *from, double attr_timeout)
{
    int error = begin(req, DF_TAKES_STATX);

    if (error)
        return error;
    df_statx_take(&req->statx->found, from);
    df_show(&req->statx->found.st);
    req->statx->timeout = attr_timeout;
    finish(req, 0);
    return 0;
}

int df_reply_statfs(fuse_req_t req, const struct statvfs *stbuf)
{
    int error = begin(req, DF_TAKES_STATFS);

    if (error)
        return error;
    *req->statfs = *stbuf;
    finish(req, 0);
    return 0;
}

int df_reply_lock(fuse_req_t req, const struct flock *lock)
{
    int error = begin(req, DF_TAKES_LOCK);

    if (error)
        return error;
    *req->lock = *lock;
    finish(req, 0);
    return 0;
}

/* ---- numbers ------------------------------------------------------------------------------- */

int df_reply_write(fuse_req_t req, size_t size)
{
    if (size > req->room) /* more than there was to write */
        return reply_number(req, 0, 0);
    return reply_number(req, DF_TAKES_WRITE, (ssize_t)size);
}

/* The answer of the protocol has 32 bits. */
int df_reply_xattr(fuse_req_t req, size_t size)
{
    return reply_number(req, DF_TAKES_XATTR, (uint32_t)size);
}

int df_reply_poll(fuse_req_t req, unsigned revents)
{
    return reply_number(req, DF_TAKES_POLL, (ssize_t)revents);
}

/* No file has a place below zero: vfs_setpos() of the kernel. */
int df_reply_lseek(fuse_req_t req, off_t off)
{
    return reply_number(req, DF_TAKES_LSEEK, off < 0 ? -EINVAL : off);
}

/* BMAP is never sent. */
int df_reply_bmap(fuse_req_t req, uint64_t idx)
{
    (void)idx;
    return reply_number(req, 0, 0);
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Copies to the front of what is left of req->iov and moves that on. */
static void scatter(struct fuse_req *req, const char *from, size_t size)
{
    while (size > 0) {
        size_t part = size < req->iov->iov_len ? size : req->iov->iov_len;

        memcpy(req->iov->iov_base, from, part);
        from += part;
        size -= part;
        req->iov->iov_base = (char *)req->iov->iov_base + part;
        req->iov->iov_len -= part;
        if (req->iov->iov_len == 0 && req->iovcnt > 1) {
            req->iov++;
            req->iovcnt--;
        }
    }
}

/* A target ends at its NUL, if it has one. */
static int take_target(struct fuse_req *req, const char *target, size_t size)
{
    if (size >= PATH_MAX)
        return refuse(req);
    size = strnlen(target, size);
    if (size > req->iov->iov_len)
        size = req->iov->iov_len;
    memcpy(req->iov->iov_base, target, size);
    finish(req, (ssize_t)size);
    return 0;
}

int df_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
    int error = begin(req, DF_TAKES_DATA | DF_TAKES_LINK);

    if (error)
        return error;
    if (DF_UNLIKELY(size > req->room))
        return req->takes & DF_TAKES_LINK ? take_target(req, buf, size) : refuse(req);
    if (DF_UNLIKELY(size == 0)) { /* buf may be NULL: fuse_reply_buf(3) */
        finish(req, 0);
        return 0;
    }
    if (DF_UNLIKELY(req->takes & DF_TAKES_PLACE) && df_lend_has(buf, size))
        req->lent = buf;
    else if (DF_LIKELY(req->iovcnt == 1))
        memcpy(req->iov->iov_base, buf, size);
    else
        scatter(req, buf, size);
    finish(req, (ssize_t)size);
    return 0;
}

int df_reply_readlink(fuse_req_t req, const char *target)
{
    return df_reply_buf(req, target, strlen(target));
}

int df_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
    int error = begin(req, DF_TAKES_DATA);
    size_t size = 0;

    if (error)
        return error;
    for (int i = 0; i < count; i++)
        size += iov[i].iov_len;
    if (size > req->room)
        return refuse(req);
    for (int i = 0; i < count; i++)
        scatter(req, iov[i].iov_base, iov[i].iov_len);
    finish(req, (ssize_t)size);
    return 0;
}

/* Descriptors are read straight into the caller's memory, so there is nothing for the flags, which
 * are about splice(2), to choose. */
int df_reply_data(fuse_req_t req, struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    int error = begin(req, DF_TAKES_DATA);
    size_t size = 0;

    (void)flags;
    if (error)
        return error;
    for (size_t i = bufv->idx; i < bufv->count; i++)
        size += bufv->buf[i].size - (i == bufv->idx ? bufv->off : 0);
    if (size > req->room)
        return refuse(req);
    finish(req, df_bufvec_take(bufv, req->iov, req->iovcnt));
    return 0;
}

/* ---- ioctl --------------------------------------------------------------------------------- */

int df_reply_ioctl_iov(fuse_req_t req, int result, const struct iovec *iov, int count)
{
    int error = begin(req, DF_TAKES_IOCTL);
    size_t size = 0;

    if (error)
        return error;
    for (int i = 0; i < count; i++)
        size += iov[i].iov_len;
    if (size > req->room)
        return refuse(req);
    for (int i = 0; i < count; i++) { /* it may be what came in, at the same place */
        memmove(req->iov->iov_base, iov[i].iov_base, iov[i].iov_len);
        req->iov->iov_base = (char *)req->iov->iov_base + iov[i].iov_len;
    }
    finish(req, df_answer_count(result));
    return 0;
}

int df_reply_ioctl(fuse_req_t req, int result, const void *buf, size_t size)
{
    struct iovec iov = {(void *)(uintptr_t)buf, size};

    return df_reply_ioctl_iov(req, result, &iov, size > 0 ? 1 : 0);
}

int df_reply_ioctl_retry(fuse_req_t req, const struct iovec *in_iov, size_t in_count,
                         const struct iovec *out_iov, size_t out_count)
{
    (void)in_iov, (void)in_count, (void)out_iov, (void)out_count;
    return reply_number(req, 0, 0);
}

/* ---- directory entries --------------------------------------------------------------------- */

static void put_dirent(char *buf, size_t offset, size_t end, const char *name, size_t len,
                       const struct stat *st, off_t off)
{
    struct fuse_dirent entry = {
        .ino = st->st_ino,
        .off = (uint64_t)off,
        .namelen = (uint32_t)len,
        .type = (st->st_mode & S_IFMT) >> 12,
    };

    memcpy(buf + offset, &entry, FUSE_NAME_OFFSET);
    memcpy(buf + offset + FUSE_NAME_OFFSET, name, len);
    memset(buf + offset + FUSE_NAME_OFFSET + len, 0, end - offset - FUSE_NAME_OFFSET - len);
}

size_t df_reply_direntry(fuse_req_t req, char *buf, size_t size, const char *name,
                         const struct stat *st, off_t off)
{
    size_t len = strlen(name), end = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + len);

    (void)req;
    if (buf && end <= size)
        put_dirent(buf, 0, end, name, len, st, off);
    return end;
}

static void split_timeout(double timeout, uint64_t *seconds, uint32_t *nanoseconds)
{
    *seconds = 0;
    *nanoseconds = 0;
    if (timeout > 0) {
        *seconds = timeout < 1e18 ? (uint64_t)timeout : UINT64_C(1000000000000000000);
        if (timeout < 1e9)
            *nanoseconds = (uint32_t)((timeout - (double)*seconds) * 1e9);
    }
}

static void put_entry(struct fuse_entry_out *out, const struct fuse_entry_param *entry)
{
    const struct stat *st = &entry->attr;

    out->nodeid = entry->ino;
    out->generation = entry->generation;
    split_timeout(entry->entry_timeout, &out->entry_valid, &out->entry_valid_nsec);
    split_timeout(entry->attr_timeout, &out->attr_valid, &out->attr_valid_nsec);
    out->attr = (struct fuse_attr){
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .blocks = (uint64_t)st->st_blocks,
        .atime = (uint64_t)st->st_atim.tv_sec,
        .mtime = (uint64_t)st->st_mtim.tv_sec,
        .ctime = (uint64_t)st->st_ctim.tv_sec,
        .atimensec = (uint32_t)st->st_atim.tv_nsec,
        .mtimensec = (uint32_t)st->st_mtim.tv_nsec,
        .ctimensec = (uint32_t)st->st_ctim.tv_nsec,
        .mode = st->st_mode,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .rdev = (uint32_t)st->st_rdev,
        .blksize = (uint32_t)st->st_blksize,
    };
}

size_t df_reply_direntry_plus(fuse_req_t req, char *buf, size_t size, const char *name,
                              const struct fuse_entry_param *entry, off_t off)
{
    size_t len = strlen(name), end = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + len);
    struct fuse_entry_out out = {0};

    (void)req;
    if (buf && end <= size) {
        put_entry(&out, entry);
        memcpy(buf, &out, sizeof(out));
        put_dirent(buf, offsetof(struct fuse_direntplus, dirent), end, name, len, &entry->attr,
                   off);
    }
    return end;
}
