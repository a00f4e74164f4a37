/*
 * quota.c - limited amounts (bytes, inodes) that many CPUs take without sharing a cache line.
 *
 * Each CPU keeps some credit of its own, fetched from the pool by batches. Only when the pool runs
 * dry is the credit of all CPUs collected again, so the limit is exact: a request fails only if
 * less than it asks for is left in the whole store.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "store.h"

enum { MOST_SHARDS = 256 };

unsigned quota_shards(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    unsigned shards = 1;
    while (shards < MOST_SHARDS && (long)shards < cpus)
        shards *= 2;
    return shards;
}

int quota_init(struct quota *quota, int64_t limit, int64_t batch)
{
    unsigned shards = quota_shards();

    quota->shards = aligned_alloc(CACHE_LINE, shards * sizeof(struct quota_shard));
    if (!quota->shards)
        return -ENOMEM;
    for (unsigned i = 0; i < shards; i++)
        atomic_init(&quota->shards[i].credit, 0);
    quota->mask = shards - 1;
    quota->limit = limit ? limit : INT64_MAX / 2;
    quota->batch = batch;
    atomic_init(&quota->lock.word, 0);
    atomic_init(&quota->pool, quota->limit);
    return 0;
}

void quota_free(struct quota *quota)
{
    free(quota->shards);
}

static inline struct quota_shard *my_shard(struct quota *quota)
{
    return &quota->shards[(unsigned)sched_getcpu() & quota->mask];
}

/* Brings the credit of all CPUs back to the pool. quota->lock is held. */
static void collect(struct quota *quota)
{
    for (unsigned i = 0; i <= quota->mask; i++) {
        int64_t credit =
            atomic_exchange_explicit(&quota->shards[i].credit, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&quota->pool, credit, memory_order_relaxed);
    }
}

/* Takes from the pool, and a batch for the shard if there is one. */
static bool take_from_pool(struct quota *quota, struct quota_shard *shard, int64_t amount)
{
    lock_write(&quota->lock);
    if (atomic_load_explicit(&quota->pool, memory_order_relaxed) - quota->batch < amount)
        collect(quota);
    /* Others only add to the pool: what is seen here stays. */
    int64_t left = atomic_load_explicit(&quota->pool, memory_order_relaxed) - amount;
    if (left >= 0) {
        int64_t credit = left < quota->batch ? 0 : quota->batch;
        atomic_fetch_sub_explicit(&quota->pool, amount + credit, memory_order_relaxed);
        atomic_fetch_add_explicit(&shard->credit, credit, memory_order_relaxed);
    }
    lock_write_done(&quota->lock);
    return left >= 0;
}

bool quota_take(struct quota *quota, int64_t amount)
{
    struct quota_shard *shard = my_shard(quota);
    int64_t credit = atomic_load_explicit(&shard->credit, memory_order_relaxed);

    while (credit >= amount) {
        if (atomic_compare_exchange_weak_explicit(&shard->credit, &credit, credit - amount,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return take_from_pool(quota, shard, amount);
}

void quota_give(struct quota *quota, int64_t amount)
{
    struct quota_shard *shard = my_shard(quota);
    int64_t credit =
        atomic_fetch_add_explicit(&shard->credit, amount, memory_order_relaxed) + amount;

    if (credit > 2 * quota->batch) {
        credit = atomic_exchange_explicit(&shard->credit, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&quota->pool, credit, memory_order_relaxed);
    }
}

int64_t quota_left(struct quota *quota)
{
    lock_write(&quota->lock);
    int64_t left = atomic_load_explicit(&quota->pool, memory_order_relaxed);
    for (unsigned i = 0; i <= quota->mask; i++)
        left += atomic_load_explicit(&quota->shards[i].credit, memory_order_relaxed);
    lock_write_done(&quota->lock);
    return left;
}
