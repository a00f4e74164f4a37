/*
 * lock_range.c - byte-range locks that the core itself keeps, POSIX and OFD.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "core/lock_private.h"

#define CHAIN_MAX 10 /* steps of deadlock detection: MAX_DEADLK_ITERATIONS of the kernel */

/* Who sleeps for whom: POSIX owners only. */
struct sleeper {
    struct sleeper *next;
    uint64_t owner;
    uint64_t holder;
};

static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER; /* inside a shard's lock */
static struct sleeper *sleepers;

/* ---- deadlock ------------------------------------------------------------------------------ */

/* For whom does this owner sleep? 0: for nobody. Under sleepers_lock. */
static uint64_t holder_for(uint64_t owner)
{
    for (struct sleeper *s = sleepers; s; s = s->next)
        if (s->owner == owner)
            return s->holder;
    return 0;
}

/* Enters the sleeper, unless its holder already sleeps, over others, for it. */
static bool may_sleep(struct sleeper *sleeper)
{
    uint64_t owner = sleeper->holder;
    bool may = true;

    pthread_mutex_lock(&sleepers_lock);
    for (int i = 0; i < CHAIN_MAX && may && owner; i++) {
        may = owner != sleeper->owner;
        owner = holder_for(owner);
    }
    if (may) {
        sleeper->next = sleepers;
        sleepers = sleeper;
    }
    pthread_mutex_unlock(&sleepers_lock);
    return may;
}

static void wake_sleeper(struct sleeper *sleeper)
{
    struct sleeper **at = &sleepers;

    pthread_mutex_lock(&sleepers_lock);
    while (*at != sleeper)
        at = &(*at)->next;
    *at = sleeper->next;
    pthread_mutex_unlock(&sleepers_lock);
}

/* ---- ranges -------------------------------------------------------------------------------- */

static bool overlaps(const struct df_held *held, const struct df_lock *lock)
{
    return held->start <= lock->end && held->end >= lock->start;
}

/* F_OFD_GETLK with F_UNLCK asks for the owner's own (Linux 6.5). */
static bool conflicts(const struct df_held *held, const struct df_lock *lock)
{
    if (!overlaps(held, lock))
        return false;
    if (lock->type == F_UNLCK)
        return held->owner == lock->owner;
    return held->owner != lock->owner && (held->type == F_WRLCK || lock->type == F_WRLCK);
}

static struct df_held *find_conflict(struct df_locked *inode, const struct df_lock *lock)
{
    for (struct df_held *h = inode->ranges; h; h = h->next)
        if (conflicts(h, lock))
            return h;
    return NULL;
}

static void insert(struct df_locked *inode, struct df_held *held)
{
    struct df_held **at = &inode->ranges;

    while (*at && (*at)->owner != held->owner)
        at = &(*at)->next;
    while (*at && (*at)->owner == held->owner && (*at)->start < held->start)
        at = &(*at)->next;
    held->next = *at;
    *at = held;
    df_lock_table_count(inode);
}

/* Takes the lock's range out of what its owner holds, but for `made`. `spare` becomes the tail when
 * one held lock is cut in two; returns whether it was used. */
static bool cut(struct df_locked *inode, const struct df_lock *lock, const struct df_held *made,
                struct df_held *spare)
{
    struct df_held **at = &inode->ranges;
    bool used = false;

    while (*at) {
        struct df_held *h = *at;

        if (h == made || h->owner != lock->owner || !overlaps(h, lock)) {
            at = &h->next;
        } else if (h->start < lock->start && h->end > lock->end) {
            *spare = *h;
            spare->start = lock->end + 1;
            h->end = lock->start - 1;
            used = true;
            at = &h->next;
        } else if (h->start < lock->start) {
            h->end = lock->start - 1;
            at = &h->next;
        } else if (h->end > lock->end) {
            h->start = lock->end + 1;
            at = &h->next;
        } else {
            *at = h->next;
            df_lock_table_free(inode, h);
        }
    }
    if (used)
        insert(inode, spare);
    return used;
}

/* Joins the owner's locks of one type that touch. */
static void merge(struct df_locked *inode, uint64_t owner)
{
    for (struct df_held *h = inode->ranges; h; h = h->next) {
        struct df_held **at = &h->next;

        while (h->owner == owner && *at) {
            struct df_held *n = *at;
            bool touches = h->end == INT64_MAX || n->start <= h->end + 1;

            if (n->owner != owner || n->type != h->type || !touches) {
                at = &n->next;
                continue;
            }
            if (n->end > h->end)
                h->end = n->end;
            *at = n->next;
            df_lock_table_free(inode, n);
        }
    }
}

/* No conflict any more. The two spares are for the lock itself and for the tail of one it cuts. */
static void apply(struct df_locked *inode, const struct df_lock *lock, struct df_held *spares[2])
{
    struct df_held *made = NULL;

    if (lock->type != F_UNLCK) { /* before the cut: the owner keeps its place among the owners */
        made = spares[1];
        spares[1] = NULL;
        *made = (struct df_held){
            .owner = lock->owner,
            .start = lock->start,
            .end = lock->end,
            .type = lock->type,
            .pid = lock->pid,
        };
        insert(inode, made);
    }
    if (cut(inode, lock, made, spares[0]))
        spares[0] = NULL;
    merge(inode, lock->owner);
}

static int test(struct df_locked *inode, struct df_lock *lock)
{
    struct df_held *conflict = inode ? find_conflict(inode, lock) : NULL;

    if (!conflict) {
        lock->type = F_UNLCK;
        return 0;
    }
    lock->type = conflict->type;
    lock->start = conflict->start;
    lock->end = conflict->end;
    lock->pid = conflict->pid;
    return 0;
}

/* OFD locks are left out of deadlock detection, as in the kernel: their owners are no one's. */
static int wait_for(struct df_lock_shard *shard, struct df_thread *thread,
                    const struct df_lock *lock, const struct df_held *conflict)
{
    struct sleeper sleeper = {.owner = lock->owner, .holder = conflict->owner};
    int ret;

    if (lock->pid == -1)
        return df_lock_table_sleep(shard, thread);
    if (!may_sleep(&sleeper))
        return -EDEADLK;
    ret = df_lock_table_sleep(shard, thread);
    wake_sleeper(&sleeper);
    return ret;
}

/* Under the shard's lock. */
static int set(struct df_lock_shard *shard, struct df_thread *thread, struct df_file *file,
               const struct df_lock *lock, struct df_held *spares[2])
{
    struct df_locked *inode;
    struct df_held *conflict;
    int ret;

    for (;;) {
        inode = df_lock_table_make(shard, file);
        if (!inode)
            return -ENOLCK;
        conflict = lock->type == F_UNLCK ? NULL : find_conflict(inode, lock);
        if (!conflict)
            break;
        ret = lock->wait ? wait_for(shard, thread, lock, conflict) : -EAGAIN;
        if (ret < 0)
            return ret;
    }
    apply(inode, lock, spares);
    df_lock_table_drop(shard, inode);
    df_lock_table_wake(shard);
    return 0;
}

int df_lock_range_apply(struct df_call *call, struct df_file *file, struct df_lock *lock)
{
    struct df_held *spares[2] = {NULL, NULL};
    struct df_lock_shard *shard = df_lock_table_shard(file);
    int ret;

    if (!lock->test) {
        spares[0] = malloc(sizeof(*spares[0]));
        spares[1] = malloc(sizeof(*spares[1]));
    }
    pthread_mutex_lock(&shard->lock);
    if (lock->test)
        ret = test(df_lock_table_find(shard, file), lock);
    else
        ret = spares[0] && spares[1] ? set(shard, call->thread, file, lock, spares) : -ENOLCK;
    pthread_mutex_unlock(&shard->lock);
    free(spares[0]);
    free(spares[1]);
    return ret;
}

/* ---- the end ------------------------------------------------------------------------------- */

void df_lock_range_forget(struct df_locked *inode, uint64_t owner)
{
    struct df_lock all = {.owner = owner, .type = F_UNLCK, .end = INT64_MAX};

    cut(inode, &all, NULL, NULL); /* covers every lock, so none is cut in two */
}

void df_lock_range_close(struct df_file *file, uint64_t owner)
{
    struct df_lock_shard *shard = df_lock_table_shard(file);
    struct df_locked *inode;

    pthread_mutex_lock(&shard->lock);
    inode = df_lock_table_find(shard, file);
    if (inode) {
        df_lock_range_forget(inode, owner);
        df_lock_table_drop(shard, inode);
        df_lock_table_wake(shard);
    }
    pthread_mutex_unlock(&shard->lock);
}

/* ---- fork ---------------------------------------------------------------------------------- */

void df_lock_range_lock_sleepers(void)
{
    pthread_mutex_lock(&sleepers_lock);
}

void df_lock_range_unlock_sleepers(void)
{
    pthread_mutex_unlock(&sleepers_lock);
}

void df_lock_range_after_fork(void)
{
    sleepers = NULL;
}
