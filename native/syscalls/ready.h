/*
 * ready.h - whether files of mounts are ready, for calls that wait in the kernel for these among
 * whatever else: poll(2), select(2) (calls_ready.c, calls_select.c), epoll (calls_epoll.c).
 *
 * The file system is asked. If it has nothing, it may say later that there is: then the mount
 * server rings a bell (ledger/bells.h). That is a descriptor for which the kernel waits in place
 * of the files of mounts; whoever hears it asks for all of them again.
 */
#ifndef DF_SYSCALLS_READY_H
#define DF_SYSCALLS_READY_H

#include <time.h>

#include "client/files.h"

/* The end of a wait. */
struct dfi_until {
    bool waits; /* false: not at all */
    int64_t at; /* ns, CLOCK_MONOTONIC; INT64_MAX: none */
};

struct dfi_waiter {
    struct dfi_files *files;
    struct dfi_until until;
    uint64_t token; /* of its bell */
    int bell;       /* to be waited for until it can be read; -1: none */
};

/* Whether a file system of the run's mounts can tell. Elsewhere placeholders, which are always
 * ready, are right, and the kernel looks at these. */
static inline bool dfi_ready_told(const struct dfi_files *files)
{
    const struct df_segment *segment = files->link.segment;

    return segment && DF_UNLIKELY(atomic_load_explicit(&segment->polls, memory_order_relaxed) != 0);
}

/* The handle of a descriptor of which its file system is to be asked; 0: of another. */
uint64_t dfi_ready_file(const struct dfi_files *files, long fd);

/* Which of the events (POLL*, with POLLERR and POLLHUP in any case) the descriptor's file is ready
 * for; POLLNVAL: another thread has closed it. `rings`: the bell will ring when that changes. */
unsigned dfi_ready_ask(struct dfi_waiter *waiter, int fd, unsigned events, bool rings);

/* Who waits has the files, whatever other threads close meanwhile: handles, 0 for none. */
void dfi_ready_hold(struct dfi_files *files, const uint64_t handles[], unsigned long count);
void dfi_ready_let_go(struct dfi_files *files, const uint64_t handles[], unsigned long count);

/* The bell can be read, or is broken: it is silent from now on, or gone. */
void dfi_ready_hear(struct dfi_waiter *waiter);

void dfi_ready_end(struct dfi_waiter *waiter);

/* What poll(2) and select(2) do in ways of their own: look at all others; ask the file systems;
 * wait for the others and the bell (*over: the time is). How many are ready, or -errno. */
struct dfi_ready_ways {
    long (*look)(struct dfi_waiter *waiter);
    long (*ask)(struct dfi_waiter *waiter, bool rings);
    long (*wait)(struct dfi_waiter *waiter, bool *over);
};

/* How many are ready in the end, or -errno. */
long dfi_ready_run(struct dfi_waiter *waiter, struct dfi_ready_ways ways);

/* Whether the kernel takes that signal mask of ppoll(2) or pselect6(2): it looks before it waits.
 */
bool dfi_ready_masks(unsigned long mask, unsigned long size);

/* The time that is given from now on; -EINVAL: it is none. Of nothing: not at all. */
long dfi_ready_until(struct dfi_until *until, int64_t seconds, int64_t nanoseconds);

/* What is left: NULL, for ever; else *left, perhaps nothing. */
struct timespec *dfi_ready_left(const struct dfi_until *until, struct timespec *left);

#endif
