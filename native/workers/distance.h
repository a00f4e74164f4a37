/*
 * distance.h - whether clients' processors share a cache with those of the workers
 * (channel/past.h).
 *
 * Asked now and then of a worker that looks for a question all the time: how long ago was the one
 * sent that it sees just now? A host may move the processors of a virtual machine at any time.
 */
#ifndef DF_WORKERS_DISTANCE_H
#define DF_WORKERS_DISTANCE_H

#include <stdbool.h>

#include "channel/layout.h"

/* All zero at first. Lost updates do no harm. */
struct df_distance {
    _Atomic uint32_t looks;
    _Atomic uint32_t ticks; /* the mean of the last few */
};

/* One look of sixteen. */
bool df_distance_is_due(struct df_distance *distance);

/* One that was so many ticks behind its question: segment->far says what is true from now on. */
void df_distance_learn(struct df_distance *distance, struct df_segment *segment, uint32_t ticks);

#endif
