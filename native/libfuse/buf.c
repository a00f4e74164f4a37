/*
 * buf.c - struct fuse_bufvec: data in memory or behind descriptors, and copying between the two.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfuse/abi.h"

enum { BOUNCE_SIZE = 64 * 1024 }; /* bytes carried at a time between two descriptors */

size_t df_abi_buf_size(const struct fuse_bufvec *bufv)
{
    size_t size = 0;
    for (size_t i = 0; i < bufv->count; i++)
        if (__builtin_add_overflow(size, bufv->buf[i].size, &size))
            return SIZE_MAX; /* "as much as there is" is said with SIZE_MAX */
    return size;
}

/* ---- one stretch of one buffer ---------------------------------------------------------- */

/* A buffer seen from `offset` on. */
struct stretch {
    const struct fuse_buf *buf;
    size_t offset; /* bytes into the buffer */
};

static bool is_fd(const struct stretch *at)
{
    return at->buf->flags & FUSE_BUF_IS_FD;
}

static char *memory(const struct stretch *at)
{
    return (char *)at->buf->mem + at->offset;
}

static ssize_t read_once(const struct stretch *from, void *to, size_t size)
{
    const struct fuse_buf *buf = from->buf;
    ssize_t count = buf->flags & FUSE_BUF_FD_SEEK
                        ? pread(buf->fd, to, size, buf->pos + (off_t)from->offset)
                        : read(buf->fd, to, size);
    return count < 0 ? -errno : count;
}

static ssize_t write_once(const struct stretch *to, const void *from, size_t size)
{
    const struct fuse_buf *buf = to->buf;
    ssize_t count = buf->flags & FUSE_BUF_FD_SEEK
                        ? pwrite(buf->fd, from, size, buf->pos + (off_t)to->offset)
                        : write(buf->fd, from, size);
    return count < 0 ? -errno : count;
}

/* An error after some bytes is told by their count; it comes back with the next call. */
static ssize_t count_or(size_t done, ssize_t error)
{
    return done > 0 ? (ssize_t)done : error;
}

static ssize_t fd_to_memory(struct stretch to, struct stretch from, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = read_once(&from, memory(&to) + done, size - done);
        if (count <= 0)
            return count_or(done, count);
        done += (size_t)count;
        from.offset += (size_t)count;
        if (!(from.buf->flags & FUSE_BUF_FD_RETRY))
            break;
    }
    return (ssize_t)done;
}

static ssize_t memory_to_fd(struct stretch to, const char *from, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = write_once(&to, from + done, size - done);
        if (count <= 0)
            return count_or(done, count);
        done += (size_t)count;
        to.offset += (size_t)count;
        if (!(to.buf->flags & FUSE_BUF_FD_RETRY))
            break;
    }
    return (ssize_t)done;
}

/* Through memory: for descriptors that splice(2) cannot join. */
static ssize_t carry(struct stretch to, struct stretch from, size_t size)
{
    size_t done = 0;
    size_t room = size < BOUNCE_SIZE ? size : BOUNCE_SIZE;
    char *bounce = malloc(room);
    if (!bounce)
        return -ENOMEM;
    ssize_t count = 0;
    while (done < size) {
        size_t wish = size - done < room ? size - done : room;
        struct stretch memory = {&(struct fuse_buf){.size = room, .mem = bounce}, 0};
        count = fd_to_memory(memory, from, wish);
        ssize_t have = count;
        if (count > 0)
            count = memory_to_fd(to, bounce, (size_t)have);
        if (count <= 0)
            break;
        done += (size_t)count;
        to.offset += (size_t)count;
        from.offset += (size_t)count;
        if ((size_t)count < wish)
            break;
    }
    free(bounce);
    return count_or(done, count);
}

static unsigned splice_flags(enum fuse_buf_copy_flags flags)
{
    return (flags & FUSE_BUF_SPLICE_MOVE ? SPLICE_F_MOVE : 0) |
           (flags & FUSE_BUF_SPLICE_NONBLOCK ? SPLICE_F_NONBLOCK : 0);
}

static ssize_t splice_fds(struct stretch to, struct stretch from, size_t size,
                          enum fuse_buf_copy_flags flags)
{
    off_t from_at = from.buf->pos + (off_t)from.offset;
    off_t to_at = to.buf->pos + (off_t)to.offset;
    off_t *from_pos = from.buf->flags & FUSE_BUF_FD_SEEK ? &from_at : NULL;
    off_t *to_pos = to.buf->flags & FUSE_BUF_FD_SEEK ? &to_at : NULL;
    bool retry = (from.buf->flags | to.buf->flags) & FUSE_BUF_FD_RETRY;

    size_t done = 0;
    while (done < size) {
        ssize_t count =
            splice(from.buf->fd, from_pos, to.buf->fd, to_pos, size - done, splice_flags(flags));
        if (count < 0 && done == 0 && errno == EINVAL && !(flags & FUSE_BUF_FORCE_SPLICE))
            return carry(to, from, size); /* neither is a pipe */
        if (count <= 0)
            return count_or(done, count < 0 ? -errno : 0);
        done += (size_t)count;
        if (!retry)
            break;
    }
    return (ssize_t)done;
}

static ssize_t copy_stretch(struct stretch to, struct stretch from, size_t size,
                            enum fuse_buf_copy_flags flags)
{
    if (!is_fd(&to) && !is_fd(&from)) {
        memmove(memory(&to), memory(&from), size);
        return (ssize_t)size;
    }
    if (!is_fd(&to))
        return fd_to_memory(to, from, size);
    if (!is_fd(&from))
        return memory_to_fd(to, memory(&from), size);
    return flags & FUSE_BUF_NO_SPLICE ? carry(to, from, size) : splice_fds(to, from, size, flags);
}

/* ---- vectors ---------------------------------------------------------------------------- */

/* The buffer the vector stands at, and how many bytes are left in it; false at the end. */
static bool current(const struct fuse_bufvec *bufv, struct stretch *at, size_t *left)
{
    if (bufv->idx >= bufv->count)
        return false;
    *at = (struct stretch){&bufv->buf[bufv->idx], bufv->off};
    *left = at->buf->size > bufv->off ? at->buf->size - bufv->off : 0;
    return true;
}

/* The offset of the last buffer stays, so a vector that is used up shows where it ended. */
static bool advance(struct fuse_bufvec *bufv, size_t count)
{
    bufv->off += count;
    if (bufv->off < bufv->buf[bufv->idx].size)
        return true;
    if (++bufv->idx == bufv->count)
        return false;
    bufv->off = 0;
    return true;
}

ssize_t df_abi_buf_copy(struct fuse_bufvec *dst, struct fuse_bufvec *src,
                        enum fuse_buf_copy_flags flags)
{
    struct stretch to, from;
    size_t to_left, from_left;
    size_t done = 0;

    if (dst == src)
        return (ssize_t)df_abi_buf_size(dst);
    while (current(dst, &to, &to_left) && current(src, &from, &from_left)) {
        size_t size = to_left < from_left ? to_left : from_left;
        ssize_t count = copy_stretch(to, from, size, flags);
        if (count < 0)
            return count_or(done, count);
        done += (size_t)count;
        /* As in libfuse a destination does not move on when the source has just been used up. */
        if (!advance(src, (size_t)count) || !advance(dst, (size_t)count) || (size_t)count < size)
            break;
    }
    return (ssize_t)done;
}
