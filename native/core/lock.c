/*
 * lock.c - the core's own byte-range and flock locks.
 *
 * Inodes with locks hang in one of SHARDS lists. A sleeper waits on its shard's futex word, which
 * every release in the shard advances: rarely wakes more than it should, and a signal ends the wait
 * as it does in the kernel (a condition variable would hide it).
 */
#include "core/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/call.h"
#include "core/gate.h"
#include "core/mount.h"
#include "core/placed.h"

#define SHARDS    16
#define CHAIN_MAX 10 /* steps of deadlock detection: MAX_DEADLK_ITERATIONS of the kernel */

/* A byte-range lock, or (whole) a flock(2) lock of its file. */
struct held {
    struct held *next;
    uint64_t owner;
    off_t start;
    off_t end;
    int16_t type;
    pid_t pid;
};

struct inode {
    struct inode *next;
    struct df_mount *mount;
    ino_t ino;
    struct held *ranges; /* owner by owner, in the order of their first locks; each sorted by start,
                            none of which overlap: F_GETLK shows the first that conflicts */
    struct held *flocks;
};

struct shard {
    pthread_mutex_t lock; /* protects inodes and all below */
    struct inode *inodes;
    uint32_t sleeping;         /* threads in sleep_in() */
    _Atomic uint32_t releases; /* futex */
};

static struct shard shards[SHARDS] = {
    [0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

/* Who sleeps for whom: POSIX owners only. */
struct sleeper {
    struct sleeper *next;
    uint64_t owner;
    uint64_t holder;
};

static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER; /* inside a shard's lock */
static struct sleeper *sleepers;

uint64_t df_lock_file_owner(const struct df_file *file)
{
    return (uint64_t)(uintptr_t)file;
}

static struct df_mount *mount_of(const struct df_file *file)
{
    return atomic_load_explicit(&file->mount, memory_order_relaxed);
}

/* ---- inodes -------------------------------------------------------------------------------- */

static struct shard *shard_of(const struct df_file *file)
{
    uint64_t key = (uint64_t)(uintptr_t)mount_of(file) ^ (uint64_t)file->ino;

    return &shards[key * UINT64_C(0x9E3779B97F4A7C15) >> 60];
}

static struct inode *find_inode(struct shard *shard, const struct df_file *file)
{
    for (struct inode *i = shard->inodes; i; i = i->next)
        if (i->ino == file->ino && i->mount == mount_of(file))
            return i;
    return NULL;
}

static struct inode *make_inode(struct shard *shard, const struct df_file *file)
{
    struct inode *inode = find_inode(shard, file);

    if (inode || !(inode = calloc(1, sizeof(*inode))))
        return inode;
    inode->mount = mount_of(file);
    inode->ino = file->ino;
    inode->next = shard->inodes;
    shard->inodes = inode;
    return inode;
}

static void drop_if_empty(struct shard *shard, struct inode *inode)
{
    struct inode **at = &shard->inodes;

    if (inode->ranges || inode->flocks)
        return;
    while (*at != inode)
        at = &(*at)->next;
    *at = inode->next;
    free(inode);
}

/* Something was released: who waits in this shard looks again. */
static void wake(struct shard *shard)
{
    if (shard->sleeping == 0)
        return;
    atomic_fetch_add(&shard->releases, 1);
    syscall(SYS_futex, &shard->releases, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void free_held(struct inode *inode, struct held *held)
{
    atomic_fetch_sub_explicit(&inode->mount->lock_count, 1, memory_order_relaxed);
    free(held);
}

/* Sleeps until something is released; the shard's lock is given up meanwhile. 0 or -EINTR. */
static int sleep_in(struct shard *shard, struct df_thread *thread)
{
    uint32_t seen = atomic_load(&shard->releases);
    int saved = errno, ret = 0;

    shard->sleeping++;
    pthread_mutex_unlock(&shard->lock);
    df_gate_sleep(thread);
    if (syscall(SYS_futex, &shard->releases, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) < 0 &&
        errno == EINTR)
        ret = -EINTR;
    errno = saved;
    df_gate_awake(thread);
    pthread_mutex_lock(&shard->lock);
    shard->sleeping--;
    return ret;
}

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

static bool overlaps(const struct held *held, const struct df_lock *lock)
{
    return held->start <= lock->end && held->end >= lock->start;
}

/* F_OFD_GETLK with F_UNLCK asks for the owner's own (Linux 6.5). */
static bool conflicts(const struct held *held, const struct df_lock *lock)
{
    if (!overlaps(held, lock))
        return false;
    if (lock->type == F_UNLCK)
        return held->owner == lock->owner;
    return held->owner != lock->owner && (held->type == F_WRLCK || lock->type == F_WRLCK);
}

static struct held *find_conflict(struct inode *inode, const struct df_lock *lock)
{
    for (struct held *h = inode->ranges; h; h = h->next)
        if (conflicts(h, lock))
            return h;
    return NULL;
}

static void insert(struct inode *inode, struct held *held)
{
    struct held **at = &inode->ranges;

    while (*at && (*at)->owner != held->owner)
        at = &(*at)->next;
    while (*at && (*at)->owner == held->owner && (*at)->start < held->start)
        at = &(*at)->next;
    held->next = *at;
    *at = held;
    atomic_fetch_add_explicit(&inode->mount->lock_count, 1, memory_order_relaxed);
}

/* Takes the lock's range out of what its owner holds, but for `made`. `spare` becomes the tail when
 * one held lock is cut in two; returns whether it was used. */
static bool cut(struct inode *inode, const struct df_lock *lock, const struct held *made,
                struct held *spare)
{
    struct held **at = &inode->ranges;
    bool used = false;

    while (*at) {
        struct held *h = *at;

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
            free_held(inode, h);
        }
    }
    if (used)
        insert(inode, spare);
    return used;
}

/* Joins the owner's locks of one type that touch. */
static void merge(struct inode *inode, uint64_t owner)
{
    for (struct held *h = inode->ranges; h; h = h->next) {
        struct held **at = &h->next;

        while (h->owner == owner && *at) {
            struct held *n = *at;
            bool touches = h->end == INT64_MAX || n->start <= h->end + 1;

            if (n->owner != owner || n->type != h->type || !touches) {
                at = &n->next;
                continue;
            }
            if (n->end > h->end)
                h->end = n->end;
            *at = n->next;
            free_held(inode, n);
        }
    }
}

/* No conflict any more. The two spares are for the lock itself and for the tail of one it cuts. */
static void apply(struct inode *inode, const struct df_lock *lock, struct held *spares[2])
{
    struct held *made = NULL;

    if (lock->type != F_UNLCK) { /* before the cut: the owner keeps its place among the owners */
        made = spares[1];
        spares[1] = NULL;
        *made = (struct held){
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

static int test(struct inode *inode, struct df_lock *lock)
{
    struct held *conflict = inode ? find_conflict(inode, lock) : NULL;

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
static int wait_for(struct shard *shard, struct df_thread *thread, const struct df_lock *lock,
                    const struct held *conflict)
{
    struct sleeper sleeper = {.owner = lock->owner, .holder = conflict->owner};
    int ret;

    if (lock->pid == -1)
        return sleep_in(shard, thread);
    if (!may_sleep(&sleeper))
        return -EDEADLK;
    ret = sleep_in(shard, thread);
    wake_sleeper(&sleeper);
    return ret;
}

/* Under the shard's lock. */
static int set(struct shard *shard, struct df_thread *thread, struct df_file *file,
               const struct df_lock *lock, struct held *spares[2])
{
    struct inode *inode;
    struct held *conflict;
    int ret;

    for (;;) {
        inode = make_inode(shard, file);
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
    drop_if_empty(shard, inode);
    wake(shard);
    return 0;
}

int df_lock_range(struct df_call *call, struct df_file *file, struct df_lock *lock)
{
    struct held *spares[2] = {NULL, NULL};
    struct shard *shard;
    int ret;

    if (df_placed(file))
        return df_placed_range(call, file, lock);
    ret = df_call_know_ino(call, file);
    if (ret < 0)
        return ret;
    shard = shard_of(file);
    if (!lock->test) {
        spares[0] = malloc(sizeof(*spares[0]));
        spares[1] = malloc(sizeof(*spares[1]));
    }
    pthread_mutex_lock(&shard->lock);
    if (lock->test)
        ret = test(find_inode(shard, file), lock);
    else
        ret = spares[0] && spares[1] ? set(shard, call->thread, file, lock, spares) : -ENOLCK;
    pthread_mutex_unlock(&shard->lock);
    free(spares[0]);
    free(spares[1]);
    return ret;
}

/* ---- flock --------------------------------------------------------------------------------- */

/* The owner itself holds none now. */
static bool flock_conflicts(const struct inode *inode, int type)
{
    for (const struct held *h = inode->flocks; h; h = h->next)
        if (h->type == F_WRLCK || type == F_WRLCK)
            return true;
    return false;
}

/* Returns the owner's lock, out of the list; NULL: it has none. */
static struct held *take_flock(struct inode *inode, uint64_t owner)
{
    for (struct held **at = &inode->flocks; *at; at = &(*at)->next) {
        struct held *h = *at;

        if (h->owner == owner) {
            *at = h->next;
            return h;
        }
    }
    return NULL;
}

/* A change of type gives the old lock up first: flock(2), "not guaranteed to be atomic". */
static int set_flock(struct shard *shard, struct df_thread *thread, struct df_file *file, int type,
                     bool wait, struct held **spare)
{
    uint64_t owner = df_lock_file_owner(file);
    struct inode *inode = make_inode(shard, file);
    struct held *mine = inode ? take_flock(inode, owner) : NULL;
    int ret = 0;

    if (mine) {
        free_held(inode, mine);
        wake(shard);
    }
    while (inode && flock_conflicts(inode, type)) {
        ret = wait ? sleep_in(shard, thread) : -EWOULDBLOCK;
        if (ret < 0)
            return ret;
        inode = make_inode(shard, file);
    }
    if (!inode)
        return -ENOLCK;
    **spare = (struct held){.next = inode->flocks, .owner = owner, .type = (int16_t)type};
    inode->flocks = *spare;
    *spare = NULL;
    atomic_fetch_add_explicit(&inode->mount->lock_count, 1, memory_order_relaxed);
    return 0;
}

static void unset_flock(struct shard *shard, struct df_file *file)
{
    struct inode *inode = find_inode(shard, file);
    struct held *mine = inode ? take_flock(inode, df_lock_file_owner(file)) : NULL;

    if (!mine)
        return;
    free_held(inode, mine);
    drop_if_empty(shard, inode);
    wake(shard);
}

int df_lock_flock(struct df_call *call, struct df_file *file, int operation)
{
    int type = (operation & ~LOCK_NB) == LOCK_EX ? F_WRLCK : F_RDLCK;
    struct shard *shard;
    struct held *spare = NULL;
    int ret;

    if (df_placed(file))
        return df_placed_flock(call, file, operation);
    ret = df_call_know_ino(call, file);
    if (ret < 0)
        return ret;
    shard = shard_of(file);
    if ((operation & ~LOCK_NB) != LOCK_UN && !(spare = malloc(sizeof(*spare))))
        return -ENOLCK;
    pthread_mutex_lock(&shard->lock);
    if (spare)
        ret = set_flock(shard, call->thread, file, type, !(operation & LOCK_NB), &spare);
    else
        unset_flock(shard, file);
    pthread_mutex_unlock(&shard->lock);
    free(spare);
    return ret;
}

/* ---- closing ------------------------------------------------------------------------------- */

/* Everything of the owner on this inode. */
static void drop_owner(struct df_file *file, uint64_t owner)
{
    struct df_lock all = {.owner = owner, .type = F_UNLCK, .end = INT64_MAX};
    struct shard *shard = shard_of(file);
    struct inode *inode;

    pthread_mutex_lock(&shard->lock);
    inode = find_inode(shard, file);
    if (inode) {
        cut(inode, &all, NULL, NULL); /* covers every lock, so none is cut in two */
        drop_if_empty(shard, inode);
        wake(shard);
    }
    pthread_mutex_unlock(&shard->lock);
}

void df_lock_close(struct df_call *call, struct df_file *file, uint64_t owner)
{
    if (atomic_load_explicit(&mount_of(file)->lock_count, memory_order_relaxed) == 0 ||
        df_call_know_ino(call, file) < 0)
        return;
    if (df_placed(file))
        df_placed_close(file);
    else
        drop_owner(file, owner);
}

void df_lock_release(struct df_file *file)
{
    struct shard *shard;

    if (atomic_load_explicit(&mount_of(file)->lock_count, memory_order_relaxed) == 0)
        return;
    if (df_placed(file)) {
        df_placed_release(file);
        return;
    }
    drop_owner(file, df_lock_file_owner(file));
    shard = shard_of(file);
    pthread_mutex_lock(&shard->lock);
    unset_flock(shard, file);
    pthread_mutex_unlock(&shard->lock);
}

/* ---- fork ---------------------------------------------------------------------------------- */

void df_lock_lock_all(void)
{
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&shards[i].lock);
    pthread_mutex_lock(&sleepers_lock);
    df_placed_lock();
}

void df_lock_unlock_all(void)
{
    df_placed_unlock();
    pthread_mutex_unlock(&sleepers_lock);
    for (int i = SHARDS - 1; i >= 0; i--)
        pthread_mutex_unlock(&shards[i].lock);
}

void df_lock_after_fork(uint64_t parent_owner)
{
    struct df_lock all = {.owner = parent_owner, .type = F_UNLCK, .end = INT64_MAX};

    sleepers = NULL;
    for (int i = 0; i < SHARDS; i++) {
        shards[i].sleeping = 0;
        for (struct inode *inode = shards[i].inodes, *next; inode; inode = next) {
            next = inode->next;
            cut(inode, &all, NULL, NULL);
            drop_if_empty(&shards[i], inode);
        }
    }
}
