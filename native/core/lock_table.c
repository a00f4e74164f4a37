/*
 * lock_table.c - the inodes of which the core itself keeps locks, and waiting for these.
 *
 * Inodes with locks hang in one of SHARDS lists. A sleeper waits on its shard's futex word, which
 * every release in the shard advances: rarely wakes more than it should, and a signal ends the wait
 * as it does in the kernel (a condition variable would hide it).
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/gate.h"
#include "core/lock_private.h"
#include "core/mount.h"

#define SHARDS 16

static struct df_lock_shard shards[SHARDS] = {
    [0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static struct df_mount *mount_of(const struct df_file *file)
{
    return atomic_load_explicit(&file->mount, memory_order_relaxed);
}

/* ---- inodes -------------------------------------------------------------------------------- */

struct df_lock_shard *df_lock_table_shard(const struct df_file *file)
{
    uint64_t key = (uint64_t)(uintptr_t)mount_of(file) ^ (uint64_t)file->ino;

    return &shards[key * UINT64_C(0x9E3779B97F4A7C15) >> 60];
}

struct df_locked *df_lock_table_find(struct df_lock_shard *shard, const struct df_file *file)
{
    for (struct df_locked *i = shard->inodes; i; i = i->next)
        if (i->ino == file->ino && i->mount == mount_of(file))
            return i;
    return NULL;
}

struct df_locked *df_lock_table_make(struct df_lock_shard *shard, const struct df_file *file)
{
    struct df_locked *inode = df_lock_table_find(shard, file);

    if (inode || !(inode = calloc(1, sizeof(*inode))))
        return inode;
    inode->mount = mount_of(file);
    inode->ino = file->ino;
    inode->next = shard->inodes;
    shard->inodes = inode;
    return inode;
}

void df_lock_table_drop(struct df_lock_shard *shard, struct df_locked *inode)
{
    struct df_locked **at = &shard->inodes;

    if (inode->ranges || inode->flocks)
        return;
    while (*at != inode)
        at = &(*at)->next;
    *at = inode->next;
    free(inode);
}

void df_lock_table_count(struct df_locked *inode)
{
    atomic_fetch_add_explicit(&inode->mount->lock_count, 1, memory_order_relaxed);
}

void df_lock_table_free(struct df_locked *inode, struct df_held *held)
{
    atomic_fetch_sub_explicit(&inode->mount->lock_count, 1, memory_order_relaxed);
    free(held);
}

/* ---- waiting ------------------------------------------------------------------------------- */

void df_lock_table_wake(struct df_lock_shard *shard)
{
    if (shard->sleeping == 0)
        return;
    atomic_fetch_add(&shard->releases, 1);
    syscall(SYS_futex, &shard->releases, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

int df_lock_table_sleep(struct df_lock_shard *shard, struct df_thread *thread)
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

/* ---- fork ---------------------------------------------------------------------------------- */

void df_lock_table_lock_all(void)
{
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&shards[i].lock);
}

void df_lock_table_unlock_all(void)
{
    for (int i = SHARDS - 1; i >= 0; i--)
        pthread_mutex_unlock(&shards[i].lock);
}

void df_lock_table_after_fork(void (*visit)(struct df_locked *inode, uint64_t owner),
                              uint64_t owner)
{
    for (int i = 0; i < SHARDS; i++) {
        shards[i].sleeping = 0;
        for (struct df_locked *inode = shards[i].inodes, *next; inode; inode = next) {
            next = inode->next;
            visit(inode, owner);
            df_lock_table_drop(&shards[i], inode);
        }
    }
}
