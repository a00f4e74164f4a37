/*
 * file.h - an open file description: what open(2) makes and dup(2) shares.
 *
 * Memory of a df_file is type-stable: it is reused for other files but never returned to the
 * system, so a reader that lost a race may touch `refs` of a dead one (fd.c relies on it).
 */
#ifndef DF_CORE_FILE_H
#define DF_CORE_FILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/ops.h"

struct df_thread;

enum { /* df_file.kind: set by the host in open */
       DF_KIND_REGULAR,
       DF_KIND_DIRECTORY,
       DF_KIND_OTHER, /* FIFO, device, socket, a symlink opened with O_PATH|O_NOFOLLOW */
};

enum { /* df_file.traits: set by the host in open */
       DF_FILE_STREAM = 1 << 0,      /* no position at all: lseek, pread, pwrite give ESPIPE */
       DF_FILE_NONSEEKABLE = 1 << 1, /* has a position that cannot be moved: lseek, pread: ESPIPE */
       DF_FILE_NOFLUSH = 1 << 2,     /* flush need not be called */
};

#define DF_FILE_HOST_WORDS 8

struct df_file {
    _Atomic uint32_t refs; /* descriptors and calls in flight that hold it; 0: free memory */
    _Atomic int flags;     /* open(2) status flags; F_SETFL changes O_APPEND, O_NONBLOCK ... */
    uint8_t kind;          /* DF_KIND_*, fixed after open */
    uint8_t traits;        /* DF_FILE_*, fixed after open */
    struct df_fs *fs;      /* top of its mount's stack of wrappers; fixed after open */
    _Atomic(struct df_mount *) mount; /* NULL: free memory; until release has returned the file
                                         counts as open on its mount. Hosts: call->mount */
    ino_t ino; /* as stat reports; the key of core-kept locks together with the mount */

    pthread_mutex_t position_lock; /* protects position; held for read, write, lseek, getdents */
    off_t position;                /* file offset, bytes; opaque cookie in a directory */

    uint64_t host[DF_FILE_HOST_WORDS]; /* the host's own: no allocation is needed for an open */
};

/* ---- for the core: memory and references (file.c) ---- */

/*
 * Memory for a file to be opened on the mount: no reference yet, host words zero. The opener ends
 * it with df_file_opened() or df_file_discard(). NULL: no memory.
 */
struct df_file *df_file_new(struct df_thread *thread, struct df_mount *mount, struct df_fs *fs,
                            int flags);

/* ops->open has succeeded: one reference, the caller's. */
void df_file_opened(struct df_file *file);

/* ops->open has failed: no release. */
void df_file_discard(struct df_thread *thread, struct df_file *file);

/* One more reference for somebody who has one. */
static inline void df_file_hold(struct df_file *file)
{
    atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
}

/* One more reference unless the file is dead; of any df_file that ever was. */
static inline bool df_file_hold_if_alive(struct df_file *file)
{
    uint32_t refs = atomic_load_explicit(&file->refs, memory_order_relaxed);

    while (refs != 0)
        if (atomic_compare_exchange_weak_explicit(&file->refs, &refs, refs + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* The last reference is gone: locks, release, memory. Of df_file_put(). */
void df_file_end(struct df_thread *thread, struct df_file *file);

/* Inside the gate only. */
static inline void df_file_put(struct df_thread *thread, struct df_file *file)
{
    if (atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) == 1)
        df_file_end(thread, file);
}

/* Number of files open on the mount (slow: looks at all). */
unsigned df_file_count(const struct df_mount *mount);

/* The free memory kept by a thread that ends goes back to all. */
void df_file_unstash(struct df_thread *thread);

void df_file_lock(void); /* for fork.c */
void df_file_unlock(void);
void df_file_after_fork(void); /* in the child: position locks held by threads that are gone */

#endif
