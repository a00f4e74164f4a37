/*
 * lock.h - a reader/writer lock of four bytes, one in every node. A pthread_rwlock_t would
 * take 56, a fifth of a node.
 *
 * Word: the number of readers, WRITER while it is held exclusively, WAITERS while somebody sleeps.
 * Once somebody waits, newcomers wait as well, so neither side starves; whoever leaves the lock
 * free wakes all, and they compete. Not recursive.
 */
#ifndef DF_NODES_LOCK_H
#define DF_NODES_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

#define DF_NODE_LOCK_WRITER  (1u << 31)
#define DF_NODE_LOCK_WAITERS (1u << 30)

struct df_node_lock {
    _Atomic uint32_t word;
};

void df_node_lock_shared_slow(struct df_node_lock *lock);
void df_node_lock_slow(struct df_node_lock *lock);
void df_node_lock_wake(struct df_node_lock *lock);

static inline bool df_node_trylock(struct df_node_lock *lock)
{
    uint32_t unheld = 0;

    return atomic_compare_exchange_strong_explicit(&lock->word, &unheld, DF_NODE_LOCK_WRITER,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void df_node_lock(struct df_node_lock *lock)
{
    if (DF_UNLIKELY(!df_node_trylock(lock)))
        df_node_lock_slow(lock);
}

static inline void df_node_unlock(struct df_node_lock *lock)
{
    uint32_t was = atomic_exchange_explicit(&lock->word, 0, memory_order_release);

    if (DF_UNLIKELY(was & DF_NODE_LOCK_WAITERS))
        df_node_lock_wake(lock);
}

/* Shared, behind those who wait. */
static inline bool df_node_trylock_politely(struct df_node_lock *lock)
{
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    return !(word & (DF_NODE_LOCK_WRITER | DF_NODE_LOCK_WAITERS)) &&
           atomic_compare_exchange_weak_explicit(&lock->word, &word, word + 1, memory_order_acquire,
                                                 memory_order_relaxed);
}

static inline void df_node_lock_shared(struct df_node_lock *lock)
{
    if (DF_UNLIKELY(!df_node_trylock_politely(lock)))
        df_node_lock_shared_slow(lock);
}

/* Past those who wait, for who holds it but for a moment or shares it already. */
static inline bool df_node_trylock_shared(struct df_node_lock *lock)
{
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    while (!(word & DF_NODE_LOCK_WRITER))
        if (atomic_compare_exchange_weak_explicit(&lock->word, &word, word + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static inline void df_node_unlock_shared(struct df_node_lock *lock)
{
    uint32_t word = atomic_fetch_sub_explicit(&lock->word, 1, memory_order_release) - 1;

    if (DF_UNLIKELY(word == DF_NODE_LOCK_WAITERS) &&
        atomic_compare_exchange_strong_explicit(&lock->word, &word, 0, memory_order_relaxed,
                                                memory_order_relaxed))
        df_node_lock_wake(lock);
}

/* Either, for who decides at run time. */
static inline void df_node_lock_as(struct df_node_lock *lock, bool shared)
{
    if (shared)
        df_node_lock_shared(lock);
    else
        df_node_lock(lock);
}

static inline void df_node_unlock_as(struct df_node_lock *lock, bool shared)
{
    if (shared)
        df_node_unlock_shared(lock);
    else
        df_node_unlock(lock);
}

#endif
