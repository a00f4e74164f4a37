/*
 * file.h - an open file description: what open(2) makes and dup(2) shares.
 *
 * Memory of a df_file is type-stable: it is reused for other files but never returned to the
 * system, so a reader that lost a race may look at a dead one (fd.c relies on it).
 *
 * What keeps a file: references, counted (descriptors, mappings, extents of a batch), and uses,
 * not counted: a call by descriptor announces the file in its thread's record (df_fd_use()) and
 * writes nothing to the file. Who gives back the last reference has to look for uses; that costs a
 * membarrier(2), so it is done only for files that somebody else than their opener has used:
 *
 *   bias    generation of this memory and the thread that opened the file; a new value each time
 *   shared  equals bias once another thread has used the file, or is about to
 *   orphan  the last reference has gone while somebody used it: who ends the last use ends the file
 *
 * A mount server holds a reference for each message instead, so any of its threads may close what
 * another has opened without a look at the others: `counted`.
 */
#ifndef DF_CORE_FILE_H
#define DF_CORE_FILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/export.h"
#include "core/ops.h"

struct df_thread;

enum { /* df_file.kind: set by the host in open */
       DF_KIND_REGULAR,
       DF_KIND_DIRECTORY,
       DF_KIND_OTHER, /* FIFO, device, socket, a symlink opened with O_PATH|O_NOFOLLOW */
};

enum {                               /* df_file.traits: set by the host in open */
       DF_FILE_STREAM = 1 << 0,      /* no position at all: lseek, pread, pwrite give ESPIPE */
       DF_FILE_NONSEEKABLE = 1 << 1, /* has a position that cannot be moved: lseek, pread: ESPIPE */
       DF_FILE_NOFLUSH = 1 << 2,     /* flush need not be called */
       DF_FILE_DIRECT = 1 << 3,      /* direct_io: nobody may repeat to others what is read */
       DF_FILE_KEEP = 1 << 4,  /* keep_cache: what was read before this open may be repeated */
       DF_FILE_LISTS = 1 << 5, /* cache_readdir: so may what readdir answers */
       DF_FILE_CHECK = 1 << 6, /* beside DF_FILE_KEEP: if size and modification time are the same */
       DF_FILE_SHARES = 1 << 7, /* beside DF_FILE_DIRECT: its mappings may be shared all the same */
};

/* Whether memory that shows the file may be shared: fuse_file_mmap() of the kernel. */
static inline bool df_file_may_share(uint8_t traits)
{
    return (traits & (DF_FILE_DIRECT | DF_FILE_SHARES)) != DF_FILE_DIRECT;
}

#define DF_FILE_HOST_WORDS 8

struct df_file;

/* Of a file whose description other processes have too: how its position and its status flags are
 * had from where they share it. Set by the host in open. */
struct df_file_far {
    void (*lock)(struct df_file *file);   /* under position_lock; brings file->position */
    void (*unlock)(struct df_file *file); /* takes file->position */
    void (*look)(struct df_file *file);   /* brings file->flags: F_SETFL of another process */
    void (*tell)(struct df_file *file);   /* takes file->flags */
    /* A descriptor, which becomes the caller's, of the placeholder of this very description, on
     * which the kernel keeps the locks that the file system leaves to the core (placed.h); or
     * -errno. NULL: the core keeps them itself. */
    int (*place)(struct df_file *file);
};

struct df_file {
    _Atomic uint32_t refs;   /* 0: free memory, being opened, or an orphan */
    _Atomic int flags;       /* open(2) status flags; F_SETFL changes O_APPEND, O_NONBLOCK ... */
    _Atomic uint64_t bias;   /* file.c */
    _Atomic uint64_t shared; /* file.c */
    _Atomic bool orphan;     /* file.c */
    bool counted;            /* it is never used without a reference; fixed after open */
    uint8_t kind;            /* DF_KIND_*, fixed after open */
    uint8_t traits;          /* DF_FILE_*, fixed after open */
    struct df_fs *fs;        /* top of its mount's stack of wrappers; fixed after open */
    _Atomic(struct df_mount *) mount; /* NULL: free memory; until release has returned the file
                                         counts as open on its mount. Hosts: call->mount */
    _Atomic ino_t ino; /* as stat reports; the key of core-kept locks together with the mount. 0:
                          the host has not said it, df_call_know_ino() asks */
    const struct df_file_far *far; /* NULL: nobody else has it; fixed after open */
    uint64_t body; /* of this object and of no other of the mount, ever: what is known of its bytes
                      is known by it; 0: nothing may be. Fixed after open */
    void *kept;    /* of who keeps its writes (native/server), or NULL; fixed after open */

    pthread_mutex_t position_lock; /* protects position; held for read, write, lseek, getdents */
    off_t position;                /* file offset, bytes; opaque cookie in a directory */

    uint64_t host[DF_FILE_HOST_WORDS]; /* the host's own: no allocation is needed for an open */
};

/* Of position. With DF_FREESTANDING (native/intercept) processes share it. */
#ifdef DF_FREESTANDING
void df_file_lock_position(struct df_file *file);
void df_file_unlock_position(struct df_file *file);
#else
static inline void df_file_lock_position(struct df_file *file)
{
    pthread_mutex_lock(&file->position_lock);
    if (DF_UNLIKELY(file->far != NULL))
        file->far->lock(file);
}

static inline void df_file_unlock_position(struct df_file *file)
{
    if (DF_UNLIKELY(file->far != NULL))
        file->far->unlock(file);
    pthread_mutex_unlock(&file->position_lock);
}
#endif

/* ---- for the core: memory and references (file.c) ---- */

/*
 * Memory for a file to be opened on the mount: no reference yet, host words zero. The opener ends
 * it with df_file_opened() or df_file_discard(). NULL: no memory.
 */
struct df_file *df_file_new(struct df_thread *thread, struct df_mount *mount, struct df_fs *fs,
                            int flags);

/* ops->open has succeeded: one reference, the caller's. */
void df_file_opened(struct df_file *file);

/* The same for one that has no descriptor here: whoever uses it holds a reference. */
void df_file_opened_counted(struct df_file *file);

/* ops->open has failed: no release. */
void df_file_discard(struct df_thread *thread, struct df_file *file);

/* One more reference, unless the last one has gone: of any df_file that ever was. */
static inline bool df_file_hold(struct df_file *file)
{
    uint32_t refs = atomic_load_explicit(&file->refs, memory_order_relaxed);

    while (refs != 0)
        if (atomic_compare_exchange_weak(&file->refs, &refs, refs + 1))
            return true;
    return false;
}

/* The last reference is gone. Of df_file_put(). */
void df_file_end(struct df_thread *thread, struct df_file *file);

/* Inside the gate only. */
static inline void df_file_put(struct df_thread *thread, struct df_file *file)
{
    if (atomic_fetch_sub(&file->refs, 1) == 1)
        df_file_end(thread, file);
}

/* Ends an orphan that nobody uses any more. */
DF_COLD void df_file_end_orphan(struct df_thread *thread, struct df_file *file);

#define DF_FILE_OPENER_BITS 20 /* of bias: index of the opener's record, or all ones: nobody's */

/* True if the thread may use the file of this bias without telling its opener. */
static inline bool df_file_is_known(struct df_file *file, uint64_t bias, uint32_t thread_index)
{
    return (bias & ((1U << DF_FILE_OPENER_BITS) - 1)) == thread_index ||
           atomic_load(&file->shared) == bias;
}

/* Tells that another thread than the opener is about to use it. */
DF_COLD void df_file_share(struct df_file *file, uint64_t bias);

/* Number of files open on the mount (slow: looks at all). */
unsigned df_file_count(const struct df_mount *mount);

/* The free memory kept by a thread that ends goes back to all. */
void df_file_unstash(struct df_thread *thread);

void df_file_lock(void); /* for fork.c */
void df_file_unlock(void);
void df_file_after_fork(void); /* in the child: position locks held by threads that are gone */

#endif
