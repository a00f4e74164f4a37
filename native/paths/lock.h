/*
 * lock.h - a readers-writer lock of two words for paths of open files.
 *
 * pthread_rwlock_t offers one preference for all; here it is the reader's: one who may already
 * hold another such lock passes by waiting writers (or two readers that take two locks in opposite
 * order would deadlock with two writers), one who holds none lets them go first (or a file read
 * without pause could never be removed).
 *
 * Uncontended, each operation is one atomic read-modify-write.
 */
#ifndef DF_PATHS_LOCK_H
#define DF_PATHS_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct df_path_lock {
    _Atomic uint32_t word;    /* readers, and DF_PATH_LOCK_*; what sleepers sleep on */
    _Atomic uint32_t writers; /* that wait */
};

enum {
    DF_PATH_LOCK_WRITER = 1u << 30,
    DF_PATH_LOCK_ASLEEP = 1u << 29, /* somebody sleeps, or is about to */
    DF_PATH_LOCK_READERS = DF_PATH_LOCK_ASLEEP - 1,
};

/* All zeros is a free lock. */

void df_path_lock_read_slow(struct df_path_lock *lock, bool polite);

/* polite: the caller holds no other lock of this kind. */
static inline void df_path_lock_read(struct df_path_lock *lock, bool polite)
{
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    if ((word & ~(uint32_t)DF_PATH_LOCK_READERS) ||
        (polite && atomic_load_explicit(&lock->writers, memory_order_relaxed)) ||
        !atomic_compare_exchange_strong_explicit(&lock->word, &word, word + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        df_path_lock_read_slow(lock, polite);
}

void df_path_lock_wake(struct df_path_lock *lock);

static inline void df_path_lock_end_read(struct df_path_lock *lock)
{
    uint32_t word = atomic_fetch_sub_explicit(&lock->word, 1, memory_order_release);

    if (word == (DF_PATH_LOCK_ASLEEP | 1))
        df_path_lock_wake(lock);
}

/* Takes the lock if nobody has it. */
static inline bool df_path_lock_try_write(struct df_path_lock *lock)
{
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    return (word & ~(uint32_t)DF_PATH_LOCK_ASLEEP) == 0 &&
           atomic_compare_exchange_strong_explicit(&lock->word, &word, word | DF_PATH_LOCK_WRITER,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Who holds other locks of this kind has taken them in an order that all keep to (name_turn.h). */
void df_path_lock_write(struct df_path_lock *lock);

static inline void df_path_lock_end_write(struct df_path_lock *lock)
{
    uint32_t word = atomic_fetch_and_explicit(&lock->word, ~(uint32_t)DF_PATH_LOCK_WRITER,
                                              memory_order_release);

    if (word & DF_PATH_LOCK_ASLEEP)
        df_path_lock_wake(lock);
}

#endif
