/*
 * open_paths.h - the current path of every open file of a mount of whole-path plugins.
 *
 * The kernel gives a file system nodes; libfuse turns them into paths by a tree of names. We have
 * no tree: open files, and only those, are entered here under their path, and a rename moves them
 * and whatever is open below them. One df_open_path stands for one path, shared by every open file
 * that was opened (or has been moved) there; hard links are different paths, as in libfuse.
 *
 * Locks, and who waits for whom:
 *
 *   lock         In each node. Readers: operations on open files that tell the plugin a path,
 *                opening, and names relative to an open directory. Writers: unlink, rmdir and
 *                rename of that path. So a path never changes, and an open file never loses its
 *                name, under a running operation. A reader may hold several of these locks; it then
 *                passes by waiting writers. A writer holds none while it waits: it takes all it
 *                needs or none, and begins again. Hence no cycle, in whatever order readers come.
 *   rename_lock  One rename at a time (as the kernel's s_vfs_rename_mutex). Taken before the names
 *                are resolved, so that the paths of directories stand still meanwhile.
 *   gate         Paths under rename: whoever opens, removes or misses something there waits, unless
 *                it holds a node there itself, which the rename waits for. Innermost but shard.
 *   shard locks  Hash chains and counts. Innermost, two in index order.
 *   data_lock    In each node. Around writes, so that an append finds the end where it looked for
 *                it. Taken inside `lock`.
 *
 * A plugin's operation runs under `lock`, rename_lock or data_lock, never under gate or a shard.
 * One that calls into its own mount waits for nothing that waits for itself: decision 143.
 */
#ifndef DF_PATHS_OPEN_PATHS_H
#define DF_PATHS_OPEN_PATHS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/path_hash.h"
#include "host/on_stack.h"
#include "paths/lock.h"
#include "paths/numbers.h"

#define DF_OPEN_PATHS_SHARDS 64
#define DF_OPEN_PATHS_CHAINS 4 /* of a shard, at first */
#define DF_OPEN_PATH_HIDDEN  (1u << 31)
#define DF_OPEN_PATH_INLINE  120 /* bytes: longer paths are allocated */
#define DF_OPEN_PATHS_KEPT   512 /* nodes of closed files */
#define DF_OPEN_PATHS_FREE   8   /* free nodes that a shard has for itself */

struct df_open_path {
    _Alignas(64) struct df_path_lock lock;
    pthread_mutex_t data_lock;
    _Atomic(const void *) writer; /* df_on_stack_here() of who has lock (write), else NULL */

    _Atomic uint32_t refs;  /* to 0 only under the shard's lock */
    _Atomic uint32_t opens; /* open files of the plugin, and DF_OPEN_PATH_HIDDEN: it is called
                               .fuse_hidden..., or about to be; grows under a read lock only */
    _Atomic bool removed;   /* set under lock: the path is no longer this file's */
    bool in_rename;         /* under lock (write): listed in the struct df_rename that has it */
    bool displaced;         /* under displaced_lock: is in the table's list */
    uint32_t kept;          /* under kept_lock: its entry there + 1; 0: none */
    bool kept_again;        /* under kept_lock: closed again since it was looked at */

    uint64_t serial; /* no other node of the process has or had it; fixed */
    ino_t ino;       /* of numbers.h; 0: the plugin's. Fixed once it is open */
    struct df_open_path *next_displaced;

    /* Changed under lock (write) and shard; the key also to be read without: df_open_path_key(). */
    char *path;
    uint32_t len;
    uint32_t room;            /* bytes of memory behind `path` */
    _Atomic uint32_t version; /* odd: the key is changing */
    _Atomic uint64_t key_low, key_high;
    _Atomic uint32_t shard;

    struct df_open_path *next; /* chain, or list of free nodes; under the shard's lock */
    char inline_path[DF_OPEN_PATH_INLINE];
};

struct df_open_paths_shard {
    _Alignas(64) pthread_mutex_t lock;
    struct df_open_path **chains;
    uint32_t chain_count;   /* power of two */
    _Atomic uint32_t count; /* nodes in them; also looked at without the lock */
    struct df_open_path *first_chains[DF_OPEN_PATHS_CHAINS]; /* before they grow */
    struct df_open_path *free;
    uint32_t free_count;
};

struct df_open_paths {
    struct df_open_paths_shard shards[DF_OPEN_PATHS_SHARDS];
    const struct df_path_seed *seed; /* of the keys: the entry cache's */
    bool gives_numbers;              /* inode numbers; fixed before the first open */
    struct df_numbers numbers;       /* of paths; written under rename_lock */

    pthread_mutex_t rename_lock;

    _Atomic bool renaming;    /* `below` is in force */
    _Atomic uint32_t renames; /* that have ended */
    pthread_mutex_t gate;     /* protects `below` */
    pthread_cond_t gate_open; /* renaming became false */
    struct {
        const char *path;
        uint32_t len;
    } below[2];

    _Atomic uint32_t displaced_count;
    pthread_mutex_t displaced_lock; /* protects the list of nodes whose ino is not their path's */
    struct df_open_path *displaced;

    _Atomic bool keeps;        /* nodes of closed files are worth keeping */
    pthread_mutex_t kept_lock; /* protects those that are; outermost of shards */
    struct df_open_path *kept[DF_OPEN_PATHS_KEPT]; /* each with a reference, or NULL */
    uint32_t kept_hand;

    pthread_mutex_t spare_lock;         /* protects the list; innermost */
    struct df_open_path *_Atomic spare; /* free nodes of which a shard had too many */
};

void df_open_paths_init(struct df_open_paths *table, const struct df_path_seed *seed);

/* No node may be in use. */
void df_open_paths_destroy(struct df_open_paths *table);

/* Nodes in use: exact when nobody opens or closes. */
uint32_t df_open_paths_count(struct df_open_paths *table);

/* ---- opening ---- */

/* Who waits for a path. */
enum df_path_waiter {
    DF_PATH_ALONE,  /* holds no other node */
    DF_PATH_HOLDS,  /* holds one, perhaps the name's base */
    DF_PATH_INSIDE, /* is inside of another operation of its thread, which holds something */
};

/*
 * The node of a path with one more reference and its lock read-held, made when there is none; waits
 * while the path is being renamed or removed. `base`: of DF_PATH_HOLDS, or NULL. Returns 0 or
 * -ENOMEM; or -EDEADLK, DF_PATH_INSIDE: a rename might wait for this thread, or it removes the path
 * itself.
 */
int df_open_paths_enter(struct df_open_paths *table, const char *path, uint32_t len,
                        struct df_path_hash key, enum df_path_waiter waiter,
                        const struct df_open_path *base, struct df_open_path **out);

/* One open file more, under a read lock; one less. True: it was the last of a hidden file: hold it
 * (it may still be on its way), and remove it if it still is one. */
static inline void df_open_path_opened(struct df_open_path *node)
{
    atomic_fetch_add(&node->opens, 1);
}

static inline bool df_open_path_closed(struct df_open_path *node)
{
    return atomic_fetch_sub(&node->opens, 1) == (DF_OPEN_PATH_HIDDEN | 1);
}

static inline bool df_open_path_is_hidden(const struct df_open_path *node)
{
    return atomic_load(&node->opens) & DF_OPEN_PATH_HIDDEN;
}

/* Gives a reference back. */
void df_open_paths_put(struct df_open_paths *table, struct df_open_path *node);

/* ---- closed files (open_paths_kept.c) ---- */

/* Gives a reference back like df_open_paths_put(), but the node may stay, for who opens the file
 * again. */
void df_open_paths_keep(struct df_open_paths *table, struct df_open_path *node);

/* Not because of that any more. The caller has a reference, or knows that the node is gone. */
void df_open_paths_keep_no_more(struct df_open_paths *table, struct df_open_path *node);

/* The same by path: what is there now is another object, or none. */
void df_open_paths_forget(struct df_open_paths *table, const char *path, uint32_t len,
                          struct df_path_hash key);

/* Before the table is destroyed. */
void df_open_paths_forget_all(struct df_open_paths *table);

/* ---- operations on open files ---- */

/* Read-locks; returns the path, NULL when it is gone. `alone`: the caller holds no other node. */
static inline const char *df_open_path_hold(struct df_open_path *node, bool alone)
{
    df_path_lock_read(&node->lock, alone);
    return atomic_load_explicit(&node->removed, memory_order_relaxed) ? NULL : node->path;
}

/* This thread has it write-locked: nobody else changes the path. */
static inline bool df_open_path_is_mine(const struct df_open_path *node)
{
    return atomic_load_explicit(&node->writer, memory_order_relaxed) == df_on_stack_here();
}

static inline void df_open_path_unhold(struct df_open_path *node)
{
    df_path_lock_end_read(&node->lock);
}

/* The entry cache's key of its path at this moment, without a lock. */
static inline struct df_path_hash df_open_path_key(const struct df_open_path *node)
{
    struct df_path_hash key;
    uint32_t version;

    do {
        version = atomic_load_explicit(&node->version, memory_order_acquire);
        key.low = atomic_load_explicit(&node->key_low, memory_order_acquire);
        key.high = atomic_load_explicit(&node->key_high, memory_order_acquire);
    } while (version & 1 || atomic_load_explicit(&node->version, memory_order_relaxed) != version);
    return key;
}

/* The inode number to show for a path when the plugin has none: of the open file there, or
 * `number`, which numbers.h has for the path, so that no other open file shows the same. */
ino_t df_open_paths_ino(struct df_open_paths *table, ino_t number, struct df_path_hash key);

/* Sleeps while a rename concerns the path; true if it had to. `alone` and `base` as in enter. Not
 * with a write lock in hand. */
bool df_open_paths_wait_rename(struct df_open_paths *table, const char *path, uint32_t len,
                               bool alone, const struct df_open_path *base);

/* The serial of the node of a path; 0: there is none. */
uint64_t df_open_paths_serial(struct df_open_paths *table, const char *path, uint32_t len,
                              struct df_path_hash key);

/* ---- unlink, rmdir ---- */

#define DF_PATH_BUSY (-5101) /* no answer of a plugin */

/* The node of a path with one more reference, write-locked. Returns 0 or -ENOMEM; without `wait`,
 * which a caller with another node in hand must not, also DF_PATH_BUSY. */
int df_open_paths_claim(struct df_open_paths *table, const char *path, uint32_t len,
                        struct df_path_hash key, bool wait, struct df_open_path **out);

/* Under the write lock: marks an open file as hidden before it is renamed; false when it is not
 * open. Takes the mark away when that has failed. */
bool df_open_path_begin_hide(struct df_open_path *node);
void df_open_path_cancel_hide(struct df_open_path *node);

/* Under the write lock, before the entry cache forgets the path: the path is gone. */
void df_open_path_mark_removed(struct df_open_path *node);

/* Under the write lock: makes sure that a path of len bytes fits. 0 or -ENOMEM. */
int df_open_path_reserve(struct df_open_paths *table, struct df_open_path *node, uint32_t len);

/* Under the write lock, after a reserve: it is called `path` now. */
void df_open_paths_move(struct df_open_paths *table, struct df_open_path *node, const char *path,
                        uint32_t len);

/* Ends a claim. */
void df_open_paths_release(struct df_open_paths *table, struct df_open_path *node);

/* ---- rename ---- */

struct df_rename {
    struct df_open_paths *table;
    const char *from, *to; /* the caller's, until the end */
    uint32_t from_len, to_len;
    struct df_open_path **nodes; /* [0]: from, [1]: to, then what is open below them */
    uint32_t count, room;
    struct df_open_path *first[4]; /* before they grow */
};

/* Under rename_lock: write-locks both paths and all that is open below them. Returns 0 or
 * -ENOMEM; without `wait` also DF_PATH_BUSY. */
int df_open_paths_rename_begin(struct df_open_paths *table, struct df_rename *rename,
                               const char *from, uint32_t from_len, const char *to, uint32_t to_len,
                               bool wait);

/* The plugin has renamed: `from` is called `to`, what was there is gone; or the two have been
 * exchanged. */
void df_open_paths_renamed(struct df_rename *rename);
void df_open_paths_exchanged(struct df_rename *rename);

void df_open_paths_rename_end(struct df_rename *rename);

#endif
