/*
 * past.h - bytes for the other side that go past the caches of who copies them. Freestanding.
 *
 * The lines of a payload lie where they were read last, in the other side's caches. A store fetches
 * each from there before it is made; where the two processors share no cache that takes up to 30 ns
 * a line, which is most of what a large read or write costs (docs/decisions/080). A store that goes
 * to memory fetches nothing. Where they do share one it is the slower way.
 *
 * Both ways are right everywhere: a wrong guess of which is faster costs time.
 */
#ifndef DF_CHANNEL_PAST_H
#define DF_CHANNEL_PAST_H

#include <stdbool.h>

#include "channel/layout.h"

#define DF_PAST_MIN (8U << 10) /* bytes from which on it is faster */

/* Whether so many bytes, written here once, are to go past our caches. */
static inline bool df_past_pays(const struct df_segment *segment, size_t size)
{
    return size >= DF_PAST_MIN && atomic_load_explicit(&segment->far, memory_order_relaxed) != 0;
}

#endif
