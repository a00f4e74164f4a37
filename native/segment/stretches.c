/*
 * stretches.c - as much memory of the segment at a time as nobody waits long for.
 */
#include "segment/stretches.h"

#define AT_ONCE    4                /* at most */
#define AT_ONCE_NS INT64_C(1000000) /* but for the first of them */

static uint64_t at_most(uint64_t count, uint64_t limit)
{
    return count < limit ? count : limit;
}

/* As many again as there are. */
uint32_t df_stretches_next(const struct df_stretches *stretches, uint64_t there, uint64_t room)
{
    uint64_t count = at_most(there, AT_ONCE);

    if (stretches->each > 0)
        count = at_most(count, (uint64_t)(AT_ONCE_NS / stretches->each));
    return (uint32_t)at_most(count < 1 ? 1 : count, room);
}
