/*
 * io.c - read and write: split at what the plugin takes in one request, straight between
 * the plugin's memory and the caller's.
 *
 * Without a page cache every read asks the plugin, and a short answer is the end of the file or of
 * the plugin's willingness, as on a kernel mount with direct_io. Writes hold the lock of the node,
 * so that each is whole and an append finds the end of the file where it looked for it; reads do
 * not wait for them, as in the kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "lowlevel/request.h"
#include "lowlevel/target.h"

#define SEGMENTS 64 /* of the caller's vector in one READ */

/* Where an operation stands in the caller's vector. */
struct cursor {
    const struct iovec *iov;
    int count;
    size_t used; /* bytes of iov[0] */
};

static void skip_used(struct cursor *at)
{
    while (at->count > 0 && at->iov->iov_len == at->used) {
        at->iov++;
        at->count--;
        at->used = 0;
    }
}

static void advance(struct cursor *at, size_t size)
{
    for (skip_used(at); size > 0; skip_used(at)) {
        size_t left = at->iov->iov_len - at->used;
        size_t part = size < left ? size : left;

        at->used += part;
        size -= part;
    }
}

static size_t total(const struct iovec *iov, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++)
        size += iov[i].iov_len;
    return size;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* One READ of `size` bytes, the sum of iov, which is used up. */
static inline ssize_t send_read(struct df_lowlevel *lane, struct df_call *call,
                                struct df_file *file, struct iovec *iov, int count, size_t size,
                                off_t offset)
{
    union df_file_info info;
    struct fuse_req req;

    df_request_begin(&req, lane, call, DF_TAKES_DATA);
    req.iov = iov;
    req.iovcnt = count;
    req.room = size;
    return DF_REQUEST(&req, read, df_node_of_file(file)->id, size, offset,
                      df_lowlevel_file_info(&info, call, file));
}

/* The next part of the caller's vector, at most `max` bytes of it. */
static int window(const struct cursor *at, size_t max, struct iovec out[SEGMENTS])
{
    struct cursor copy = *at;
    size_t size = 0;
    int count = 0;

    for (skip_used(&copy); copy.count > 0 && count < SEGMENTS && size < max; skip_used(&copy)) {
        size_t part = copy.iov->iov_len - copy.used;

        if (part > max - size)
            part = max - size;
        out[count++] = (struct iovec){(char *)copy.iov->iov_base + copy.used, part};
        copy.used += part;
        size += part;
    }
    return count;
}

static __attribute__((noinline)) ssize_t read_in_parts(struct df_lowlevel *lane,
                                                       struct df_call *call, struct df_file *file,
                                                       const struct iovec *iov, int iovcnt,
                                                       off_t offset)
{
    struct cursor at = {iov, iovcnt, 0};
    size_t done = 0;

    for (;;) {
        struct iovec part[SEGMENTS];
        int count = window(&at, lane->max_read, part);
        size_t size = total(part, count);
        ssize_t got;

        if (size == 0)
            return (ssize_t)done;
        got = send_read(lane, call, file, part, count, size, offset + (off_t)done);
        if (got < 0)
            return done > 0 ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < size)
            return (ssize_t)done;
        advance(&at, size);
    }
}

/* The kernel's page cache knows the size and asks for nothing behind it, so a plugin may have no
 * good answer to that: a descriptor for each inode, say, which its first opener wanted for writing
 * only. What it refused to read there is the end of the file. `error` is what it said. */
static DF_COLD ssize_t refused(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                               off_t offset, ssize_t error)
{
    struct stat st;

    if (error == DF_PENDING || error == -EINTR || (file->traits & DF_FILE_DIRECT))
        return error;
    if (df_lowlevel_ask_attr(lane, call, df_node_of_file(file), file, &st) < 0)
        return error;
    return S_ISREG(st.st_mode) && offset >= st.st_size ? 0 : error;
}

ssize_t df_lowlevel_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    struct df_node *node = df_node_of_file(file);
    ssize_t result;

    if (DF_UNLIKELY(!lane->ops.read))
        return -ENOSYS;
    if (DF_UNLIKELY(df_node_has(node, DF_NODE_BAD)))
        return -EIO;
    if (DF_LIKELY(iovcnt == 1 && iov->iov_len <= lane->max_read)) {
        struct iovec whole = *iov;

        result = send_read(lane, call, file, &whole, 1, whole.iov_len, offset);
    } else {
        result = read_in_parts(lane, call, file, iov, iovcnt, offset);
    }
    if (DF_UNLIKELY(result < 0))
        result = refused(lane, call, file, offset, result);
    df_node_attr_accessed(node);
    return result;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* One WRITE. write_buf stands in for write where a plugin has it, as in libfuse. */
static ssize_t send_write(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                          const char *buf, size_t size, off_t offset)
{
    uint64_t id = df_node_of_file(file)->id;
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_file_info(&info, call, file);
    struct fuse_req req;

    if (call->writes_back) {
        fi->writepage = 1;
        fi->flags &= ~O_APPEND;
    }
    df_request_begin(&req, lane, call, DF_TAKES_WRITE);
    req.room = size;
    if (lane->ops.write_buf) {
        struct fuse_bufvec vec = FUSE_BUFVEC_INIT(size);

        vec.buf[0].mem = (void *)(uintptr_t)buf;
        return DF_REQUEST(&req, write_buf, id, &vec, offset, fi);
    }
    return DF_REQUEST(&req, write, id, buf, size, offset, fi);
}

/* A vector of small pieces is gathered, so that it becomes one WRITE as in the kernel; without
 * memory for that, each piece becomes one. */
static ssize_t send_gathered(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                             const struct cursor *at, size_t size, off_t offset, size_t *sent)
{
    char *buffer = malloc(size);
    struct cursor copy = *at;
    size_t used = 0;
    ssize_t result;

    *sent = at->iov->iov_len - at->used;
    if (!buffer)
        return send_write(lane, call, file, (char *)at->iov->iov_base + at->used, *sent, offset);
    *sent = size;
    for (; used < size; skip_used(&copy)) {
        size_t part = copy.iov->iov_len - copy.used;

        if (part > size - used)
            part = size - used;
        memcpy(buffer + used, (char *)copy.iov->iov_base + copy.used, part);
        copy.used += part;
        used += part;
    }
    result = send_write(lane, call, file, buffer, size, offset);
    free(buffer);
    return result;
}

/* The next part; *sent is its size. */
static ssize_t write_part(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                          const struct cursor *at, size_t left, off_t offset, size_t *sent)
{
    size_t size = left < lane->max_write ? left : lane->max_write;

    if (at->iov->iov_len - at->used < size)
        return send_gathered(lane, call, file, at, size, offset, sent);
    *sent = size;
    return send_write(lane, call, file, (char *)at->iov->iov_base + at->used, size, offset);
}

static ssize_t write_all(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                         const struct iovec *iov, int iovcnt, off_t offset)
{
    struct cursor at = {iov, iovcnt, 0};
    size_t left = total(iov, iovcnt), done = 0;

    for (skip_used(&at); left > 0;) {
        size_t sent;
        ssize_t got = write_part(lane, call, file, &at, left, offset + (off_t)done, &sent);

        if (got < 0)
            return done > 0 ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < sent)
            break;
        advance(&at, sent);
        left -= sent;
    }
    return (ssize_t)done;
}

/* The size now: what we know, kept up by our own writes, or what the plugin says. */
static int find_end(const struct df_target *target, off_t *offset)
{
    struct stat st;
    int result =
        df_lowlevel_attr(target->lane, target->call, target->node, target->file, DF_ATTR_SIZE, &st);

    if (result == 0)
        *offset = st.st_size;
    return result;
}

static ssize_t write_locked(const struct df_target *target, const struct iovec *iov, int iovcnt,
                            off_t *offset)
{
    ssize_t result = 0;

    if (!target->call->writes_back &&
        atomic_load_explicit(&target->file->flags, memory_order_relaxed) & O_APPEND)
        result = find_end(target, offset);
    if (result == 0)
        result = df_lowlevel_strip(target);
    if (result < 0)
        return result;
    result = write_all(target->lane, target->call, target->file, iov, iovcnt, *offset);
    if (result > 0)
        df_node_attr_wrote(target->node, *offset + result);
    else
        df_node_attr_forget(target->node, DF_ATTR_TIMES);
    return result;
}

ssize_t df_lowlevel_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct df_target target = {df_lowlevel_of(fs), call, df_node_of_file(file), file};
    ssize_t result;

    if (DF_UNLIKELY(!target.lane->ops.write && !target.lane->ops.write_buf))
        return -ENOSYS;
    if (DF_UNLIKELY(df_node_has(target.node, DF_NODE_BAD)))
        return -EIO;
    df_node_lock(&target.node->lock);
    result = write_locked(&target, iov, iovcnt, offset);
    df_node_unlock(&target.node->lock);
    return result;
}
