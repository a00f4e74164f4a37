/*
 * space.c - holes and what is not plain reading and writing: seek, fallocate, copy_file_range.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- seek ------------------------------------------------------------------------------- */

/* Length of the run at `off`, rounded up to pages: memory may end within a page, holes do not. */
static int64_t run_at(const struct inode *inode, int64_t off, bool *data)
{
    uint32_t in = (uint32_t)(off % CHUNK);
    uint64_t key = (uint64_t)off / CHUNK;
    const struct chunk *chunk = map_get(&inode->chunks, key);

    if (chunk) {
        uint32_t run = chunk_run(chunk, in, CHUNK - in, data);
        return (in + run + PAGE - 1) / PAGE * PAGE - in;
    }
    *data = false;
    int64_t next = map_next(&inode->chunks, &key) ? (int64_t)key * CHUNK : INT64_MAX;
    return next - off;
}

static int64_t seek_locked(const struct inode *inode, int64_t off, bool wanted)
{
    int64_t size = inode->attr.size;

    if (off >= size)
        return -ENXIO;
    while (off < size) {
        bool data;
        int64_t run = run_at(inode, off, &data);
        if (data == wanted)
            return off;
        if (run >= size - off)
            break;
        off += run;
    }
    return wanted ? -ENXIO : size; /* the end of a file is a hole */
}

int64_t space_seek(struct inode *inode, int64_t off, int whence)
{
    if (inode->type != DT_REG || (whence != SEEK_DATA && whence != SEEK_HOLE))
        return -EINVAL;
    if (off < 0)
        return -ENXIO;
    lock_read(&inode->lock);
    int64_t found = seek_locked(inode, off, whence == SEEK_DATA);
    lock_read_done(&inode->lock);
    return found;
}

/* ---- fallocate -------------------------------------------------------------------------- */

/* Pages of the range that are not charged; an empty stretch costs no time. */
static int64_t uncharged_pages(const struct inode *inode, int64_t off, int64_t len)
{
    int64_t end = off + len;
    int64_t pages = (end - 1) / PAGE - off / PAGE + 1;
    uint64_t key = (uint64_t)off / CHUNK;
    const struct chunk *chunk;

    for (; (chunk = map_next(&inode->chunks, &key)) && (int64_t)key <= (end - 1) / CHUNK; key++) {
        int64_t start = (int64_t)key * CHUNK;
        uint32_t from = (uint32_t)(off > start ? off - start : 0);
        uint32_t to = (uint32_t)smaller(end - start, CHUNK);
        int64_t all = (to - 1) / PAGE - from / PAGE + 1;
        pages -= all - chunk_uncharged(chunk, from, to - from);
    }
    return pages;
}

/* Charges the part of one chunk; the count of pages, or -ENOMEM. */
static int64_t reserve_piece(struct store *store, struct inode *inode, int64_t off, uint32_t len)
{
    uint32_t in = (uint32_t)(off % CHUNK);
    struct chunk *chunk = data_chunk(store, inode, (uint64_t)off / CHUNK, in + len);
    if (!chunk)
        return -ENOMEM;
    int64_t pages = chunk_uncharged(chunk, in, len);
    chunk_charge(chunk, in, len);
    return pages;
}

/* All of the range or, for want of quota, nothing of it. */
static int reserve(struct store *store, struct inode *inode, int64_t off, int64_t len,
                   struct attr *attr)
{
    int64_t owed = uncharged_pages(inode, off, len);
    if (owed && (owed > INT64_MAX / PAGE || !quota_take(&store->bytes, owed * PAGE)))
        return -ENOSPC;

    for (int64_t done = 0, piece; owed && done < len; done += piece) {
        piece = smaller(len - done, CHUNK - (off + done) % CHUNK);
        int64_t pages = reserve_piece(store, inode, off + done, (uint32_t)piece);
        if (pages < 0) {
            quota_give(&store->bytes, owed * PAGE);
            return (int)pages;
        }
        owed -= pages;
        attr->used += pages * PAGE;
    }
    return 0;
}

static int allocate_locked(struct store *store, struct inode *inode, int mode, int64_t off,
                           int64_t len, struct attr *attr)
{
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        data_punch(store, inode, (uint64_t)off, (uint64_t)(off + len), attr);
    if (mode & FALLOC_FL_PUNCH_HOLE)
        return 0;
    int error = reserve(store, inode, off, len, attr);
    if (!error && !(mode & FALLOC_FL_KEEP_SIZE) && off + len > attr->size)
        attr->size = off + len;
    return error;
}

int space_allocate(struct store *store, struct inode *inode, int mode, int64_t off, int64_t len,
                   uid_t caller)
{
    int kind = mode & ~FALLOC_FL_KEEP_SIZE;

    if (inode->type != DT_REG)
        return -ENODEV;
    if (off < 0 || len <= 0)
        return -EINVAL;
    if (kind != 0 && kind != FALLOC_FL_ZERO_RANGE &&
        mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
        return -EOPNOTSUPP; /* no collapsing, inserting, unsharing */
    if (len > INT64_MAX - off)
        return -EFBIG;

    lock_write(&inode->lock);
    struct attr attr = inode->attr;
    int error = allocate_locked(store, inode, mode, off, len, &attr);
    if (!error) {
        attr.mtime = attr.ctime = stamp_for(store, inode);
        if (caller != 0)
            attr_drop_suid(&attr);
    }
    inode_set_attr(inode, &attr);
    lock_write_done(&inode->lock);
    return error;
}

/* ---- copy ------------------------------------------------------------------------------- */

struct copy {
    const struct inode *in;
    int64_t off; /* of the next byte to copy */
};

/* A data_source. Looks the data up anew: a write to the same file may have moved it. */
static ssize_t copy_data(void *from, void *to, size_t size)
{
    struct copy *copy = from;
    size_t done = 0;

    while (done < size) {
        struct iovec iov;
        int one = 1;
        size_t n = data_read(copy->in, copy->off, size - done, &iov, &one);
        if (n == 0)
            break;
        memcpy((char *)to + done, iov.iov_base, n);
        copy->off += (int64_t)n;
        done += n;
    }
    return (ssize_t)done;
}

/* Both locks are held. */
static ssize_t copy_locked(struct store *store, struct copy *copy, struct inode *out,
                           int64_t off_out, int64_t size, struct attr *attr)
{
    int64_t done = 0;
    ssize_t n = 0;

    while (done < size) {
        bool data;
        int64_t run = smaller(run_at(copy->in, copy->off, &data), size - done);
        if (data) {
            n = data_put(store, out, off_out + done, (size_t)run, copy_data, copy, attr);
            if (n <= 0)
                break;
            done += n;
        } else {
            data_punch(store, out, (uint64_t)(off_out + done), (uint64_t)(off_out + done + run),
                       attr);
            copy->off += run;
            done += run;
            if (off_out + done > attr->size)
                attr->size = off_out + done;
        }
    }
    return done ? (ssize_t)done : n;
}

static void lock_both(struct inode *in, struct inode *out)
{
    if (in < out)
        lock_read(&in->lock);
    lock_write(&out->lock);
    if (in > out)
        lock_read(&in->lock);
}

static void unlock_both(struct inode *in, struct inode *out)
{
    lock_write_done(&out->lock);
    if (in != out)
        lock_read_done(&in->lock);
}

ssize_t space_copy(struct store *store, struct inode *in, int64_t off_in, struct inode *out,
                   int64_t off_out, size_t size, uid_t caller)
{
    if (in->type != DT_REG || out->type != DT_REG || off_in < 0 || off_out < 0)
        return -EINVAL;

    inode_lock_accessed(store, in, 0); /* the source is read; to be locked again in order */
    lock_read_done(&in->lock);
    lock_both(in, out);
    struct copy copy = {in, off_in};
    struct attr attr = out->attr;
    int64_t left = off_in < in->attr.size ? in->attr.size - off_in : 0;
    int64_t len = size < (uint64_t)left ? (int64_t)size : left;
    ssize_t done = 0;

    if (len > INT64_MAX - off_out)
        done = -EFBIG;
    else if (in == out && off_in < off_out + len && off_out < off_in + len)
        done = -EINVAL;
    else if (len)
        done = copy_locked(store, &copy, out, off_out, len, &attr);
    if (done > 0) {
        attr.mtime = attr.ctime = stamp_for(store, out);
        if (caller != 0)
            attr_drop_suid(&attr);
    }
    inode_set_attr(out, &attr);
    unlock_both(in, out);
    return done;
}
