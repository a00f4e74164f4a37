/*
 * clock.h - the clock that nobody sets, as one number: ns of CLOCK_MONOTONIC (clock_gettime(2)).
 */
#ifndef DF_CORE_CLOCK_H
#define DF_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t df_clock_of(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int64_t df_clock(void)
{
    return df_clock_of(CLOCK_MONOTONIC);
}

/* As fine as the kernel's ticks, 1 to 10 ms, for a third of the cost. */
static inline int64_t df_clock_coarse(void)
{
    return df_clock_of(CLOCK_MONOTONIC_COARSE);
}

#endif
