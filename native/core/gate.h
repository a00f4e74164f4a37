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
 *            until the call is over, or, of nodes, until it rests (df_gate_rest()).
 *   pin      the mount of a call by path. A pinned mount is not destroyed. Pin, barrier, validate:
 *            see df_gate_pin().
 *   use      the file of a call by descriptor. A file in use is not released; see df_fd_use().
 *
 * Calls nest (a plugin may itself call df_*): pin and use stand once for each level.
 *
 * Lock order of the core (outermost first): fork, mount table, lock shards in index order,
 * sleepers, placeholders, memory maps, free descriptors, orphans, free files, caller, retired
 * objects. A file's position_lock comes before all of them and is the only lock held while an op
 * runs.
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
#define DF_STASH_MAX  16 /* free descriptors, free files a thread keeps for itself */

/* What is retired: of nodes (df_gate_retire_nodes()), or not. */
enum df_retired_kind { DF_RETIRED_ANY, DF_RETIRED_NODES, DF_RETIRED_KINDS };

/*
 * A thread's record. Type-stable: reused by a later thread, never freed. Fields without a word
 * about other threads are touched by the owner alone.
 */
struct df_thread {
    _Atomic uint64_t passage;       /* odd: inside. Read by the slow side */
    const struct df_caller *caller; /* NULL: the process's (caller.h) */
    uint32_t depth;                 /* calls nested now */
    uint32_t index;                 /* dense number of the record, fixed */
    struct {
        _Atomic(struct df_mount *) pin;
        _Atomic(struct df_file *) use;
    } levels[DF_GATE_DEPTH]; /* [0 .. depth): read by the slow side */

    _Atomic bool used;               /* false: free for the next thread */
    struct df_thread *next;          /* registry; fixed once linked */
    uint64_t seen[DF_RETIRED_KINDS]; /* passage when what waits was retired, by kind; retire lock */
    _Atomic bool rests;              /* df_gate_rest(). Read by the slow side */
    bool disturbed; /* it does not, as long as calls are nested in the one that did */

    bool reap;                 /* a mount may have become free to end: look when outside */
    uint8_t follow_real_links; /* df_retry_begin(): so often, and they are while it is not 0 */
    uint8_t left_paths;        /* bit n: left[n] is set, see df_left_path() */
    uint8_t fd_count;          /* entries in fds */
    uint8_t file_count;        /* entries in files */

    uint32_t fds[DF_STASH_MAX];          /* free descriptor indexes (fd.c) */
    struct df_file *files[DF_STASH_MAX]; /* free df_file memory (file.c) */

    /* Single writer, summed by df_gate_each_thread() readers. */
    _Atomic uint64_t passed[DF_NR_COUNT];  /* calls handed to the kernel */
    _Atomic uint64_t refused[DF_NR_COUNT]; /* calls answered with an error because they mix what
                                              is ours and what is not, or are not supported */

    char left[2][PATH_MAX]; /* df_left_path() */
};

/* The calling thread's record, made on its first call. NULL: no memory. */
DF_PRIVATE_EXPORT struct df_thread *df_gate_thread(void);

/* The state that every call reads and almost none writes. */
struct df_gate {
    bool asymmetric;         /* membarrier works; fixed before the first record is made */
    _Atomic uint32_t closed; /* futex: 1 while a fork is in progress */
};
extern struct df_gate df_gate;

#ifndef DF_FREESTANDING
/* The calling thread's record, or NULL. initial-exec: one load instead of a call; the library needs
 * eight bytes of the static TLS that glibc keeps for objects loaded at run time. */
extern _Thread_local struct df_thread *df_gate_self __attribute__((tls_model("initial-exec")));
#endif

/* The fast side's half of the barrier: orders a store to the own record before a load. */
static inline void df_gate_light_barrier(void)
{
#ifndef DF_TSAN /* it understands no fences; there, announcements are exchanges */
    if (DF_LIKELY(df_gate.asymmetric))
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Stores for the slow side to see, before anything is read. */
#ifdef DF_TSAN
#define DF_GATE_ANNOUNCE(at, value) ((void)atomic_exchange(at, value))
#else
#define DF_GATE_ANNOUNCE(at, value)                                                                \
    do {                                                                                           \
        atomic_store_explicit(at, value, memory_order_release);                                    \
        df_gate_light_barrier();                                                                   \
    } while (0)
#endif

/* Slow halves of what follows. */
DF_COLD struct df_thread *df_gate_enter_slowly(int *error);
DF_COLD void df_gate_leave_slowly(struct df_thread *thread);

/* Inside from here on; nests. Sleeps while a fork is in progress, unless nested.
 * Returns the record, or NULL and *error = -ENOMEM or -ELOOP (nested too deep). */
#ifdef DF_FREESTANDING /* native/intercept has no thread-local storage, and its own gate */
struct df_thread *df_gate_enter(int *error);
#else
static inline struct df_thread *df_gate_enter(int *error)
{
    struct df_thread *thread = df_gate_self;

    if (DF_LIKELY(thread && thread->depth == 0)) {
        uint64_t passage = atomic_load_explicit(&thread->passage, memory_order_relaxed);

        DF_GATE_ANNOUNCE(&thread->passage, passage + 1);
        if (DF_LIKELY(!atomic_load_explicit(&df_gate.closed, memory_order_acquire))) {
            thread->depth = 1;
            return thread;
        }
        atomic_store_explicit(&thread->passage, passage + 2, memory_order_release);
    }
    return df_gate_enter_slowly(error);
}
#endif

/*
 * Pins `mount` for the innermost call, which pins nothing now. Returns false, with nothing pinned,
 * when the mount is not, or no longer, the live mount `id`. A mount that is closing is still pinned
 * for a thread that pins it in an outer call: the one who closes waits for that call.
 */
bool df_gate_pin(struct df_thread *thread, struct df_mount *mount, int id);

/* Ends the innermost call's pin, if any. */
void df_gate_unpin(struct df_thread *thread);

/* Announces that the innermost call uses the file; the caller validates. */
static inline void df_gate_use(struct df_thread *thread, struct df_file *file)
{
    DF_GATE_ANNOUNCE(&thread->levels[thread->depth - 1].use, file);
}

/* Ends the innermost call's use, if any. */
void df_gate_unuse(struct df_thread *thread);

/* Something of this thread (a pin, a file) has just ceased to keep the mount: tells whoever waits
 * for that. The mount may be gone; the light barrier stands before this. */
void df_gate_kept(struct df_thread *thread, struct df_mount *mount);

/* Ends the innermost call. */
#ifdef DF_FREESTANDING
void df_gate_leave(struct df_thread *thread);
#else
static inline void df_gate_leave(struct df_thread *thread)
{
    unsigned level = thread->depth - 1;

    if (atomic_load_explicit(&thread->levels[level].pin, memory_order_relaxed))
        df_gate_unpin(thread);
    if (atomic_load_explicit(&thread->levels[level].use, memory_order_relaxed))
        df_gate_unuse(thread);
    thread->depth = level;
    if (DF_LIKELY(level == 0)) {
        uint64_t passage = atomic_load_explicit(&thread->passage, memory_order_relaxed);

        atomic_store_explicit(&thread->passage, passage + 1, memory_order_release);
        if (DF_UNLIKELY(thread->reap))
            df_gate_leave_slowly(thread);
    } else if (DF_UNLIKELY(thread->disturbed && level == 1)) {
        thread->disturbed = false;
        DF_GATE_ANNOUNCE(&thread->rests, true);
    }
}
#endif

/*
 * Around a sleep in the core (lock, poll): the thread counts as outside, so that neither fork nor
 * unmount nor freeing waits for it. Whatever it holds by a reference (files) stays; whatever it
 * read lock-free must be read again. No effect in a nested call.
 */
void df_gate_sleep(struct df_thread *thread);
void df_gate_awake(struct df_thread *thread);

/*
 * Around what may wait for an event inside of a file system, on behalf of an open file (a read, a
 * lock): the thread reads no node meanwhile but those that the file holds, so that none of them
 * waits for it to be freed. It is inside all the same. No effect in a nested call; calls that are
 * nested in it may read what they like.
 */
static inline void df_gate_rest(struct df_thread *thread)
{
    if (DF_LIKELY(thread->depth == 1))
        DF_GATE_ANNOUNCE(&thread->rests, true);
}

static inline void df_gate_rise(struct df_thread *thread)
{
    if (DF_LIKELY(thread->depth == 1))
        DF_GATE_ANNOUNCE(&thread->rests, false);
}

/* ---- memory that readers may still see (hosts use it for lock-free caches) ---- */

/* An object to be freed when every thread that is inside now has left. Lives in the object. */
struct df_retired {
    struct df_retired *next;
    void (*free)(struct df_retired *self);
};

/* Any thread, inside or outside. Cannot fail. free() runs later, outside all locks, on any thread
 * that retires or reclaims. */
DF_PRIVATE_EXPORT void df_gate_retire(struct df_retired *node,
                                      void (*free_fn)(struct df_retired *self));

/* The same of nodes, and of what is read together with nodes: threads that rest are not waited for.
 * For a batch that hangs on this one, counted as so many objects. */
void df_gate_retire_nodes(struct df_retired *node, void (*free_fn)(struct df_retired *self),
                          unsigned count);

/* Whether the retired object is the owner's. */
typedef bool df_gate_owns(const struct df_retired *object, const void *owner);

/* Frees now what has been retired and is the owner's, of which nobody can be reading any more: its
 * mount is neither pinned nor used (in ops->destroy, say). Waits for no call that is inside, which
 * may hang in another file system. */
DF_PRIVATE_EXPORT void df_gate_reclaim(df_gate_owns *owns, const void *owner);

/* ---- slow side, for the core ---- */

/* The other half of df_gate_light_barrier(): a full barrier on every CPU that runs this process. */
void df_gate_barrier(void);

/* True if any thread pins the mount, or uses the file. */
bool df_gate_is_pinned(const struct df_mount *mount);
bool df_gate_is_used(const struct df_file *file);

/* fork.c: no new call gets in; waits (at most `patience` ns) until the calls of all other threads
 * are over. Calls wait until df_gate_open(). */
DF_PRIVATE_EXPORT void df_gate_close(int64_t patience);
void df_gate_open(void);
/* In the child: the other threads do not exist. */
void df_gate_forget_others(void);
void df_gate_lock(void); /* the registry's and the retired objects' locks, for fork.c */
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
