/*
 * files.h - what a process knows of mounts and open files: its link to the mount server, which of
 * its descriptors are files of mounts, its identity and working directory.
 *
 * Made, copied and ended by the functions dfi_files_* of intercept.h (files*.c). Reached by
 * dfi_process()->files: a child of vfork(2) has its own.
 */
#ifndef DF_CLIENT_FILES_H
#define DF_CLIENT_FILES_H

#include <stdatomic.h>

#include "channel/link.h"
#include "channel/ofd.h"
#include "channel/trip.h"
#include "intercept/intercept.h"

#define DFI_ENTERED_WORDS 64
#define DFI_FD_MAX (1 << 20) /* descriptors from here on are the kernel's: no file of a mount */

/*
 * Shared by all programs of a job: in the segment, df_segment_programs(). Beside it the path that
 * each file was opened by, df_segment_name(). Written by those who can be killed at any instant;
 * nothing in it is trusted for more than speed and names.
 */
struct dfi_shared {
    _Atomic uint32_t made;       /* 1: the shadow directory is: shadow.c */
    _Atomic uint32_t mapped;     /* files that were ever mapped shared: shadow.c */
    _Atomic uint32_t moved;      /* counts renames of shadow directories: cwd.c */
    _Atomic uint32_t moving;     /* of what they may follow: under way, on the mount or here */
    _Atomic uint32_t ways;       /* 1: the directories above mountpoints are made */
    _Atomic uint32_t held;       /* 1: some process has held chunks of mapped files: held.h */
    _Atomic uint32_t namespaces; /* 1: a program may be in another user namespace: ids.h */
    _Atomic uint64_t user_ns;    /* that of the run */
    _Atomic uint64_t device;     /* that the shadow directory lies on: shadow.c */
    _Atomic uint64_t bells;      /* counts tokens of bells: ready.h */
    _Atomic uint32_t wanted; /* counts processes that found no room for a chunk: map_reclaim.c */
    _Atomic uint64_t entered[DFI_ENTERED_WORDS]; /* bit: of the hash of a name: a shadow directory
                                                    may be called so: cwd.c */
};

_Static_assert(sizeof(struct dfi_shared) <= DF_PROGRAMS_SIZE, "layout.h");

struct dfi_cwd {
    struct dfi_lock lock; /* protects the rest */
    bool ours;            /* it is a directory of a mount */
    bool removed;         /* one that was removed: its shadow is, too */
    uint64_t handle;      /* the open directory it is, where no shadow has its name; 0: none */
    uint32_t moved;       /* shared->moved when path was asked for */
    uint32_t len;         /* of path */
    char path[PATH_MAX];  /* of ours: absolute, as programs see it */
};

/* root.h */
struct dfi_root {
    struct dfi_lock lock; /* protects the rest, and root_path */
    uint64_t handle;      /* the open directory it is; 0: that of the kernel */
    bool known;           /* the rest was asked for */
    uint32_t moved;       /* shared->moved when it was */
    uint32_t len;         /* of root_path; 0: it has no name any more */
};

#define DFI_LINGER_MAX 2 /* as many files as cp(1) has open at a time */

/* linger.h. Of a process with one thread. */
struct dfi_lingering {
    struct dfi_lingerer {
        int fd, flags;    /* the descriptor, and O_ACCMODE and O_CLOEXEC of its open(2) */
        uint32_t number;  /* of its shadow file */
    } at[DFI_LINGER_MAX]; /* dfi_process.lingers of them; the last has the lowest free number */
    int used;             /* every number below is that of an open descriptor */
    int stored;           /* while any lingers: a file of the kernel's that is_stored(); -1: none */
    uint64_t locked; /* bit: shadow files with this number, modulo 64, may have our record locks */
};

/* held.h. Under the lock of the mappings. */
struct dfi_hold {
    struct df_holders *all; /* of the run; NULL: not mapped */
    struct df_holder *own;  /* NULL: none yet */
    uint32_t count, size;   /* entries, and places that they take turns in */
    uint32_t next;          /* place to look at next: the oldest is behind it */
    uint32_t limit;         /* chunks that one process may hold; 0: as many as there is room for */
    uint64_t memory;        /* bytes that the cgroup of the run may have: memory.h; 0: no limit */
    const char *cgroup;     /* its directory, cgroup_len bytes in the run's configuration */
    uint32_t cgroup_len;
    uint32_t wanted; /* of `shared`, when it was last looked at */
    bool untold;     /* it may touch chunks that have no entry: they are there for good */
};

/* map_copies.h. Under the lock of the mappings. */
struct dfi_copies {
    size_t count, room;
    struct dfi_range {
        uintptr_t start, end;
        uint64_t offset;       /* of the file, at start */
        struct dfi_copied *of; /* the file; NULL: there was no memory for its name */
    } *list;                   /* in no order */
};

#define DFI_YOUNG 8 /* children whose death by a signal is told to the server */

/* The paths are last: most are never touched, and a fork costs a copy of each page that is. */
#define DFI_SENT 128 /* files on their way to others that are known */

struct dfi_files {
    struct df_link link; /* its client may be 0: nobody, who joins when something is asked for */
    int entry;           /* socket that all processes of the run have: to join by */
    struct dfi_lock joining; /* protects the change of link.client from 0, and young */
    int unmet;               /* why it could not join the last time; 0: it could */
    struct dfi_shared *shared;
    char shadow[120]; /* directory of the job's shadow files; no trailing slash */
    uint32_t shadow_len;
    struct df_caller caller;               /* identity.c */
    const struct dfi_ids *ids, *ids_above; /* ids.h; NULL: those of the run */
    bool ids_awaited;                      /* to be looked for */
    uid_t outer_uid;                       /* of the caller, when they were last known */
    gid_t outer_gid;
    _Atomic uint64_t *map; /* [DFI_FD_MAX], by descriptor: handle of the file, and DFI_FIFO; 0: it
                              is of no mount. NULL before the first file, and then top is 0 */
    _Atomic int top;       /* map is 0 from here on */
    bool tells;            /* a bit of dfi_told() was ever set */
    struct dfi_lingering linger;
    struct dfi_maps *maps;     /* map.h; NULL: no shared mapping yet */
    struct dfi_lock maps_lock; /* protects maps and copies */
    struct dfi_copies copies;
    struct dfi_hold hold;
    struct dfi_files *lender; /* of a child that shares our memory: whose mappings these are */
    bool sent;                /* descriptors of files were sent to other processes: sent.c */
    _Atomic uint64_t on_their_way[DFI_SENT]; /* handles, each held once more; 0: none */
    _Atomic unsigned sent_last;              /* whose place the next one gets where none is free */
    bool unborn;        /* of a child that shares our memory and has not yet run */
    bool among_threads; /* the same, of a process that has threads */
    struct dfi_young {
        int pid; /* 0: none */
        uint32_t client;
    } young[DFI_YOUNG]; /* files_child.c: of the children that were announced last */
    unsigned youngest;  /* how many were: the place of the next one */
    struct dfi_root root;
    struct dfi_cwd cwd;
    char root_path[PATH_MAX]; /* absolute, as all processes of the run call it */
};

/* What a thread has: its room in struct dfi_thread. */
struct dfi_of_thread {
    struct dfi_record *record; /* of the innermost call under way */
    bool has_identity;         /* ids, groups and capabilities of its own (identity.c): */
    struct df_caller caller;
};
_Static_assert(sizeof(struct dfi_of_thread) <= sizeof(((struct dfi_thread *)0)->files_room),
               "intercept.h");

static inline struct dfi_of_thread *dfi_of_thread(struct dfi_thread *thread)
{
    return (struct dfi_of_thread *)thread->files_room;
}

/* No other thread makes or closes descriptors. */
static inline bool dfi_is_alone(void)
{
    const struct dfi_thread *self = dfi_self();

    return self->process->threads == 1 && !self->shares_memory;
}

/* A result as programs are told it: a server that is gone is EIO, as a disk (docs/server.md). */
static inline long dfi_as_told(long result)
{
    return DF_UNLIKELY(result == -ENOTCONN) ? -EIO : result;
}

/* Beside a handle: the descriptor is of the kernel's FIFO that stands in for one of a mount
 * (node.h). What is read and written is the kernel's; the handle, which is open for attributes
 * alone, is what it is and is called. No handle has this bit (channel/layout.h). */
#define DFI_FIFO (UINT64_C(1) << 63)

/* The handle in an entry of the map. */
static inline uint64_t dfi_handle_in(uint64_t entry)
{
    return entry & ~DFI_FIFO;
}

/* A descriptor's entry in the map: its handle, perhaps with DFI_FIFO; 0: it is of no mount. */
static inline uint64_t dfi_entry_of(const struct dfi_files *files, long fd)
{
    if ((unsigned long)fd >= (unsigned)atomic_load_explicit(&files->top, memory_order_acquire))
        return 0;
    return atomic_load_explicit(&files->map[fd], memory_order_acquire);
}

/* The handle of a descriptor; 0: it is of no mount. */
static inline uint64_t dfi_file_of(const struct dfi_files *files, long fd)
{
    return dfi_handle_in(dfi_entry_of(files, fd));
}

/* [DF_OFD_COUNT], by index: descriptors and mappings of the process. Where there is a map. */
static inline _Atomic uint32_t *dfi_uses(const struct dfi_files *files)
{
    return (_Atomic uint32_t *)(files->map + DFI_FD_MAX);
}

/* [DFI_FD_MAX / 64], a bit by descriptor: listing.c. Where there is a map. */
static inline _Atomic uint64_t *dfi_told(const struct dfi_files *files)
{
    return (_Atomic uint64_t *)(dfi_uses(files) + DF_OFD_COUNT);
}

/* Of the descriptor in a call's argument, of which the kernel takes 32 bits: whether it is of a
 * mount, be it a FIFO. */
static inline bool dfi_fd_is_of_mount(unsigned long argument)
{
    return dfi_entry_of(dfi_process()->files, (int)argument) != 0;
}

/* The same for calls on data: whether they are a mount's. */
static inline bool dfi_fd_is_ours(unsigned long argument)
{
    return (int64_t)dfi_entry_of(dfi_process()->files, (int)argument) > 0; /* no DFI_FIFO */
}

const struct df_caller *dfi_identity_own(const struct dfi_files *files);

/* In whose name this thread makes calls: in that of its process, or in its own. */
static inline const struct df_caller *dfi_caller(const struct dfi_files *files)
{
    return DF_UNLIKELY(dfi_of_thread(dfi_self())->has_identity) ? dfi_identity_own(files)
                                                                : &files->caller;
}

/* To ask what is of no mount in particular: of processes, and of open files by their handles. */
static inline struct df_trip dfi_trip_of(struct dfi_files *files)
{
    return (struct df_trip){.link = &files->link, .caller = dfi_caller(files)};
}

/* The open file description of a handle; NULL: closed. */
static inline struct df_ofd *dfi_ofd(const struct dfi_files *files, uint64_t handle)
{
    return df_segment_ofd(files->link.segment, handle);
}

/* The handle of `a` if it is open, and of the same file; else 0. It is looked at twice, since the
 * server may give the place to another file meanwhile. */
static inline uint64_t dfi_same_file(const struct df_ofd *a, const struct df_ofd *b)
{
    uint64_t handle = atomic_load(&a->handle);
    bool same = a->mount == b->mount && a->ino == b->ino;

    return same && atomic_load(&a->handle) == handle ? handle : 0;
}

/* ---- descriptors: fd.c; their end is in placeholder.h ---- */

/* Memory for what is known of descriptors, before the first file is entered. False: there is none.
 */
bool dfi_fd_room(struct dfi_files *files);
void dfi_fd_free(struct dfi_files *files);

/* The descriptor is one more of this process for the file; what it was before must be 0. */
void dfi_fd_enter(struct dfi_files *files, int fd, uint64_t entry);

/* As dup2(2) has replaced what the descriptor was: the former file is closed. */
void dfi_fd_replace(struct dfi_files *files, int fd, uint64_t entry);

/* One more, one less use of the file by this process; a mapping is one. The last one drops it. */
void dfi_fd_hold(struct dfi_files *files, uint64_t handle);
long dfi_fd_drop(struct dfi_files *files, uint64_t handle, bool flush);

/* The same unless the last one has dropped it meanwhile, which says false. */
bool dfi_fd_hold_open(struct dfi_files *files, uint64_t handle);

/* The descriptor's entry in the map, of whose file this is one more use; 0: it is of no mount. */
uint64_t dfi_fd_take(struct dfi_files *files, int fd);

/* For a call, beside other threads, of which one may close the descriptor meanwhile: this process
 * has the file until the call has ended, as on Linux. Else its df_ofd could be another file's by
 * then; and of one whose lock a process holds that is killed, the server looks at what that process
 * has. False: there is no use to drop; without other threads, or it is just being closed. */
bool dfi_fd_hold_beside_others(struct dfi_files *files, uint64_t handle);

/* ---- identity.c ---- */

/* Reads ids, groups, capabilities, umask and RLIMIT_FSIZE. 0 or -ENOMEM. */
long dfi_identity_read(struct dfi_files *files);

/* Ids and groups once more, if they are others where the process is now. 0 or -ENOMEM. */
long dfi_identity_look(struct dfi_files *files);

/* Whether all these capabilities, of the first 32, are effective. */
bool dfi_capable(uint32_t wanted);

/* ---- limits.c ---- */

/* The soft RLIMIT_FSIZE in bytes; INT64_MAX: there is none. */
off_t dfi_limit_of_size(void);

#endif
