/*
 * link.h - one process's end of the channel to a mount server: claim a slot, send it, await the
 * answer.
 *
 * Freestanding: this, link.c, trip_*.c and ofd.c use neither libc nor thread-local storage nor a
 * lock, so they work in native/intercept, in a signal handler, and between vfork and execve. What
 * the compiler itself may call (memcpy, memset) must be there.
 *
 * A df_link is private memory of its process. fork copies it: the parent asks for the child's id
 * before (df_trip_fork), the child stores it in `client` and tells the server who it is
 * (join.h, df_join_born). No lock is held by a thread that the child has not.
 */
#ifndef DF_CHANNEL_LINK_H
#define DF_CHANNEL_LINK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel/layout.h"

#define DF_LINK_OWED 32 /* closes; what finds no room stays open until the process ends */

struct df_link {
    struct df_segment *segment;     /* NULL: not connected */
    uint32_t client;                /* id of this process; 0: not registered */
    int control;                    /* socket to the server; -1: none (any more) */
    int memory;                     /* the segment's memfd; -1: closed after it was mapped */
    void (*meet)(struct df_link *); /* makes this process a client, before the first message of
                                       one that is none; NULL: it stays none */
    _Atomic int64_t patience;       /* ns that a call waits before it gives up; < 0: for ever */

    _Atomic uint32_t hint;   /* slot that was free last; a guess */
    _Atomic uint32_t posted; /* count of posts << 8 | 1 + slot that was posted last and may not be
                                done, or 0: none. Taken back only as it was read: that slot may have
                                been posted again meanwhile */
    _Atomic uint32_t told;   /* 1: the user has been told that the server is gone */
    _Atomic uint32_t starts; /* segment->starts when the user was told of a new server last */
    _Atomic uint32_t vain;   /* opens of late that found nothing there (trip_file.c) */
    _Atomic uint32_t full;   /* 1: the user has been told that the segment is full */
    _Atomic uint32_t late;   /* 1: a call has waited for all of patience; 2: the user knows */

    _Atomic uint32_t owes;               /* of owed[], those that are not 0 */
    _Atomic uint64_t owed[DF_LINK_OWED]; /* closes that found no slot in time (letter.h) */

    /* Statistics: every call, those answered while spinning, those that slept. Not exact. */
    _Atomic uint64_t trips, spun, slept;
    _Atomic uint64_t hits; /* calls answered by the cache, without a trip */
};

/* Makes a link to a mapped segment. 0, or -EPROTO: it is not one of this build. */
int df_link_init(struct df_link *link, void *mapped, uint64_t size);

/* False once the server's process is gone. One load. */
static inline bool df_link_alive(const struct df_link *link)
{
    uint32_t life = atomic_load_explicit(&link->segment->life, memory_order_relaxed);

    return life != 0 && !(life & FUTEX_OWNER_DIED);
}

/* True when the server's process is gone and nobody starts it again. Until then what is asked waits
 * in its slot for the next server. */
static inline bool df_link_lost(const struct df_link *link)
{
    uint32_t keeper;

    if (df_link_alive(link))
        return false;
    keeper = atomic_load_explicit(&link->segment->keeper, memory_order_relaxed);
    return keeper == 0 || keeper & FUTEX_OWNER_DIED;
}

/* Counts a call that needed no trip. One line that the threads of a process share: a nanosecond
 * where there is one thread, and what the goals of a hit allow for where there are many. */
static inline void df_link_hit(struct df_link *link)
{
    uint64_t hits = atomic_load_explicit(&link->hits, memory_order_relaxed);

    atomic_store_explicit(&link->hits, hits + 1, memory_order_relaxed);
}

/* A slot to fill, or NULL and *error: -ENOTCONN (the server is gone), -ETIMEDOUT (all slots were
 * taken for the whole of `patience`, as of df_link_await()). What was posted before is done; or it
 * is on its way, and the slot is the one behind it: then df_link_ask() gives it the question to be
 * begun next. */
struct df_slot *df_link_claim(struct df_link *link, int64_t patience, int *error);

/* The area that belongs to the slot. */
static inline struct df_area *df_link_area(const struct df_link *link, const struct df_slot *slot)
{
    return &df_segment_areas(link->segment)[slot - df_segment_slots(link->segment)];
}

/* A message that is on its way. */
struct df_asked {
    uint64_t at;     /* ticks from which on the wait is one */
    unsigned woken;  /* the worker that was woken; DF_WORKER_COUNT: none */
    uint32_t spins;  /* df_segment.spinning as it was: the line is the worker's by now */
    uint32_t behind; /* df_link.posted, if it is begun behind that; else 0 */
};

/* Sends the message. Before it waits for the reply this thread may do what needs none. */
struct df_asked df_link_ask(struct df_link *link, struct df_slot *slot);

/*
 * Waits for the reply. A signal during the wait is passed on to the server, where the op ends with
 * -EINTR if it is one that can be interrupted; the wait goes on.
 * patience: ns, < 0: for ever. 0: the reply is in the slot, df_link_free() it. -ENOTCONN,
 * -ETIMEDOUT: the slot is no longer the caller's.
 */
int df_link_await(struct df_link *link, struct df_slot *slot, int64_t patience,
                  struct df_asked asked);

/*
 * Sends the message; nobody waits for the answer, and the slot is no longer the caller's. What this
 * process sends later is begun when it has been done. False: another one is still on its way;
 * df_link_ask() it.
 */
bool df_link_post(struct df_link *link, struct df_slot *slot);

/* Of that patience, as much as there is for what Linux does not wait for: for an answer of the
 * server itself, and for the end of what was posted. */
#define DF_LINK_BRIEFLY INT64_C(5000000000)
static inline int64_t df_link_briefly(int64_t patience)
{
    return patience < 0 || patience > DF_LINK_BRIEFLY ? DF_LINK_BRIEFLY : patience;
}

/* Waits until what was posted is done: before this process ends, or is another program. Briefly. */
void df_link_settle(struct df_link *link);

/* Gives the slot back. */
void df_link_free(struct df_link *link, struct df_slot *slot);

/* For the server: makes a slot free, whoever had it. */
void df_link_release(struct df_segment *segment, struct df_slot *slot);

/* The same where the slot's word is FREE already. */
void df_link_freed(struct df_segment *segment, const struct df_slot *slot);

/* Wakes a worker that sleeps, the same one each time if it can be: its memory is warm. */
void df_link_ring(struct df_segment *segment);

#endif
