/*
 * io.c - read and write: split at what the plugin takes in one request, straight between
 * the plugin's memory and the caller's.
 *
 * Without a page cache every read asks the plugin, and a short answer is the end of the file or of
 * the plugin's willingness, as on a kernel mount with direct_io. Without direct_io a file ends
 * where its attributes say, as the page cache does, whatever the plugin has behind that. Writes
 * hold the lock of the node, so that each is whole and an append finds the end of the file where it
 * looked for it; reads do not wait for them, as in the kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "host/iov_piece.h"
#include "host/sane.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"

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
    return DF_REQUEST_AT_REST(call, &req, read, df_node_of_file(file)->id, size, offset,
                              df_lowlevel_file_info(&info, call, file));
}

/* The same, but data that are lent stay where they lie: at *at. */
static ssize_t send_lend(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                         struct iovec *iov, off_t offset, const char **at)
{
    union df_file_info info;
    struct fuse_req req;
    ssize_t result;

    df_request_begin(&req, lane, call, DF_TAKES_DATA | DF_TAKES_PLACE);
    req.iov = iov;
    req.iovcnt = 1;
    req.room = iov->iov_len;
    req.lent = NULL;
    result = DF_REQUEST_AT_REST(call, &req, read, df_node_of_file(file)->id, iov->iov_len, offset,
                                df_lowlevel_file_info(&info, call, file));
    if (req.lent)
        *at = req.lent;
    return result;
}

static __attribute__((noinline)) ssize_t read_in_parts(struct df_lowlevel *lane,
                                                       struct df_call *call, struct df_file *file,
                                                       const struct iovec *iov, int iovcnt,
                                                       off_t offset)
{
    struct df_iov_rest rest = {.iov = iov, .count = iovcnt};
    struct df_iov_piece piece;
    size_t done = 0;

    for (;;) {
        ssize_t got;

        df_iov_cut(&piece, &rest, lane->max_read);
        if (piece.size == 0)
            return (ssize_t)done;
        got = send_read(lane, call, file, piece.iov, piece.count, piece.size, offset + (off_t)done);
        if (got < 0)
            return done > 0 ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < piece.size)
            return (ssize_t)done;
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

/* The same for what it gave past the size that was told so far: are these bytes of the file? */
static DF_COLD ssize_t cut(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                           off_t offset, ssize_t got)
{
    struct stat st;
    int result;

    if ((file->traits & DF_FILE_DIRECT) || file->kind != DF_KIND_REGULAR)
        return got;
    result = df_lowlevel_attr(lane, call, df_node_of_file(file), file, DF_ATTR_SIZE, &st);
    if (result < 0)
        return result;
    if (st.st_size <= offset)
        return 0;
    return got < st.st_size - offset ? got : st.st_size - offset;
}

/* What the caller is told: `result` is the plugin's. */
static inline ssize_t end_reading(struct df_lowlevel *lane, struct df_call *call,
                                  struct df_file *file, off_t offset, ssize_t result)
{
    struct df_node *node = df_node_of_file(file);

    if (DF_UNLIKELY(result < 0))
        result = refused(lane, call, file, offset, result);
    else if (DF_UNLIKELY(result > df_node_attr_size(node) - offset) && result > 0)
        result = cut(lane, call, file, offset, result);
    df_node_attr_accessed(&lane->nodes, node);
    return result;
}

/* 0, or why nothing can be read. */
static inline int unreadable(const struct df_lowlevel *lane, const struct df_node *node)
{
    if (DF_UNLIKELY(!lane->ops.read))
        return -ENOSYS;
    return DF_UNLIKELY(df_node_has(node, DF_NODE_BAD)) ? -EIO : 0;
}

ssize_t df_lowlevel_lend(struct df_fs *fs, struct df_call *call, struct df_file *file, void *buffer,
                         size_t size, off_t offset, const char **at)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    struct iovec whole = {buffer, size};
    ssize_t result;

    *at = buffer;
    if (size > lane->max_read || unreadable(lane, df_node_of_file(file)))
        return df_lowlevel_read(fs, call, file, &whole, 1, offset);
    result = send_lend(lane, call, file, &whole, offset, at);
    return end_reading(lane, call, file, offset, result);
}

ssize_t df_lowlevel_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    ssize_t result = unreadable(lane, df_node_of_file(file));

    if (DF_UNLIKELY(result < 0))
        return result;
    if (DF_LIKELY(iovcnt == 1 && iov->iov_len <= lane->max_read)) {
        struct iovec whole = *iov;

        result = send_read(lane, call, file, &whole, 1, whole.iov_len, offset);
    } else {
        result = read_in_parts(lane, call, file, iov, iovcnt, offset);
    }
    return end_reading(lane, call, file, offset, result);
}

/* ---- writing ------------------------------------------------------------------------------- */

static size_t total(const struct iovec *iov, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++)
        size += iov[i].iov_len;
    return size;
}

/* One WRITE. write_buf stands in for write where a plugin has it, as in libfuse. */
static ssize_t send_write(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                          const char *buf, size_t size, off_t offset)
{
    uint64_t id = df_node_of_file(file)->id;
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_file_info(&info, call, file);
    struct fuse_req req;

    fi->writepage = call->writes_back;
    if (!df_call_appends(call, fi->flags))
        fi->flags &= ~O_APPEND;
    df_request_begin(&req, lane, call, DF_TAKES_WRITE);
    req.room = size;
    if (lane->ops.write_buf) {
        struct fuse_bufvec vec = FUSE_BUFVEC_INIT(size);

        vec.buf[0].mem = (void *)(uintptr_t)buf;
        return DF_REQUEST(&req, write_buf, id, &vec, offset, fi);
    }
    return DF_REQUEST(&req, write, id, buf, size, offset, fi);
}

/* `size` bytes of the rest, one behind the other. */
static void gather(char *to, struct df_iov_rest rest, size_t size)
{
    for (size_t used = 0; used < size; df_iov_skip_empty(&rest)) {
        size_t part = rest.iov->iov_len - rest.skip;

        if (part > size - used)
            part = size - used;
        memcpy(to + used, (char *)rest.iov->iov_base + rest.skip, part);
        rest.skip += part;
        used += part;
    }
}

/* Small pieces are gathered, so that they become one WRITE as in the kernel; without memory for
 * that, the first becomes one: *size is how many bytes were sent. */
static ssize_t send_gathered(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                             const struct df_iov_rest *rest, off_t offset, size_t *size)
{
    char *buffer = malloc(*size);
    ssize_t result;

    if (!buffer) {
        *size = rest->iov->iov_len - rest->skip;
        return send_write(lane, call, file, (char *)rest->iov->iov_base + rest->skip, *size,
                          offset);
    }
    gather(buffer, *rest, *size);
    result = send_write(lane, call, file, buffer, *size, offset);
    free(buffer);
    return result;
}

/* The next part, of *size bytes at most, which becomes how many were sent. */
static ssize_t write_part(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                          const struct df_iov_rest *rest, off_t offset, size_t *size)
{
    if (rest->iov->iov_len - rest->skip < *size)
        return send_gathered(lane, call, file, rest, offset, size);
    return send_write(lane, call, file, (char *)rest->iov->iov_base + rest->skip, *size, offset);
}

/* No bytes at all are EIO, as in fuse_perform_write(), but for direct_io. */
static ssize_t write_all(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                         const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_iov_rest rest = {.iov = iov, .count = iovcnt};
    size_t left = total(iov, iovcnt), done = 0;

    while (left > 0) {
        size_t size = left < lane->max_write ? left : lane->max_write;
        ssize_t got;

        df_iov_skip_empty(&rest);
        got = write_part(lane, call, file, &rest, offset + (off_t)done, &size);
        if (got < 0)
            return done > 0 ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < size)
            return done > 0 || file->traits & DF_FILE_DIRECT ? (ssize_t)done : -EIO;
        rest.skip += size;
        left -= size;
    }
    return (ssize_t)done;
}

/* The size now: what we know, kept up by our own writes, or what the plugin says. */
static int find_end(const struct df_target *target, off_t *offset)
{
    struct stat st;
    int result =
        df_lowlevel_attr(target->lane, target->call, target->node, target->file, DF_ATTR_SIZE, &st);

    off_t start = result < 0 ? result : df_append_start(st.st_size);
    if (start < 0)
        return (int)start;
    *offset = start;
    return 0;
}

static ssize_t write_locked(const struct df_target *target, const struct iovec *iov, int iovcnt,
                            off_t *offset)
{
    ssize_t result = 0;

    if (df_call_appends(target->call,
                        atomic_load_explicit(&target->file->flags, memory_order_relaxed)))
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
    struct df_node_held held;
    ssize_t result;

    if (DF_UNLIKELY(!target.lane->ops.write && !target.lane->ops.write_buf))
        return -ENOSYS;
    if (DF_UNLIKELY(df_node_has(target.node, DF_NODE_BAD)))
        return -EIO;
    result = df_node_held_take(&held, &target.lane->nodes, &target.node->lock, false);
    if (DF_UNLIKELY(result < 0))
        return result;
    result = write_locked(&target, iov, iovcnt, offset);
    df_node_held_give(&held);
    return result;
}
