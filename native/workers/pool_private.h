/*
 * pool_private.h - what pool.c and pool_take.c share.
 */
#ifndef DF_WORKERS_POOL_PRIVATE_H
#define DF_WORKERS_POOL_PRIVATE_H

#include "workers/pool.h"

/* A question, or a signal, that nobody has taken. */
bool df_pool_any_pending(struct df_segment *segment);

/* A submitted slot, now running; NULL: there is none. Signals are passed on. */
struct df_slot *df_pool_take(struct df_pool *pool);

/* What the slot will be read from comes from its client's processor: all at once, and while its bit
 * is taken. */
void df_pool_foresee(struct df_segment *segment, const struct df_slot *slot);

/* The reply is complete. Nobody waits for it any more: then the slot is free again. Returns the
 * question behind what was posted in it, now running; NULL: there is none. */
struct df_slot *df_pool_give_back(struct df_pool *pool, struct df_slot *slot);

#endif
