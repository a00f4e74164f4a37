/*
 * lock_private.h - between lock.c, which asks who keeps a file's locks, and the files of the core's
 * own: lock_table.c (inodes that have locks, and waiting), lock_range.c and lock_flock.c.
 */
#ifndef DF_CORE_LOCK_PRIVATE_H
#define DF_CORE_LOCK_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/call.h"
#include "core/lock.h"

/* Who keeps a file's locks: the core itself, or the kernel on its placeholder (placed.h). The
 * functions are lock.h's; df_file.ino is known, but to `release`. */
struct df_lock_keeper {
    int (*range)(struct df_call *call, struct df_file *file, struct df_lock *lock);
    int (*flock)(struct df_call *call, struct df_file *file, int operation);
    void (*close)(struct df_file *file, uint64_t owner);
    void (*release)(struct df_file *file);
};

/* A byte-range lock, or (whole) a flock(2) lock of its file. */
struct df_held {
    struct df_held *next;
    uint64_t owner;
    off_t start;
    off_t end;
    int16_t type;
    pid_t pid;
};

/* An inode that has locks. */
struct df_locked {
    struct df_locked *next;
    struct df_mount *mount;
    ino_t ino;
    struct df_held
        *ranges; /* owner by owner, in the order of their first locks; each sorted by
                    start, none of which overlap: F_GETLK shows the first that conflicts */
    struct df_held *flocks;
};

struct df_lock_shard {
    pthread_mutex_t lock; /* protects inodes and all below */
    struct df_locked *inodes;
    uint32_t sleeping;         /* threads in df_lock_table_sleep() */
    _Atomic uint32_t releases; /* futex */
};

/* ---- lock_table.c: all of it under the shard's lock, but for df_lock_table_shard() ---- */

/* That of the file's inode. */
struct df_lock_shard *df_lock_table_shard(const struct df_file *file);

/* NULL: it has no locks. */
struct df_locked *df_lock_table_find(struct df_lock_shard *shard, const struct df_file *file);

/* The same, entered if it has none. NULL: no memory. */
struct df_locked *df_lock_table_make(struct df_lock_shard *shard, const struct df_file *file);

/* It may have lost its last lock, and is freed then. */
void df_lock_table_drop(struct df_lock_shard *shard, struct df_locked *inode);

/* The mount's count of locks, by which a close knows that there is nothing to look for; the second
 * frees the lock, too. */
void df_lock_table_count(struct df_locked *inode);
void df_lock_table_free(struct df_locked *inode, struct df_held *held);

/* Sleeps until something is released; the shard's lock is given up meanwhile. 0 or -EINTR. */
int df_lock_table_sleep(struct df_lock_shard *shard, struct df_thread *thread);

/* Something was released: who waits in this shard looks again. */
void df_lock_table_wake(struct df_lock_shard *shard);

/* fork.c: all shards; and, in the child, what each inode has is shown to `visit`, nobody sleeps. */
void df_lock_table_lock_all(void);
void df_lock_table_unlock_all(void);
void df_lock_table_after_fork(void (*visit)(struct df_locked *inode, uint64_t owner),
                              uint64_t owner);

/* ---- lock_range.c ---- */

/* The keeper's `range`, and all of an owner's on the file's inode, at a close. */
int df_lock_range_apply(struct df_call *call, struct df_file *file, struct df_lock *lock);
void df_lock_range_close(struct df_file *file, uint64_t owner);

/* Under its shard's lock: all of the owner goes from this inode. */
void df_lock_range_forget(struct df_locked *inode, uint64_t owner);

/* fork.c: who sleeps for whom. */
void df_lock_range_lock_sleepers(void);
void df_lock_range_unlock_sleepers(void);
void df_lock_range_after_fork(void);

/* ---- lock_flock.c ---- */

/* The keeper's `flock`, and what this open file description has, at its end. */
int df_lock_flock_apply(struct df_call *call, struct df_file *file, int operation);
void df_lock_flock_close(struct df_file *file);

#endif
