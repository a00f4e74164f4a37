/*
 * layout.h - what a mount server and its clients share: one segment of memory, by offsets.
 *
 *   struct df_segment   header: sizes, life of the server, doorbell
 *   programs            what programs of a run tell each other; the server does not look at it
 *   mounts              what is mounted where
 *   ofds                open file descriptions: the server's open files, positions and all
 *   slots               one for each call in flight: request and reply
 *   areas               one for each slot: names, groups, payload; sparse
 *   cache               attributes that clients may read without a trip (cache.h); may be absent
 *   frames              bytes of files and listings, the same (frames.h); may be absent
 *   names               one for each ofd: of programs, as the above; sparse
 *   epolls              files that epoll instances watch; made with the first
 *
 * The segment is a memfd of fixed size, mapped whole by everybody; pages that nobody has touched
 * cost nothing, and are made by who first needs them (room.h). Everything in it is plain data and
 * _Atomic words: no pointers, no libc objects. Nobody but processes of one user has it, but a
 * client may be killed at any instant and its stores stop anywhere: the server checks what it
 * reads, and copies it before it checks.
 *
 * Nothing here has a version: client and server are of one build (build.h), or there is no segment
 * for the client.
 */
#ifndef DF_CHANNEL_LAYOUT_H
#define DF_CHANNEL_LAYOUT_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "channel/message.h"
#include "core/build.h"

#define DF_SEGMENT_MAGIC UINT64_C(0x746d6573736664) /* "dfssemt" */

#define DF_SLOT_COUNT    128
#define DF_WORKER_COUNT  (DF_SLOT_COUNT + 1) /* threads of the server at most */
#define DF_WORKER_WORDS  ((DF_WORKER_COUNT + 63) / 64)
#define DF_MOUNT_COUNT   64
#define DF_OFD_COUNT     65536
#define DF_PROGRAMS_SIZE 4096 /* bytes at programs_at, which are 0 at first */
#define DF_OFFERS        16
#define DF_TICKET        (UINT32_C(1) << 31) /* in a place of offers: no id */

enum {                  /* df_segment.end */
       DF_END_NONE = 0, /* it lives, or was killed: nothing of it ran that could say so */
       DF_END_ASKED = -1,
       DF_END_HUNG = -2, /* as asked, but without its file system, which did not let go */
};

/* ---- header --------------------------------------------------------------------------------- */

struct df_segment {
    uint64_t magic;
    char build[DF_BUILD_SIZE];
    uint32_t cpus; /* usable by the server; with one, nobody spins */
    uint64_t size; /* of the whole segment, bytes */
    uint64_t programs_at, mounts_at, ofds_at, slots_at, areas_at, names_at, epolls_at;
    uint64_t cache_at, cache_size;   /* size 0: there is no cache */
    uint64_t frames_at, frames_size; /* the same */
    int32_t server_pid;              /* as the server sees itself; for messages to people */
    _Atomic int64_t patience; /* ns that a call may take, as who started the server says; 0: any */

    /* The id of a thread of the server while it lives; it is on that thread's robust futex list
     * (get_robust_list(2)), so the kernel itself sets FUTEX_OWNER_DIED when the server is gone. */
    _Alignas(64) _Atomic uint32_t life;
    _Atomic uint32_t keeper; /* the same of the process that starts the server again; 0: none */
    _Atomic uint32_t starts; /* of servers; from the second on after the first had died */
    _Atomic uint32_t mounts_changed; /* counts changes of the mount table */
    _Atomic uint32_t full;           /* 1: once there was no memory for more of this (room.h) */
    _Atomic uint32_t mounts_used;    /* places of it that were ever used: all before the others */
    _Atomic uint32_t files_used;     /* no file of that index or a higher one ever was open */
    _Atomic uint32_t polls;          /* 1: some mount has `polls`, or had */
    _Atomic uint32_t scarce;         /* counts looks that found little memory left: control.c */
    _Atomic uint32_t astray;  /* children that are about to say that they are born, and not by their
                                 parent's socket, or were killed at it: files_child.c */
    _Atomic int32_t end;      /* DF_END_*, or the signal of a crash; written before it ends */
    _Atomic int32_t last_end; /* the same of the server before this one */

    /* One line: what a client writes and reads when it submits, and a worker when it takes. */
    _Alignas(64) _Atomic uint64_t pending[DF_SLOT_COUNT / 64]; /* bit: slot is submitted */
    _Atomic uint64_t signals[DF_SLOT_COUNT / 64];              /* bit: its client has a signal */
    _Atomic uint64_t asleep[DF_WORKER_WORDS]; /* bit: that worker sleeps on its doorbell */
    _Atomic uint32_t spinning; /* 0, or DF_SPINNING_ON(CPU): a worker looks without being told */

    _Alignas(64) _Atomic uint32_t worth; /* ticks >> 6 that a client's spin is worth (spin.h); read
                                            by each, written when it changes */
    _Atomic uint32_t far; /* 1: clients' processors share no cache with the workers' (past.h) */
    _Atomic uint32_t woken_worth; /* the same where the client has woken a worker */

    _Alignas(64) _Atomic uint32_t freed; /* futex: counts slots freed while somebody waited */
    _Atomic uint32_t wanted; /* counts who comes to wait for a slot; 0: nobody may be waiting */
    _Alignas(64) _Atomic uint32_t settled[DF_SLOT_COUNT]; /* futex, of each slot: odd, if somebody
                                             waits for what is posted in it; it is even then */

    /* Each place has the id of a client that nobody is, 0, or the ticket of who has put it in the
     * id's place: that is the client now. It has sent its socket and its ticket before
     * (DF_JOIN_TAKE), so wherever it is killed the server sees its end, and knows what it had. */
    _Alignas(64) _Atomic uint32_t offers[DF_OFFERS];
    _Atomic uint32_t tickets; /* counts them */

    struct {
        _Alignas(64) _Atomic uint32_t rings; /* futex: counts them */
    } doorbells[DF_WORKER_COUNT];            /* one for each worker */
};

#define DF_SPINNING_ON(cpu) ((cpu) + 1)

/* ---- mounts --------------------------------------------------------------------------------- */

enum {                              /* df_shared_mount.flags */
       DF_SHARED_READONLY = 1 << 0, /* calls that would change something: EROFS */
       DF_SHARED_PERMITS = 1 << 1,  /* DF_ATTACH_PERMITS (core/mount.h) */
       DF_SHARED_COVERS = 1 << 2,   /* something lies on disk where it is mounted */
       DF_SHARED_ACLS = 1 << 3,     /* DF_ATTACH_ACLS */
};

struct df_shared_mount {
    _Atomic int32_t live;  /* its id (> 0), or 0: free, or its unmount has begun */
    uint32_t flags;        /* DF_SHARED_*; this to subtype is fixed while live */
    uint64_t dev;          /* st_dev of its files */
    _Atomic uint32_t kept; /* 1 once an answer of it has been kept: before, nobody looks for one */
    uint32_t point_len;
    char point[PATH_MAX]; /* mountpoint: canonical, no trailing slash; "" for "/" */
    char fsname[256];     /* for listings */
    char subtype[64];
    _Atomic uint32_t locked; /* 1 once the server keeps a POSIX lock: then every close is told */
    _Atomic uint32_t polls;  /* 1: its file system is asked whether files are ready */
    _Atomic uint32_t left;   /* bits, df_left_bit(): locks that the file system leaves to the kernel
                                of the clients (core/placed.h), of which it is not asked again */
};

/* Linux asks no file system about locks of directories. */
static inline uint32_t df_left_bit(uint8_t kind, bool flock)
{
    return UINT32_C(1) << (kind * 2 + flock);
}

/* ---- open file descriptions -------------------------------------------------------------------
 */

/*
 * One for each file open on the server, found by the low half of its handle. Made by the server in
 * open, gone when the last client process has dropped it (trip.h). `handle` says whether it is
 * still the file one means: it never comes back with the same value.
 *
 * The first line of a processor's cache is read by both sides at each call and hardly ever written
 * while the file is open, so both keep it (docs/decisions/089). The second is the clients'.
 */
struct df_ofd {
    _Alignas(64) _Atomic uint64_t handle; /* 0: free */
    _Atomic uint32_t flags;               /* open(2) status flags; F_SETFL changes them */
    int32_t mount;                        /* id; this to `ino` is fixed while open */
    uint8_t kind;                         /* DF_KIND_* (core/file.h) */
    uint8_t traits;                       /* DF_FILE_* (core/file.h), as the plugin has it */
    uint32_t number; /* of the file among those open: the same in all its descriptions, and no other
                        file's meanwhile; small numbers first, modulo DF_OFD_COUNT */
    uint64_t ino;
    uint64_t marks;           /* DF_OFD_MAPPED and the like; above them the handle's generation */
    _Atomic uint32_t random;  /* 1: POSIX_FADV_RANDOM was advised last */
    _Atomic uint32_t content; /* what frames.h knows of its bytes; 0: nothing */
    _Atomic uint32_t sent;    /* its descriptors that are on their way in messages: the clients' */

    _Alignas(64) _Atomic uint32_t position_lock; /* 0, or client id | DF_OFD_WAITED (ofd.h) */
    _Atomic uint32_t begun; /* whether some of its bytes were read: DF_OFD_BEGUN or others */
    int64_t position;       /* bytes; opaque cookie in a directory. Under position_lock */
    uint64_t placeholder;   /* the client side's own */
    _Atomic int64_t end; /* of a directory: where its listing was at its end when it was read up to
                            there, for who asks there next; 0: not known */
};

_Static_assert(offsetof(struct df_ofd, position_lock) == 64 && sizeof(struct df_ofd) == 128,
               "one line for both sides, one for the clients");

#define DF_OFD_MAPPED  (UINT64_C(1))  /* of marks: some program has mapped the file */
#define DF_OFD_CHUNKED (UINT64_C(2))  /* the same: its bytes are brought by chunks (held.h) */
#define DF_OFD_STORED  (UINT64_C(4))  /* memory that was mapped by this very one was writable */
#define DF_OFD_FILLED  (UINT64_C(8))  /* its data file is being made, and not yet looked at */
#define DF_OFD_LOCKED  (UINT64_C(16)) /* its placeholder was to be locked, once */
#define DF_OFD_WAITED  (UINT32_C(1) << 31)
/* Marks that all descriptions of a file have: the server gives them to one that is opened. */
#define DF_OFD_OF_FILE (DF_OFD_MAPPED | DF_OFD_CHUNKED | DF_OFD_FILLED)
/* Marks of a description that has none, by its handle: what is above them. */
#define DF_OFD_UNMARKED(handle) ((handle) & ~UINT64_C(0xffffffff))

/* df_ofd.begun (execute_open.c). Above DF_OFD_BEGUN: not yet; but the open has brought bytes, and
 * an answer to fstat that is of before they were read. So it ends with the first read: its stripe
 * (cache.h) is the number less DF_OFD_BRINGS. */
#define DF_OFD_BEGUN  1
#define DF_OFD_BRINGS 2

/* A handle: generation << 32 | index. Never 0, and never negative as an off_t: placeholders have it
 * as their position (native/shadows/shadow.h). */
#define DF_GENERATION_MAX INT32_MAX

static inline uint32_t df_handle_index(uint64_t handle)
{
    return (uint32_t)handle;
}

/* ---- files that epoll instances watch ---------------------------------------------------------
 */

#define DF_EPOLL_COUNT 4096

/* What clients tell their programs when the server is gone, which alone writes to it before. */
struct df_shared_epoll {
    _Atomic uint64_t set; /* the instance (ledger/epolls.h); 0: free */
    _Atomic uint64_t data;
};

/* ---- slots ---------------------------------------------------------------------------------- */

/*
 *   FREE       by the client, or by the worker that ends an ABANDONED one
 *   CLAIMED    from FREE, by a client that fills it
 *   SUBMITTED  from CLAIMED or BEHIND, by the client, which waits; back to FREE if it gives up, or
 *              to POSTED what is to be done all the same (df_message_lets_go())
 *   BEHIND     from CLAIMED, by a client that waits for what it has posted in the neighbour first
 *   POSTED     from CLAIMED or SUBMITTED, by a client that does not wait for the answer
 *   RUNNING    from SUBMITTED, by a worker; from BEHIND, by the one that has done what was first
 *   DONE       from RUNNING, by that worker: the answer is complete; then FREE, by the client
 *   ABANDONED  from RUNNING, by a client that gives up or by the reaper; from POSTED, by a worker
 *
 * The word carries who claimed it, so that the reaper of a dead client finds its slots; and of what
 * was posted, whether the neighbour is to be looked at before it is freed (DF_SLOT_FOLLOWED).
 */
enum df_slot_state {
    DF_SLOT_FREE,
    DF_SLOT_CLAIMED,
    DF_SLOT_SUBMITTED,
    DF_SLOT_RUNNING,
    DF_SLOT_DONE,
    DF_SLOT_ABANDONED,
    DF_SLOT_POSTED,
    DF_SLOT_BEHIND,
};

#define DF_SLOT_FOLLOWED 8  /* of a word, beside the state */
#define DF_CLIENT_BITS   28 /* of a client id; > 0 */

static inline uint32_t df_slot_word(uint32_t client, enum df_slot_state state)
{
    return client << 4 | (uint32_t)state;
}

static inline enum df_slot_state df_slot_state(uint32_t word)
{
    return (enum df_slot_state)(word & 7);
}

static inline uint32_t df_slot_client(uint32_t word)
{
    return word >> 4;
}

struct df_slot {
    _Alignas(64) _Atomic uint32_t word; /* futex of the client; df_slot_word() */
    _Atomic uint32_t waiting;           /* 1: the client sleeps on it */
    uint32_t cpu;                       /* where the client ran when it submitted (df_sys_clock) */
    _Atomic uint32_t died;              /* servers that crashed while they were at it */
    _Atomic uint32_t made;              /* bytes of the payload that are there (room.h) */
    _Atomic uint32_t at; /* df_spin_moment() of the question, by the client; of the answer, by the
                            worker if somebody sleeps for it: then perhaps | DF_SPIN_HERE */
    _Atomic uint64_t entered; /* what a server was about to enter in the ledger for it: the handle
                                 of a file, the id of a child; 0: nothing */
    struct df_message message;
};

_Static_assert(offsetof(struct df_slot, message.wheres) == 64 &&
                   offsetof(struct df_slot, message.caller) == 192 &&
                   offsetof(struct df_slot, message.out) == 256,
               "the lines of message.h");

#define DF_KEY_SIZE     256        /* name of an extended attribute, with NUL */
#define DF_GROUPS_MAX   65536      /* NGROUPS_MAX */
#define DF_PAYLOAD_SIZE (1U << 20) /* bytes of one message */

struct df_area {
    _Alignas(4096) char names[2][PATH_MAX]; /* of the wheres, NUL-terminated; reply: leave in [0] */
    char key[DF_KEY_SIZE];
    uint32_t groups[DF_GROUPS_MAX];
    _Alignas(4096) char payload[DF_PAYLOAD_SIZE]; /* data of either direction */
};

/* ---- finding -------------------------------------------------------------------------------- */

static inline struct df_shared_mount *df_segment_mounts(const struct df_segment *segment)
{
    return (struct df_shared_mount *)((char *)segment + segment->mounts_at);
}

/* The index of the mount of that id; DF_MOUNT_COUNT: it is not there. */
static inline unsigned df_segment_mount_index(const struct df_segment *segment, int32_t id)
{
    const struct df_shared_mount *mounts = df_segment_mounts(segment);
    unsigned i = 0;

    while (i < DF_MOUNT_COUNT && atomic_load_explicit(&mounts[i].live, memory_order_relaxed) != id)
        i++;
    return i;
}

static inline struct df_ofd *df_segment_ofds(const struct df_segment *segment)
{
    return (struct df_ofd *)((char *)segment + segment->ofds_at);
}

static inline struct df_slot *df_segment_slots(const struct df_segment *segment)
{
    return (struct df_slot *)((char *)segment + segment->slots_at);
}

/* The one whose question may come behind what is posted in the slot; of that, the slot. */
static inline struct df_slot *df_slot_neighbour(const struct df_segment *segment,
                                                const struct df_slot *slot)
{
    struct df_slot *slots = df_segment_slots(segment);

    return &slots[(size_t)(slot - slots) ^ 1];
}

static inline struct df_area *df_segment_areas(const struct df_segment *segment)
{
    return (struct df_area *)((char *)segment + segment->areas_at);
}

static inline void *df_segment_programs(const struct df_segment *segment)
{
    return (char *)segment + segment->programs_at;
}

/* The path that the file of a handle was opened by, or "". Its memory may be made by the first
 * touch, as that of all names. */
static inline char *df_segment_name(const struct df_segment *segment, uint64_t handle)
{
    return (char *)segment + segment->names_at + (size_t)df_handle_index(handle) * PATH_MAX;
}

static inline struct df_shared_epoll *df_segment_epolls(const struct df_segment *segment)
{
    return (struct df_shared_epoll *)((char *)segment + segment->epolls_at);
}

/* The open file description of a handle, or NULL: it is closed, or is no handle at all. */
static inline struct df_ofd *df_segment_ofd(const struct df_segment *segment, uint64_t handle)
{
    uint32_t index = df_handle_index(handle);
    struct df_ofd *ofd;

    if (index >= DF_OFD_COUNT || handle == 0)
        return NULL;
    ofd = &df_segment_ofds(segment)[index];
    return atomic_load_explicit(&ofd->handle, memory_order_acquire) == handle ? ofd : NULL;
}

#endif
