/*
 * bufvec.c - bytes in and out of a struct fuse_bufvec. See bufvec.h.
 */
#include "host/bufvec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void df_bufvec_show(union df_bufvec *to, const struct iovec *iov, int count)
{
    to->vec = (struct fuse_bufvec){.count = (size_t)count};
    for (int i = 0; i < count; i++)
        to->vec.buf[i] =
            (struct fuse_buf){.size = iov[i].iov_len, .mem = iov[i].iov_base, .fd = -1};
}

/* A list of memory that is filled from its start. */
struct target {
    struct iovec *iov;
    int count;
};

static void skip_full(struct target *to)
{
    while (to->count && to->iov->iov_len == 0) {
        to->iov++;
        to->count--;
    }
}

static void advance(struct target *to, size_t size)
{
    skip_full(to);
    while (size) {
        size_t part = size < to->iov->iov_len ? size : to->iov->iov_len;
        to->iov->iov_base = (char *)to->iov->iov_base + part;
        to->iov->iov_len -= part;
        size -= part;
        skip_full(to);
    }
}

static size_t take_memory(struct target *to, const char *from, size_t size)
{
    size_t moved = 0;

    for (skip_full(to); to->count && moved < size;) {
        size_t part = size - moved < to->iov->iov_len ? size - moved : to->iov->iov_len;
        memcpy(to->iov->iov_base, from + moved, part);
        moved += part;
        advance(to, part);
    }
    return moved;
}

/* One read of at most `size` bytes into the front of the target. */
static ssize_t read_once(struct target *to, const struct fuse_buf *from, size_t done, size_t size)
{
    struct iovec iov[DF_BUFVEC_MAX];
    size_t room = 0;
    int count = 0;
    ssize_t got;

    while (count < to->count && count < DF_BUFVEC_MAX && room < size) {
        iov[count] = to->iov[count];
        if (iov[count].iov_len > size - room)
            iov[count].iov_len = size - room;
        room += iov[count++].iov_len;
    }
    do {
        got = from->flags & FUSE_BUF_FD_SEEK ? preadv(from->fd, iov, count, from->pos + (off_t)done)
                                             : readv(from->fd, iov, count);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Stops at the end of the file; at a short read too, unless the plugin says FD_RETRY. */
static ssize_t take_fd(struct target *to, const struct fuse_buf *from, size_t start)
{
    size_t size = from->size - start, moved = 0;

    for (skip_full(to); to->count && moved < size;) {
        ssize_t got = read_once(to, from, start + moved, size - moved);
        if (got < 0)
            return moved ? (ssize_t)moved : got;
        moved += (size_t)got;
        advance(to, (size_t)got);
        if (got == 0 || !(from->flags & FUSE_BUF_FD_RETRY))
            break;
    }
    return (ssize_t)moved;
}

ssize_t df_bufvec_take(struct fuse_bufvec *from, struct iovec *iov, int count)
{
    struct target to = {.iov = iov, .count = count};
    size_t start = from->off, moved = 0;

    for (size_t i = from->idx; i < from->count; i++, start = 0) {
        const struct fuse_buf *buf = &from->buf[i];
        size_t size = buf->size - start;
        ssize_t got = buf->flags & FUSE_BUF_IS_FD
                          ? take_fd(&to, buf, start)
                          : (ssize_t)take_memory(&to, (char *)buf->mem + start, size);
        if (got < 0)
            return moved ? (ssize_t)moved : got;
        moved += (size_t)got;
        if ((size_t)got < size)
            break;
    }
    return (ssize_t)moved;
}

void df_bufvec_free(struct fuse_bufvec *vec)
{
    if (!vec)
        return;
    for (size_t i = 0; i < vec->count; i++) {
        if (!(vec->buf[i].flags & FUSE_BUF_IS_FD))
            free(vec->buf[i].mem);
    }
    free(vec);
}
