/*
 * inode.c - the life of inodes: their memory, numbers, references and times.
 *
 * Inodes come from slabs that are never given back before the store is freed, so an inode's address
 * serves as its FUSE node id. A freed inode is used again under a new number (inode->ino), which is
 * also the generation that tells the kernel the two apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif

#ifdef POISONING /* let AddressSanitizer see the use of a freed inode, all but its references */
#include <sanitizer/asan_interface.h>
#define POISON(inode)   ASAN_POISON_MEMORY_REGION(&(inode)->attr, sizeof(struct attr))
#define UNPOISON(inode) ASAN_UNPOISON_MEMORY_REGION(&(inode)->attr, sizeof(struct attr))
#else
#define POISON(inode)   ((void)(inode))
#define UNPOISON(inode) ((void)(inode))
#endif

enum {
    SLAB_INODES = 511,  /* with the header, 64 KiB */
    INO_BATCH = 1024,   /* numbers a shard reserves at once */
    DAY = 24 * 60 * 60, /* relatime, seconds */
};

struct slab {
    struct slab *next;
    struct inode inodes[SLAB_INODES];
};

/* ---- memory ----------------------------------------------------------------------------- */

/* A new slab for the shard, which has been entered. False: no memory. */
static bool add_slab(struct store *store, struct shard *shard)
{
    struct slab *slab = aligned_alloc(_Alignof(struct slab), sizeof(*slab));
    if (!slab)
        return false;
    for (int i = 0; i < SLAB_INODES; i++)
        atomic_init(&slab->inodes[i].refs, 0);
    shard->fresh = slab->inodes;
    shard->end = slab->inodes + SLAB_INODES;

    lock_write(&store->slabs_lock);
    slab->next = store->slabs;
    store->slabs = slab;
    lock_write_done(&store->slabs_lock);
    return true;
}

/* A shard that was not busy, preferably of this CPU. */
static struct shard *enter_shard(struct store *store)
{
    unsigned first = (unsigned)sched_getcpu();

    for (unsigned i = 0;; i++) {
        struct shard *shard = &store->shards[(first + i) & store->shard_mask];
        if (!atomic_exchange_explicit(&shard->busy, true, memory_order_acquire))
            return shard;
        if (i >= store->shard_mask)
            sched_yield();
    }
}

static inline void leave_shard(struct shard *shard)
{
    atomic_store_explicit(&shard->busy, false, memory_order_release);
}

/* An inode with nothing set but its number. */
static struct inode *take_inode(struct store *store)
{
    struct shard *shard = enter_shard(store);
    struct inode *inode = NULL;

    if (shard->free) {
        inode = shard->free;
        shard->free = inode->next;
    } else if (shard->fresh < shard->end || add_slab(store, shard)) {
        inode = shard->fresh++;
    }
    if (inode) {
        if (shard->ino == shard->ino_end) {
            shard->ino =
                atomic_fetch_add_explicit(&store->next_ino, INO_BATCH, memory_order_relaxed);
            shard->ino_end = shard->ino + INO_BATCH;
        }
        inode->ino = shard->ino++;
        UNPOISON(inode);
    }
    leave_shard(shard);
    return inode;
}

static void give_inode(struct store *store, struct inode *inode)
{
    struct shard *shard = enter_shard(store);

    POISON(inode);
    inode->next = shard->free;
    shard->free = inode;
    leave_shard(shard);
}

/* ---- life ------------------------------------------------------------------------------- */

static int64_t microseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000 + time->tv_nsec / 1000;
}

/* 48 bits are four years before and after the store was made. */
static void set_born(const struct store *store, struct inode *inode, const struct timespec *now)
{
    int64_t age = microseconds(now) - store->born;

    inode->born_high = (int16_t)(age >> 32);
    inode->born_low = (uint32_t)age;
}

struct timespec inode_born(const struct store *store, const struct inode *inode)
{
    int64_t born = store->born + inode->born_high * (INT64_C(1) << 32) + inode->born_low;

    return (struct timespec){.tv_sec = born / 1000000, .tv_nsec = born % 1000000 * 1000};
}

struct inode *inode_new(struct store *store, mode_t mode, uid_t uid, gid_t gid,
                        const struct timespec *now, int *error)
{
    if (!quota_take(&store->inodes, 1)) {
        *error = -ENOSPC;
        return NULL;
    }
    struct inode *inode = take_inode(store);
    if (!inode) {
        quota_give(&store->inodes, 1);
        *error = -ENOMEM;
        return NULL;
    }

    atomic_init(&inode->lock.word, 0);
    atomic_init(&inode->version, 0);
    atomic_init(&inode->refs, 1);
    atomic_init(&inode->seen, false);
    inode->type = IFTODT(mode);
    set_born(store, inode, now);
    inode->attr = (struct attr){
        .mode = mode,
        .nlink = 1,
        .uid = uid,
        .gid = gid,
        .atime = *now,
        .mtime = *now,
        .ctime = *now,
    };
    inode->dir = NULL;
    inode->xattrs = NULL;
    return inode;
}

/* Frees what the inode holds. The parent a directory held a reference to, else NULL. */
static struct inode *free_contents(struct store *store, struct inode *inode)
{
    struct inode *parent = NULL;

    if (inode->type == DT_REG) {
        data_free(store, inode);
    } else if (inode->type == DT_LNK) {
        quota_give(&store->bytes, inode->attr.used);
        free(inode->target);
    } else if (inode->type == DT_DIR && inode->dir) {
        parent = inode->dir->parent;
        dir_free(inode->dir);
    }
    if (inode->xattrs)
        xattr_free_all(store, inode);
    return parent;
}

void inode_put(struct store *store, struct inode *inode, uint64_t count)
{
    /* A loop: a directory may have been the last to keep its removed parent. */
    while (inode) {
        /* Whoever holds all references that are left needs no atomic operation: only a holder, or
           a name, which is one, could make more. */
        uint64_t refs = atomic_load_explicit(&inode->refs, memory_order_acquire);
        if (refs != count)
            refs = atomic_fetch_sub_explicit(&inode->refs, count, memory_order_acq_rel);
        assert(refs >= count);
        if (refs != count)
            return;
        atomic_store_explicit(&inode->refs, 0, memory_order_relaxed);
        lock_drain(&inode->lock); /* a READ whose reply is out, and FORGET is here already */
        struct inode *parent = free_contents(store, inode);
        give_inode(store, inode);
        quota_give(&store->inodes, 1);
        inode = parent;
        count = 1;
    }
}

void inode_free_all(struct store *store)
{
    while (store->slabs) {
        struct slab *slab = store->slabs;
        for (int i = 0; i < SLAB_INODES; i++) {
            if (atomic_load_explicit(&slab->inodes[i].refs, memory_order_relaxed))
                free_contents(store, &slab->inodes[i]);
            UNPOISON(&slab->inodes[i]);
        }
        store->slabs = slab->next;
        free(slab);
    }
}

struct attr inode_attr_locked(struct inode *inode)
{
    lock_read(&inode->lock);
    struct attr attr = inode->attr;
    lock_read_done(&inode->lock);
    return attr;
}

/* ---- times ------------------------------------------------------------------------------ */

/* Not younger, as relatime asks. */
static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec <= b->tv_nsec;
}

/* The rule of relatime, see mount(8). */
static bool access_is_due(const struct store *store, const struct attr *attr)
{
    if (store->noatime)
        return false;
    if (is_older(&attr->atime, &attr->mtime) || is_older(&attr->atime, &attr->ctime))
        return true;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec - attr->atime.tv_sec >= DAY;
}

static void set_atime(struct store *store, struct inode *inode)
{
    struct timespec now = stamp_now(store, false);

    lock_write(&inode->lock);
    struct attr attr = inode->attr;
    attr.atime = now;
    inode_set_attr(inode, &attr);
    lock_write_done(&inode->lock);
}

void inode_lock_accessed(struct store *store, struct inode *inode, int flags)
{
    lock_read(&inode->lock);
    if (!access_is_due(store, &inode->attr) || flags & O_NOATIME)
        return;
    lock_read_done(&inode->lock);
    set_atime(store, inode);
    lock_read(&inode->lock);
}
