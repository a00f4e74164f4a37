/*
 * stamp.c - time stamps, by the rule of Linux's multigrain time stamps.
 *
 * Reading the exact clock costs more than the rest of a small operation, the time of the last clock
 * tick a tenth of it. The tick is enough unless somebody has seen the inode's times since they last
 * changed: then the next change must be told apart, and takes the exact clock. The latest exact
 * stamp is the floor of all others, so that a file changed later never looks older.
 *
 * A stat that runs at the same time as the change it could see is not told apart.
 */
#include "store.h"

enum { SECOND = 1000000000, TICK_LIMIT = SECOND / 50 }; /* no tick is as long as that */

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * SECOND + time->tv_nsec;
}

static struct timespec exact(struct store *store)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);

    int64_t ns = nanoseconds(&now);
    int64_t floor = atomic_load_explicit(&store->floor, memory_order_relaxed);
    /* Also when the clock was set back: the floor follows. */
    while ((ns > floor || ns < floor - TICK_LIMIT) &&
           !atomic_compare_exchange_weak_explicit(&store->floor, &floor, ns, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
    return now;
}

struct timespec stamp_now(struct store *store, bool distinct)
{
    if (distinct)
        return exact(store);

    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    int64_t ns = nanoseconds(&now);
    int64_t floor = atomic_load_explicit(&store->floor, memory_order_relaxed);
    if (floor > ns && floor - ns < TICK_LIMIT)
        now = (struct timespec){floor / SECOND, floor % SECOND};
    return now;
}

struct timespec stamp_for(struct store *store, const struct inode *inode)
{
    return stamp_now(store, atomic_load_explicit(&inode->seen, memory_order_relaxed));
}
