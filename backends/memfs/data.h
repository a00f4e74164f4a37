/*
 * data.h - the contents of files: chunks, the map that holds them, and their memory.
 *
 * The part of store.h that is about bytes; see there for the rules and for who locks what.
 */
#ifndef MEMFS_DATA_H
#define MEMFS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lock.h"

#pragma GCC visibility push(hidden)

struct attr;
struct inode;
struct store;

/* ---- types ------------------------------------------------------------------------------ */

enum {
    PAGE = 4096,     /* granule of holes and of accounting, bytes */
    CHUNK = 2 << 20, /* most bytes of a file that lie in one piece: a huge page */
    CHUNK_PAGES = CHUNK / PAGE,
};

/*
 * Sparse array of pointers by a 64-bit key: a radix tree that is as high as its largest key. One
 * word, the address of a value or node with the height in its low bits; 0 is an empty map.
 */
struct map {
    uintptr_t root;
};

/* A stretch of a file, CHUNK bytes long and aligned to it in the file. */
struct chunk {
    unsigned char *mem;
    uint32_t cap;     /* bytes of mem: a power of two; what lies behind is a hole */
    uint16_t charged; /* count of pages charged: the bits of the second map */
    uint8_t words;    /* of each of the two maps of pages below */
    uint8_t kind;     /* enum chunk_kind: where mem comes from */
    uint64_t maps[];  /* pages filled with data, then pages charged (a superset: fallocate) */
};

enum chunk_kind {
    CHUNK_FITTING, /* malloc, as large as need be */
    CHUNK_LENT,    /* lend.c, whole pages: others may read it where it lies */
    CHUNK_WHOLE,   /* the pool of small pages */
    CHUNK_HUGE,    /* the pool of huge pages */
};

/* Memory of whole chunks. */
struct pool {
    struct lock lock; /* protects the rest; not held during system calls that free memory */
    void **warm;      /* free chunks that still have their memory */
    void **cold;      /* free chunks that are address space only */
    size_t nwarm, ncold;
    void **arenas; /* start of every mapping */
    size_t narenas;
    bool huge; /* ask for huge pages */
};

/* ---- map.c ------------------------------------------------------------------------------ */

void *map_get(const struct map *map, uint64_t key);
/* -ENOMEM */
int map_set(struct map *map, uint64_t key, void *value);
void map_erase(struct map *map, uint64_t key);
/* The value with the smallest key not below *key, which becomes its key. NULL: none. */
void *map_next(const struct map *map, uint64_t *key);

/* ---- lend.c ----------------------------------------------------------------------------- */

/* Whole pages of undefined contents, at least `size` bytes. NULL: nobody lends any, or no more. */
void *lend_take(size_t size);
void lend_give(void *mem);
/* Found by its name, and called before main(): it holds for all stores of the process. NULL: nobody
 * lends. */
__attribute__((visibility("default"))) void directfuse_lend(void *(*take)(size_t size),
                                                            void (*give)(void *mem));

/* ---- pool.c ----------------------------------------------------------------------------- */

void pool_init(struct pool *pool, bool huge);
void pool_free(struct pool *pool);
/* CHUNK bytes, aligned to CHUNK, of undefined contents. NULL: no memory. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *mem);

/* ---- chunk.c: all under the file's lock -------------------------------------------------- */

/*
 * The chunk (NULL: a new one) with memory for at least `end` bytes; `kind` is what large ones
 * should be made of. NULL: no memory, and the chunk is as it was.
 */
struct chunk *chunk_grow(struct store *store, struct chunk *chunk, uint32_t end,
                         enum chunk_kind kind);
/* Gives memory behind `end` back if that is much. */
void chunk_trim(struct store *store, struct chunk *chunk, uint32_t end);
void chunk_free(struct store *store, struct chunk *chunk);
/* Length of the run from `off`, at most `len`, that is all data (*data) or all hole. */
uint32_t chunk_run(const struct chunk *chunk, uint32_t off, uint32_t len, bool *data);
/* Count of pages of the range that are not charged. */
uint32_t chunk_uncharged(const struct chunk *chunk, uint32_t off, uint32_t len);
/* Marks the range charged; the caller has paid. */
void chunk_charge(struct chunk *chunk, uint32_t off, uint32_t len);
/* The range has been copied into mem: new pages are zeroed around it and become data. */
void chunk_filled(struct chunk *chunk, uint32_t off, uint32_t len);
/* Frees whole pages of the range and zeroes the rest. Count of pages no longer charged. */
uint32_t chunk_punch(struct chunk *chunk, uint32_t off, uint32_t len);
/* Is every page data? */
bool chunk_is_full(const struct chunk *chunk);

/* ---- data.c ----------------------------------------------------------------------------- */

/*
 * Copies `size` bytes of what is to be written to `to`; count, which may be short, or negative
 * errno. Called once for each piece, in order.
 */
typedef ssize_t data_source(void *from, void *to, size_t size);

/* Count of bytes written, or -ENOSPC, -EFBIG, -ENOMEM, -EINVAL, or the source's error. */
ssize_t data_write(struct store *store, struct inode *inode, int64_t off, size_t size,
                   data_source *source, void *from, uid_t caller);
/*
 * Points at most *count vectors at the bytes from `off`, at most `size`, and not behind the end of
 * the file. Sum of their lengths. The file's lock is held as long as they are used.
 */
size_t data_read(const struct inode *inode, int64_t off, size_t size, struct iovec *iov,
                 int *count);
/* Frees all data of an inode that nobody can reach. */
void data_free(struct store *store, struct inode *inode);

/* For attr.c and space.c: parts of a change. The lock is held for writing, *attr is set later. */

/* As data_write(), and sets size and use. */
ssize_t data_put(struct store *store, struct inode *inode, int64_t off, size_t size,
                 data_source *source, void *from, struct attr *attr);
/* Sets the size and frees what lies behind. */
void data_resize(struct store *store, struct inode *inode, int64_t size, struct attr *attr);
/* Makes a hole from `off` up to, not including, `end`; sets use. */
void data_punch(struct store *store, struct inode *inode, uint64_t off, uint64_t end,
                struct attr *attr);
/* The chunk at `key` with memory for `end` bytes of it, made if need be. NULL: no memory. */
struct chunk *data_chunk(struct store *store, struct inode *inode, uint64_t key, uint32_t end);

/* ---- space.c ---------------------------------------------------------------------------- */

/* The next data or hole (SEEK_DATA, SEEK_HOLE) from `off`. -ENXIO, -EINVAL */
int64_t space_seek(struct inode *inode, int64_t off, int whence);
/* fallocate(2): 0, KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE. -EOPNOTSUPP, -ENOSPC, -EFBIG, -ENOMEM */
int space_allocate(struct store *store, struct inode *inode, int mode, int64_t off, int64_t len,
                   uid_t caller);
/* Count of bytes copied, or as data_write(). Holes stay holes. */
ssize_t space_copy(struct store *store, struct inode *in, int64_t off_in, struct inode *out,
                   int64_t off_out, size_t size, uid_t caller);

#pragma GCC visibility pop
#endif
