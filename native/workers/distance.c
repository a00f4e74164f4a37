/*
 * distance.c - the mean of what was measured, and when it means something else than before.
 */
#include "workers/distance.h"

#define LOOKS 16 /* between two measurements */
#define SHARE 8  /* of the mean: one part is the newest */

/* Ticks from a client's store to the look of the worker: 110 to 230 in the mean with a cache in
 * common, from 440 on without (2.6 GHz). Between the two bounds it stays what it was. */
#define FAR_TICKS  380
#define NEAR_TICKS 300
#define ODD_TICKS  2048 /* one of the two was interrupted */

bool df_distance_is_due(struct df_distance *distance)
{
    uint32_t looks = atomic_load_explicit(&distance->looks, memory_order_relaxed) + 1;

    atomic_store_explicit(&distance->looks, looks, memory_order_relaxed);
    return looks % LOOKS == 0;
}

void df_distance_learn(struct df_distance *distance, struct df_segment *segment, uint32_t ticks)
{
    uint32_t mean = atomic_load_explicit(&distance->ticks, memory_order_relaxed);
    bool far = atomic_load_explicit(&segment->far, memory_order_relaxed) != 0;

    if (ticks > ODD_TICKS)
        return;
    mean = mean == 0 ? ticks : mean - mean / SHARE + ticks / SHARE;
    atomic_store_explicit(&distance->ticks, mean, memory_order_relaxed);
    if (far ? mean < NEAR_TICKS : mean > FAR_TICKS)
        atomic_store_explicit(&segment->far, !far, memory_order_relaxed);
}
