/*
 * data.c - the contents of regular files: read, write, cut, free.
 *
 * A file is a sparse array of chunks. Readers get pointers into them and hold the file's lock while
 * they copy; writers copy straight into them under the lock held for writing, so reads and writes
 * are atomic to each other, as POSIX asks.
 */
#include <errno.h>
#include <string.h>

#include "store.h"

enum {
    ZEROES = 65536,      /* bytes one vector of a hole can have */
    HUGE_FROM_CHUNK = 4, /* a file this long may waste most of a huge page at its end */
};

/* Behind the last page of the largest file, which INT64_MAX bytes do not fill. */
static const uint64_t END_OF_ALL = (uint64_t)INT64_MAX + 1;

static unsigned char zeroes[ZEROES]; /* never written */

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- read ------------------------------------------------------------------------------- */

size_t data_read(const struct inode *inode, int64_t off, size_t size, struct iovec *iov, int *count)
{
    int most = *count;
    size_t done = 0;

    *count = 0;
    if (off >= inode->attr.size)
        return 0;
    if (size > (uint64_t)(inode->attr.size - off))
        size = (size_t)(inode->attr.size - off);
    while (done < size && *count < most) {
        int64_t at = off + (int64_t)done;
        uint32_t in = (uint32_t)(at % CHUNK);
        uint32_t len = (uint32_t)smaller((int64_t)(size - done), CHUNK - in);
        const struct chunk *chunk = map_get(&inode->chunks, (uint64_t)at / CHUNK);
        bool data = false;
        if (chunk)
            len = chunk_run(chunk, in, len, &data);
        if (!data && len > ZEROES)
            len = ZEROES;
        iov[(*count)++] = (struct iovec){data ? chunk->mem + in : zeroes, len};
        done += len;
    }
    return done;
}

/* ---- write ------------------------------------------------------------------------------ */

/* What a new chunk is made of: a file that grew without holes is likely to grow on. */
static enum chunk_kind kind_for(const struct store *store, const struct inode *inode, uint64_t key)
{
    const struct chunk *before = key ? map_get(&inode->chunks, key - 1) : NULL;
    if (!before || !chunk_is_full(before))
        return CHUNK_FITTING;
    return store->huge && key >= HUGE_FROM_CHUNK ? CHUNK_HUGE : CHUNK_WHOLE;
}

struct chunk *data_chunk(struct store *store, struct inode *inode, uint64_t key, uint32_t end)
{
    struct chunk *chunk = map_get(&inode->chunks, key);
    if (chunk && end <= chunk->cap)
        return chunk;

    enum chunk_kind kind = chunk ? CHUNK_FITTING : kind_for(store, inode, key);
    struct chunk *grown = chunk_grow(store, chunk, end, kind);
    if (!grown)
        return NULL;
    if (grown != chunk && map_set(&inode->chunks, key, grown)) {
        map_erase(&inode->chunks, key); /* only a new chunk needs memory in the map */
        chunk_free(store, grown);
        return NULL;
    }
    return end <= grown->cap ? grown : NULL;
}

/* Forgets a chunk in which nothing is charged any more. */
static void settle(struct store *store, struct inode *inode, uint64_t key, struct chunk *chunk)
{
    if (chunk->charged)
        return;
    map_erase(&inode->chunks, key);
    chunk_free(store, chunk);
}

/* Charges as much of the range as the quota allows; the length of that. */
static uint32_t pay(struct store *store, struct chunk *chunk, uint32_t off, uint32_t len,
                    int64_t *used)
{
    int64_t price = (int64_t)chunk_uncharged(chunk, off, len) * PAGE;
    if (price == 0)
        return len;
    if (quota_take(&store->bytes, price)) {
        chunk_charge(chunk, off, len);
        *used += price;
        return len;
    }
    if (off / PAGE == (off + len - 1) / PAGE)
        return 0;

    uint32_t paid = 0;
    while (paid < len) { /* page by page */
        uint32_t piece = (uint32_t)smaller(len - paid, PAGE - (off + paid) % PAGE);
        if (!pay(store, chunk, off + paid, piece, used))
            break;
        paid += piece;
    }
    return paid;
}

/* A write within one chunk. */
static ssize_t put_piece(struct store *store, struct inode *inode, int64_t off, uint32_t len,
                         data_source *source, void *from, struct attr *attr)
{
    uint64_t key = (uint64_t)off / CHUNK;
    uint32_t in = (uint32_t)(off % CHUNK);
    ssize_t done = -ENOSPC;

    struct chunk *chunk = data_chunk(store, inode, key, in + len);
    if (!chunk)
        return -ENOMEM;
    len = pay(store, chunk, in, len, &attr->used);
    if (len)
        done = source(from, chunk->mem + in, len);
    if (done > 0)
        chunk_filled(chunk, in, (uint32_t)done);
    settle(store, inode, key, chunk);
    return done;
}

ssize_t data_put(struct store *store, struct inode *inode, int64_t off, size_t size,
                 data_source *source, void *from, struct attr *attr)
{
    size_t done = 0;
    ssize_t n = 0;

    while (done < size) {
        int64_t at = off + (int64_t)done;
        uint32_t len = (uint32_t)smaller((int64_t)(size - done), CHUNK - at % CHUNK);
        n = put_piece(store, inode, at, len, source, from, attr);
        if (n <= 0)
            break;
        done += (size_t)n;
        if ((uint32_t)n < len)
            break;
    }
    if (done && off + (int64_t)done > attr->size)
        attr->size = off + (int64_t)done;
    return done ? (ssize_t)done : n;
}

ssize_t data_write(struct store *store, struct inode *inode, int64_t off, size_t size,
                   data_source *source, void *from, uid_t caller)
{
    if (inode->type != DT_REG || off < 0)
        return -EINVAL;
    if (off == INT64_MAX && size)
        return -EFBIG;
    if (size > (uint64_t)(INT64_MAX - off))
        size = (size_t)(INT64_MAX - off);

    lock_write(&inode->lock);
    struct attr attr = inode->attr;
    ssize_t done = data_put(store, inode, off, size, source, from, &attr);
    if (done > 0) {
        attr.mtime = attr.ctime = stamp_for(store, inode);
        if (caller != 0)
            attr_drop_suid(&attr);
    }
    inode_set_attr(inode, &attr);
    lock_write_done(&inode->lock);
    return done;
}

/* ---- cut and free ----------------------------------------------------------------------- */

static void uncharge(struct store *store, uint32_t pages, int64_t *used)
{
    quota_give(&store->bytes, (int64_t)pages * PAGE);
    *used -= (int64_t)pages * PAGE;
}

void data_punch(struct store *store, struct inode *inode, uint64_t off, uint64_t end,
                struct attr *attr)
{
    uint64_t key = off / CHUNK;
    struct chunk *chunk;

    for (; (chunk = map_next(&inode->chunks, &key)) && key * CHUNK < end; key++) {
        uint64_t start = key * CHUNK;
        uint32_t from = off > start ? (uint32_t)(off - start) : 0;
        uint32_t to = end - start < CHUNK ? (uint32_t)(end - start) : CHUNK;
        uncharge(store, chunk_punch(chunk, from, to - from), &attr->used);
        settle(store, inode, key, chunk);
    }
}

void data_resize(struct store *store, struct inode *inode, int64_t size, struct attr *attr)
{
    if (size <= attr->size && attr->used) {
        data_punch(store, inode, (uint64_t)size, END_OF_ALL, attr);
        struct chunk *chunk = map_get(&inode->chunks, (uint64_t)size / CHUNK);
        if (chunk)
            chunk_trim(store, chunk, (uint32_t)(size % CHUNK));
    }
    attr->size = size;
}

void data_free(struct store *store, struct inode *inode)
{
    struct attr attr = inode->attr;
    if (inode->chunks.root)
        data_punch(store, inode, 0, END_OF_ALL, &attr);
    assert(attr.used == 0);
}
