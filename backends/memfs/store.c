/*
 * store.c - a whole file system comes and goes, and tells how full it is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store.h"

enum {
    BYTES_BATCH = 1 << 20, /* what a CPU reserves at once */
    INODES_BATCH = 256,
    FULL_CREDIT = 16, /* at most this part of a small limit lies with the CPUs */
};

/* Credit of many CPUs must not eat up a small limit: collecting it takes time. */
static int64_t batch_for(int64_t limit, int64_t batch)
{
    int64_t most = limit / FULL_CREDIT / quota_shards();
    return limit && most < batch ? most : batch;
}

static bool init_shards(struct store *store)
{
    unsigned count = quota_shards();

    store->shards = aligned_alloc(CACHE_LINE, count * sizeof(*store->shards));
    if (!store->shards)
        return false;
    memset(store->shards, 0, count * sizeof(*store->shards));
    store->shard_mask = count - 1;
    return true;
}

static bool make_root(struct store *store, const struct store_options *options)
{
    mode_t mode = S_IFDIR | (options->mode & 07777);
    struct timespec now = stamp_now(store, false);
    int error;

    store->born = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    struct inode *root = inode_new(store, mode, options->uid, options->gid, &now, &error);
    if (!root)
        return false;
    store->root = root;
    root->attr.nlink = 2;
    root->attr.size = 40;
    root->dir = dir_new(root);
    return root->dir != NULL;
}

struct store *store_new(const struct store_options *options)
{
    struct store *store = aligned_alloc(_Alignof(struct store), sizeof(*store));
    if (!store)
        return NULL;
    memset(store, 0, sizeof(*store));
    store->noatime = options->noatime;
    store->huge = options->huge;
    atomic_init(&store->next_ino, 1);
    pool_init(&store->pools[0], false);
    pool_init(&store->pools[1], true);
    /* Without randomness all works; only an attacker could tell. */
    if (getrandom(&store->seed, sizeof(store->seed), GRND_NONBLOCK) < 0)
        store->seed = (uint64_t)(uintptr_t)store;

    if (quota_init(&store->bytes, options->size, batch_for(options->size, BYTES_BATCH)) ||
        quota_init(&store->inodes, options->inodes, batch_for(options->inodes, INODES_BATCH)) ||
        !init_shards(store) || !make_root(store, options)) {
        store_free(store);
        return NULL;
    }
    return store;
}

void store_free(struct store *store)
{
    inode_free_all(store);
    pool_free(&store->pools[0]);
    pool_free(&store->pools[1]);
    quota_free(&store->bytes);
    quota_free(&store->inodes);
    free(store->shards);
    free(store);
}

void store_statfs(struct store *store, struct statvfs *out)
{
    *out = (struct statvfs){
        .f_bsize = PAGE,
        .f_frsize = PAGE,
        .f_blocks = (fsblkcnt_t)(store->bytes.limit / PAGE),
        .f_bfree = (fsblkcnt_t)(quota_left(&store->bytes) / PAGE),
        .f_files = (fsfilcnt_t)store->inodes.limit,
        .f_ffree = (fsfilcnt_t)quota_left(&store->inodes),
        .f_namemax = NAME_LIMIT,
    };
    out->f_bavail = out->f_bfree;
    out->f_favail = out->f_ffree;
}
