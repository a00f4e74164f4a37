/*
 * versions4_buf.c - struct fuse_bufvec of libfuse3.so.4, whose buffers have one member more: with
 * one buffer it is the same as ours, with several it is converted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse/versions4.h"
#include "lowlevel/lowlevel.h"

static size_t extra(size_t count)
{
    return count > 1 ? count - 1 : 0;
}

struct fuse_bufvec *df4_vector_3(const struct fuse4_bufvec *from)
{
    struct fuse_bufvec *to = malloc(sizeof(*to) + extra(from->count) * sizeof(to->buf[0]));
    if (!to)
        return NULL;
    *to = (struct fuse_bufvec){.count = from->count, .idx = from->idx, .off = from->off};
    for (size_t i = 0; i < from->count; i++)
        memcpy(&to->buf[i], &from->buf[i], sizeof(to->buf[i]));
    return to;
}

struct fuse4_bufvec *df4_vector_4(const struct fuse_bufvec *from)
{
    struct fuse4_bufvec *to = calloc(1, sizeof(*to) + extra(from->count) * sizeof(to->buf[0]));
    if (!to)
        return NULL;
    to->count = from->count;
    to->idx = from->idx;
    to->off = from->off;
    for (size_t i = 0; i < from->count; i++)
        memcpy(&to->buf[i], &from->buf[i], sizeof(from->buf[i]));
    return to;
}

/* The vector for our own functions: itself, or a copy that let_go() ends; NULL when memory is
 * short. */
static struct fuse_bufvec *borrow(struct fuse4_bufvec *from)
{
    return from->count > 1 ? df4_vector_3(from) : (struct fuse_bufvec *)from;
}

/* Tells how far a copy has come. */
static void let_go(struct fuse4_bufvec *from, struct fuse_bufvec *borrowed)
{
    if (!borrowed || (void *)borrowed == (void *)from)
        return;
    from->idx = borrowed->idx;
    from->off = borrowed->off;
    free(borrowed);
}

size_t fuse4_buf_size(const struct fuse4_bufvec *bufv)
{
    size_t size = 0;
    for (size_t i = 0; i < bufv->count; i++)
        if (__builtin_add_overflow(size, bufv->buf[i].size, &size))
            return SIZE_MAX;
    return size;
}
VERSION(fuse4_buf_size, "fuse_buf_size@@FUSE_3.0");

ssize_t fuse4_buf_copy(struct fuse4_bufvec *dst, struct fuse4_bufvec *src,
                       enum fuse_buf_copy_flags flags)
{
    struct fuse_bufvec *to = borrow(dst), *from = borrow(src);
    ssize_t result = to && from ? df_abi_buf_copy(to, from, flags) : -ENOMEM;
    let_go(dst, to);
    let_go(src, from);
    return result;
}
VERSION(fuse4_buf_copy, "fuse_buf_copy@@FUSE_3.0");

int fuse4_reply_data(fuse_req_t req, struct fuse4_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    struct fuse_bufvec *vector = borrow(bufv);
    int result = vector ? df_reply_data(req, vector, flags) : df_reply_err(req, ENOMEM);
    let_go(bufv, vector);
    return result;
}
VERSION(fuse4_reply_data, "fuse_reply_data@@FUSE_3.0");

int fuse4_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
                       struct fuse4_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    struct fuse_bufvec *vector = borrow(bufv);
    int result = vector ? df_abi_notify_store(se, ino, offset, vector, flags) : -ENOMEM;
    let_go(bufv, vector);
    return result;
}
VERSION(fuse4_notify_store, "fuse_lowlevel_notify_store@@FUSE_3.0");
