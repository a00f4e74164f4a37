/*
 * stretches.h - how much memory of the segment is made at a time, in stretches of DF_HUGE_SIZE.
 *
 * To make a huge page Linux waits until each processor has emptied its lists, however many are
 * made, so many at a time are cheaper. But who needs the first waits for all: and memory that the
 * host of a virtual machine has to find first takes twenty times as long as other, 2 to 5 ms for
 * each.
 */
#ifndef DF_SEGMENT_STRETCHES_H
#define DF_SEGMENT_STRETCHES_H

#include <stdint.h>

#include "core/clock.h"

/* One for each part of the segment that grows; its owner's lock protects it. */
struct df_stretches {
    int64_t each; /* ns of processor time that one took the last time; 0: none was made */
};

/* How many are to be made next, where there are so many, and room for so many more. 0: no room. */
uint32_t df_stretches_next(const struct df_stretches *stretches, uint64_t there, uint64_t room);

/* Before some are made. Processor time, for what is waited for is the same for many. */
static inline int64_t df_stretches_begin(void)
{
    return df_clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* So many were made since, or tried. */
static inline void df_stretches_took(struct df_stretches *stretches, int64_t begun, uint32_t count)
{
    stretches->each = (df_clock_of(CLOCK_THREAD_CPUTIME_ID) - begun) / count;
}

#endif
