/*
 * gate.h - who is inside: threads in flight, and what must wait for them.
 *
 * Every thread that makes a call owns a record (struct df_thread). Entering, pinning a mount and
 * leaving write to that record alone: plain stores, no atomic read-modify-write, no shared cache
 * line. The rare slow side (unmount, fork, freeing what readers may still see) publishes its wish,
 * makes every CPU that runs this process pass a full barrier (membarrier(2)), and looks at all
 * records. Where membarrier is refused (seccomp), readers pay a fence instead.
 *
 *   passage  odd while the thread is inside. Memory retired while a passage is odd is freed only
 *            when that passage has ended: what a call reads from a lock-free structure stays valid
 *            until the call is over.
 *   pins     the mount of each nested call (a plugin may itself call df_*). A pinned mount is not
 *            destroyed. Pin, barrier, validate: see df_gate_pin().
 *
 * Lock order of the core (outermost first): fork, mount table, lock shards in index order, memory
 * maps, descriptor table, thread registry, retired objects, caller. A file's position_lock comes
 * before all of them; no lock is held while an op runs except position_lock.
 */
#ifndef DF_CORE_GATE_H
#define DF_CORE_GATE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/calls.h"
#include "core/export.h"

struct df_caller;
struct df_file;
struct df_mount;

#define DF_GATE_DEPTH 16 /* calls nested in one thread, a plugin calling df_* inside an op */
#define DF_STASH_MAX 16  /* free descriptors, free files a thread keeps for itself */

/*
 * A thread's record. Type-stable: reused by a later thread, never freed. Fields without a word
 * about other threads are touched by the owner alone.
 */
struct df_thread {
    /* read by the slow side */
    _Atomic uint64_t passage;                       /* odd: inside. Written by the owner */
    _Atomic(struct df_mount *) pins[DF_GATE_DEPTH]; /* written by the owner */
    _Atomic bool used;                              /* false: free for the next thread */
    struct df_thread *next;                         /* registry; fixed once linked */
    uint32_t index;                                 /* dense number of the record, fixed */

    uint32_t depth;                 /* calls nested now */
    bool reap;                      /* a mount may have become free to end: look when outside */
    bool follow_real_links;         /* df_retry_begin() */
    uint8_t left_paths;             /* bit n: left[n] is set, see df_left_path() */
    uint8_t fd_count;               /* entries in fds */
    uint8_t file_count;             /* entries in files */
    const struct df_caller *caller; /* NULL: the process's (caller.h) */
    uint64_t seen;                  /* passage when waiting objects were retired; retire lock */

    uint32_t fds[DF_STASH_MAX];           /* free descriptor indexes (fd.c) */
    struct df_file *files[DF_STASH_MAX];  /* free df_file memory (file.c) */

    /* Single writer, summed by df_gate_each_thread() readers. */
    _Atomic uint64_t passed[DF_NR_COUNT];  /* calls handed to the kernel */
    _Atomic uint64_t refused[DF_NR_COUNT]; /* calls answered with an error because they mix what
                                              is ours and what is not, or are not supported */

    char left[2][PATH_MAX]; /* df_left_path() */
};

/* The calling thread's record, made on its first call. NULL: no memory. */
DF_PRIVATE_EXPORT struct df_thread *df_gate_thread(void);

/* Inside from here on; nests. Sleeps while a fork is in progress, unless nested.
 * Returns the record, or NULL and *error = -ENOMEM or -ELOOP (nested too deep). */
struct df_thread *df_gate_enter(int *error);

/*
 * Pins `mount` for the innermost call, which pins nothing now. Returns false, with nothing pinned,
 * when the mount is not, or no longer, the live mount `id`. A mount that is closing is still pinned
 * for a thread that pins it in an outer call: the one who closes waits for that call.
 */
bool df_gate_pin(struct df_thread *thread, struct df_mount *mount, int id);

/* Ends the innermost call's pin, if any. */
void df_gate_unpin(struct df_thread *thread);

/* Something of this thread (a pin, a file) has just ceased to keep the mount: tells whoever waits
 * for that. The mount may be gone; the light barrier stands before this. */
void df_gate_kept(struct df_thread *thread, struct df_mount *mount);

/* True if the calling thread pins the mount. */
bool df_gate_pins(const struct df_thread *thread, const struct df_mount *mount);

/* Ends the innermost call. */
void df_gate_leave(struct df_thread *thread);

/*
 * Around a sleep in the core (lock, poll): the thread counts as outside, so that neither fork nor
 * unmount nor freeing waits for it. Whatever it holds by a reference (files) stays; whatever it
 * read lock-free must be read again. No effect in a nested call.
 */
void df_gate_sleep(struct df_thread *thread);
void df_gate_awake(struct df_thread *thread);

/* ---- memory that readers may still see (hosts use it for lock-free caches) ---- */

/* An object to be freed when every thread that is inside now has left. Lives in the object. */
struct df_retired {
    struct df_retired *next;
    void (*free)(struct df_retired *self);
};

/* Any thread, inside or outside. Cannot fail. free() runs later, outside all locks, on any thread
 * that retires or drains. */
DF_PRIVATE_EXPORT void df_gate_retire_node(struct df_retired *node,
                                           void (*free_fn)(struct df_retired *self));

/* The same for an object without a df_retired in it. Returns 0, or -ENOMEM: nothing happened. */
DF_PRIVATE_EXPORT int df_gate_retire(void (*free_fn)(void *), void *object);

/* Waits until everything retired so far is freed. Only outside (in ops->destroy, say). */
DF_PRIVATE_EXPORT void df_gate_drain(void);

/* ---- slow side, for the core ---- */

/* The fast side's half of the barrier: orders a store to the own record (or file) before a load. */
void df_gate_light_barrier(void);

/* The slow side's half: a full barrier on every CPU that runs this process. */
void df_gate_barrier(void);

/* True if any thread pins the mount. */
bool df_gate_is_pinned(const struct df_mount *mount);

/* fork.c: no new call gets in; waits (at most `patience` ns) until the calls of all other threads
 * are over. Calls wait until df_gate_open(). */
void df_gate_close(int64_t patience);
void df_gate_open(void);
/* In the child: the other threads do not exist. */
void df_gate_forget_others(void);
void df_gate_lock(void);   /* the registry's and the retired objects' locks, for fork.c */
void df_gate_unlock(void);

/* Calls visit(record) for each record ever made. */
DF_PRIVATE_EXPORT void df_gate_each_thread(void (*visit)(struct df_thread *, void *), void *arg);

/* Adds to a counter that one thread writes and others read. */
static inline void df_gate_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Counts one call of this thread that a door passed on to the kernel. */
DF_PRIVATE_EXPORT void df_gate_count_passed(enum df_call_number number);

/* Counts one call that the core refuses because it cannot be served; returns error. */
int df_gate_refuse(enum df_call_number number, int error);

#endif
