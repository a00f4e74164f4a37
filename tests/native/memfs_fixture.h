/*
 * memfs_fixture.h - what the tests of memfs's store share: a small store, short names for calls.
 */
#ifndef MEMFS_FIXTURE_H
#define MEMFS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "memfs/store.h"

enum { SEED = 20240611, PAGES = 4096 /* of the store's limit */, INODES = 3000 };

static struct store *store;
static unsigned long long random_state;

static inline unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(random_state >> 33) % limit;
}

static inline int make_store(void **state)
{
    struct store_options options = {.size = (int64_t)PAGES * PAGE,
                                    .inodes = INODES,
                                    .mode = 0755,
                                    .uid = 1,
                                    .gid = 2,
                                    .huge = true};
    (void)state;
    random_state = SEED;
    store = store_new(&options);
    return store ? 0 : -1;
}

static inline int drop_store(void **state)
{
    (void)state;
    store_free(store);
    return 0;
}

static inline int64_t pages_left(void)
{
    return quota_left(&store->bytes) / PAGE;
}

/* ---- short names for calls -------------------------------------------------------------- */

static inline int make(struct inode *parent, const char *name, mode_t mode, struct inode **out)
{
    struct tree_new what = {.mode = mode, .target = "target"};
    return tree_create(store, parent, name, &what, out);
}

static inline struct inode *make_file(struct inode *parent, const char *name)
{
    struct inode *inode;
    assert_int_equal(make(parent, name, S_IFREG | 0644, &inode), 0);
    return inode;
}

static inline struct inode *make_dir(struct inode *parent, const char *name)
{
    struct inode *inode;
    assert_int_equal(make(parent, name, S_IFDIR | 0755, &inode), 0);
    return inode;
}

static inline ssize_t from_memory(void *from, void *to, size_t size)
{
    const char **at = from;
    memcpy(to, *at, size);
    *at += size;
    return (ssize_t)size;
}

static inline ssize_t put(struct inode *inode, const void *data, size_t size, int64_t off)
{
    return data_write(store, inode, off, size, from_memory, &data, 0);
}

static inline size_t get(struct inode *inode, void *data, size_t size, int64_t off)
{
    size_t done = 0, n;
    lock_read(&inode->lock);
    do {
        struct iovec iov[3];
        int count = 3;
        n = data_read(inode, off + (int64_t)done, size - done, iov, &count);
        for (int i = 0; i < count; i++) {
            memcpy((char *)data + done, iov[i].iov_base, iov[i].iov_len);
            done += iov[i].iov_len;
        }
    } while (n);
    lock_read_done(&inode->lock);
    return done;
}

static inline int resize(struct inode *inode, int64_t size)
{
    struct attr_change change = {.valid = ATTR_SIZE, .to.size = size};
    return attr_set(store, inode, &change);
}

#define MEMFS_TEST(name) cmocka_unit_test_setup_teardown(name, make_store, drop_store)

#endif
