/*
 * calls_io.c - read and write in all their forms, and the batch read.
 *
 * The checks stand in the order of the kernel's vfs_read() and rw_verify_area().
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls.h"
#include "core/use.h"
#include "directfuse.h"

#define BATCH_MAX ((size_t)1 << 20)
#define BATCH_RUN 64 /* extents handed to one op: a frame of 4 KiB, no allocation */

/* ---- checks -------------------------------------------------------------------------------- */

/* The caller's vector, or a shortened copy of it. */
struct vector {
    const struct iovec *iov;
    int count;
    size_t size; /* sum, at most DF_RW_MAX */
};

static int check_writable(const struct df_use *use)
{
    return df_use_writable(use) ? 0 : -EBADF;
}

static int check_range(off_t offset, size_t size)
{
    off_t end;

    if (offset < 0 || (ssize_t)size < 0 || __builtin_add_overflow(offset, (off_t)size, &end))
        return -EINVAL;
    return 0;
}

/* vfs_read(): a directory has no bytes, where there could be any. */
static int refuse_directory(off_t offset, size_t size)
{
    int ret = check_range(offset, size);

    return ret < 0 ? ret : -EISDIR;
}

static int check_readable(const struct df_use *use, off_t offset, size_t size)
{
    if (!df_use_readable(use))
        return -EBADF;
    return DF_UNLIKELY(use->file->kind == DF_KIND_DIRECTORY) ? refuse_directory(offset, size) : 0;
}

/* As the kernel's ksys_pread64() sees a negative offset: whatever the descriptor. */
static int begin_positioned(struct df_use *use, int fd, off_t offset)
{
    return DF_UNLIKELY(offset < 0) ? -EINVAL : df_use_begin(use, fd);
}

static int check_positioned(const struct df_use *use)
{
    return DF_UNLIKELY(use->file->traits & (DF_FILE_STREAM | DF_FILE_NONSEEKABLE)) ? -ESPIPE : 0;
}

/* import_iovec() of the kernel: lengths are checked before the sum is cut. */
static int check_vector(const struct iovec *iov, int iovcnt, struct vector *v)
{
    size_t sum = 0;

    if (iovcnt < 0 || iovcnt > IOV_MAX)
        return -EINVAL;
    for (int i = 0; i < iovcnt; i++) {
        if ((ssize_t)iov[i].iov_len < 0)
            return -EINVAL;
        sum = iov[i].iov_len < DF_RW_MAX - sum ? sum + iov[i].iov_len : DF_RW_MAX;
    }
    *v = (struct vector){iov, iovcnt, sum};
    return 0;
}

/* The kernel's vfs_readv(): the vector is looked at first, and where it has room for no bytes at
 * all, none are asked of a directory either. */
static int check_read_vector(const struct df_use *use, const struct iovec *iov, int iovcnt,
                             off_t offset, struct vector *v)
{
    int ret = df_use_readable(use) ? check_vector(iov, iovcnt, v) : -EBADF;

    if (ret == 0 && DF_UNLIKELY(use->file->kind == DF_KIND_DIRECTORY) && v->size > 0)
        return refuse_directory(offset, v->size);
    return ret;
}

static size_t sum_of(const struct vector *v)
{
    size_t sum = 0;

    for (int i = 0; i < v->count; i++)
        sum += v->iov[i].iov_len;
    return sum;
}

/* Shortens the vector to v->size bytes, in a copy. */
static void shorten(struct vector *v, struct iovec copy[])
{
    size_t left = v->size;
    int count = 0;

    for (; count < v->count && left > 0; count++) {
        copy[count] = v->iov[count];
        if (copy[count].iov_len > left)
            copy[count].iov_len = left;
        left -= copy[count].iov_len;
    }
    v->iov = copy;
    v->count = count;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The copy lives until the result is there. */
static __attribute__((noinline)) ssize_t read_shortened(struct df_use *use, struct vector v,
                                                        off_t offset)
{
    struct iovec copy[IOV_MAX];

    shorten(&v, copy);
    return df_call_result(
        &use->call, use->fs->ops->read(use->fs, &use->call, use->file, v.iov, v.count, offset));
}

static ssize_t read_at(struct df_use *use, const struct vector *v, off_t offset)
{
    int ret = check_range(offset, v->size);

    if (DF_UNLIKELY(ret < 0 || v->size == 0))
        return ret;
    if (DF_UNLIKELY(v->size == DF_RW_MAX))
        return read_shortened(use, *v, offset);
    return use->fs->ops->read(use->fs, &use->call, use->file, v->iov, v->count, offset);
}

static ssize_t read_on(struct df_use *use, const struct vector *v)
{
    struct df_file *file = use->file;
    ssize_t ret;

    if (DF_UNLIKELY(file->traits & DF_FILE_STREAM))
        return read_at(use, v, 0);
    df_file_lock_position(file);
    ret = df_call_result(&use->call, read_at(use, v, file->position));
    if (ret > 0)
        file->position += ret;
    df_file_unlock_position(file);
    return ret;
}

ssize_t df_call_pread(int fd, void *buf, size_t size, off_t offset)
{
    struct iovec iov = {buf, size};
    struct vector v = {&iov, 1, size};
    struct df_use use;
    ssize_t ret = begin_positioned(&use, fd, offset);

    if (DF_UNLIKELY(ret < 0))
        return ret;
    if (DF_LIKELY((ret = check_positioned(&use)) == 0 &&
                  (ret = check_readable(&use, offset, size)) == 0)) {
        if (DF_UNLIKELY(size > DF_RW_MAX && (ssize_t)size > 0))
            iov.iov_len = v.size = DF_RW_MAX;
        ret = read_at(&use, &v, offset);
    }
    return df_use_end(&use, ret);
}

ssize_t df_call_preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    struct vector v;
    struct df_use use;
    ssize_t ret = begin_positioned(&use, fd, offset);

    if (ret < 0)
        return ret;
    if ((ret = check_positioned(&use)) == 0 &&
        (ret = check_read_vector(&use, iov, iovcnt, offset, &v)) == 0)
        ret = read_at(&use, &v, offset);
    return df_use_end(&use, ret);
}

ssize_t df_call_readv(int fd, const struct iovec *iov, int iovcnt)
{
    struct vector v;
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    if ((ret = check_read_vector(&use, iov, iovcnt, 0, &v)) == 0)
        ret = read_on(&use, &v);
    return df_use_end(&use, ret);
}

ssize_t df_call_read(int fd, void *buf, size_t size)
{
    struct iovec iov = {buf, size};
    struct vector v;
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    if ((ret = check_readable(&use, 0, size)) == 0 && (ret = check_vector(&iov, 1, &v)) == 0)
        ret = read_on(&use, &v);
    return df_use_end(&use, ret);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Where the write will begin: for RLIMIT_FSIZE alone the core has to know the end of the file. */
static ssize_t write_start(struct df_use *use, off_t *offset)
{
    struct df_where where = df_use_itself(use);
    struct stat st;
    ssize_t ret;

    if (!df_call_appends(&use->call, df_use_flags(use)))
        return 0;
    ret = df_call_result(&use->call, use->fs->ops->getattr(use->fs, &use->call, &where, &st));
    if (ret == 0)
        *offset = st.st_size;
    return ret;
}

/* generic_write_checks() of the kernel: no byte is written past the limit. */
static ssize_t limit_size(struct df_use *use, struct vector *v, off_t offset)
{
    off_t limit = use->call.caller->size_limit;
    ssize_t ret;

    if (DF_LIKELY(limit == INT64_MAX) || use->file->kind != DF_KIND_REGULAR)
        return 0;
    ret = write_start(use, &offset);
    if (ret < 0)
        return ret;
    if (offset >= limit)
        return df_caller_too_large();
    if ((off_t)v->size > limit - offset)
        v->size = (size_t)(limit - offset);
    return 0;
}

/* The vector and *offset live until the result is there. */
static ssize_t write_op(struct df_use *use, const struct vector *v, off_t *offset)
{
    return df_call_result(
        &use->call, use->fs->ops->write(use->fs, &use->call, use->file, v->iov, v->count, offset));
}

static __attribute__((noinline)) ssize_t write_shortened(struct df_use *use, struct vector v,
                                                         off_t *offset)
{
    struct iovec copy[IOV_MAX];

    shorten(&v, copy);
    return write_op(use, &v, offset);
}

static ssize_t write_at(struct df_use *use, struct vector *v, off_t *offset)
{
    ssize_t ret = check_range(*offset, v->size);

    if (DF_UNLIKELY(ret < 0 || v->size == 0))
        return ret;
    ret = limit_size(use, v, *offset);
    if (ret < 0)
        return ret;
    if (DF_UNLIKELY(v->size != sum_of(v)))
        return write_shortened(use, *v, offset);
    return write_op(use, v, offset);
}

static ssize_t write_on(struct df_use *use, struct vector *v)
{
    struct df_file *file = use->file;
    off_t offset = 0;
    ssize_t ret;

    if (DF_UNLIKELY(file->traits & DF_FILE_STREAM))
        return write_at(use, v, &offset);
    df_file_lock_position(file);
    offset = file->position;
    ret = write_at(use, v, &offset);
    if (ret > 0)
        file->position = offset + ret;
    df_file_unlock_position(file);
    return ret;
}

ssize_t df_call_pwritev_placed(int fd, const struct iovec *iov, int iovcnt, off_t offset,
                               enum df_placing placing)
{
    struct vector v;
    struct df_use use;
    ssize_t ret = begin_positioned(&use, fd, offset);

    if (DF_UNLIKELY(ret < 0))
        return ret;
    use.call.placing = (uint8_t)placing;
    if ((ret = check_positioned(&use)) == 0 && (ret = check_writable(&use)) == 0 &&
        (ret = check_vector(iov, iovcnt, &v)) == 0)
        ret = write_at(&use, &v, &offset);
    return df_use_end(&use, ret);
}

ssize_t df_call_pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    return df_call_pwritev_placed(fd, iov, iovcnt, offset, DF_PLACED_BY_FLAGS);
}

ssize_t df_call_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    struct iovec iov = {(void *)buf, size};

    if (!df_fd_ours(fd))
        return DF_NOT_OURS;
    return df_call_pwritev(fd, &iov, 1, offset);
}

ssize_t df_call_writev_placed(int fd, const struct iovec *iov, int iovcnt, enum df_placing placing)
{
    struct vector v;
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    use.call.placing = (uint8_t)placing;
    if ((ret = check_writable(&use)) == 0 && (ret = check_vector(iov, iovcnt, &v)) == 0)
        ret = write_on(&use, &v);
    return df_use_end(&use, ret);
}

ssize_t df_call_writev(int fd, const struct iovec *iov, int iovcnt)
{
    return df_call_writev_placed(fd, iov, iovcnt, DF_PLACED_BY_FLAGS);
}

ssize_t df_call_write(int fd, const void *buf, size_t size)
{
    struct iovec iov = {(void *)buf, size};

    if (!df_fd_ours(fd))
        return DF_NOT_OURS;
    return df_call_writev(fd, &iov, 1);
}

/* ---- batch --------------------------------------------------------------------------------- */

/* As df_call_pread would check it; on success e->file has a reference. */
static ssize_t begin_extent(struct df_thread *thread, const struct df_read *r, struct df_extent *e)
{
    struct df_use use = {.file = df_fd_get(thread, r->fd)};
    ssize_t ret;

    *e = (struct df_extent){use.file, r->buf, r->size, r->offset, 0};
    if (!use.file)
        return -EBADF;
    if (r->offset < 0)
        ret = -EINVAL;
    else if (df_use_flags(&use) & O_PATH)
        ret = -EBADF;
    else if ((ret = check_positioned(&use)) == 0 &&
             (ret = check_readable(&use, r->offset, r->size)) == 0)
        ret = check_range(r->offset, r->size);
    if (ret < 0)
        df_file_put(thread, use.file);
    else if (r->size > DF_RW_MAX)
        e->size = DF_RW_MAX;
    return ret;
}

/* One op for a run of extents on one file system. */
static void run_extents(struct df_thread *thread, struct df_extent *extents, size_t count)
{
    struct df_file *file = extents[0].file;
    struct df_call call;
    ssize_t ret;

    df_call_start(&call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    ret = df_call_result(&call, file->fs->ops->read_batch(file->fs, &call, extents, count));
    for (size_t i = 0; i < count; i++) {
        if (ret < 0)
            extents[i].result = ret;
        df_file_put(thread, extents[i].file);
    }
}

/* Fills `extents` with the next reads that go to one file system; `from` says where each came
 * from. Returns how many of `reads` are done with; *taken how many extents there are. */
static size_t collect(struct df_thread *thread, struct df_read *reads, size_t count,
                      struct df_extent *extents, struct df_read **from, size_t *taken)
{
    size_t i;

    *taken = 0;
    for (i = 0; i < count && *taken < BATCH_RUN; i++) {
        struct df_extent *e = &extents[*taken];

        reads[i].result =
            df_fd_ours(reads[i].fd) ? begin_extent(thread, &reads[i], e) : DF_NOT_OURS;
        if (reads[i].result < 0)
            continue;
        if (e->size == 0) {
            df_file_put(thread, e->file);
            continue;
        }
        if (*taken > 0 && e->file->fs != extents[0].file->fs) {
            df_file_put(thread, e->file);
            break;
        }
        from[(*taken)++] = &reads[i];
    }
    return i;
}

/* Those of the kernel's descriptors are left to the door: result DF_NOT_OURS. */
int df_call_read_batch(struct df_read *reads, size_t count)
{
    struct df_extent extents[BATCH_RUN];
    struct df_read *from[BATCH_RUN];
    struct df_thread *thread;
    int ret = 0;

    if (count > BATCH_MAX)
        return -EINVAL;
    thread = df_gate_enter(&ret);
    if (!thread)
        return ret;
    for (size_t done = 0, taken; done < count;) {
        done += collect(thread, reads + done, count - done, extents, from, &taken);
        if (taken > 0)
            run_extents(thread, extents, taken);
        for (size_t i = 0; i < taken; i++)
            from[i]->result = extents[i].result;
    }
    df_gate_leave(thread);
    for (size_t i = 0; i < count; i++)
        if (reads[i].result == DF_NOT_OURS)
            return DF_NOT_OURS;
    return 0;
}
