/*
 * lock.h - a reader-writer lock of four bytes.
 *
 * One lives in every inode, where a pthread_rwlock_t (56 bytes) would be a third of an empty file.
 * Free locks cost one atomic operation to take and one to release, inlined here; waiting is a short
 * spin and then futex(2), in lock.c. Nobody starves: once a thread sleeps, later readers queue up
 * behind it, so a reader must not take the same lock twice.
 */
#ifndef MEMFS_LOCK_H
#define MEMFS_LOCK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Zero is a free lock. The low bits count readers. */
struct lock {
    _Atomic uint32_t word;
};

#define LOCK_WRITER   (UINT32_C(1) << 31) /* held by a writer */
#define LOCK_SLEEPERS (UINT32_C(1) << 30) /* somebody may be asleep: wake all on release */

void lock_read_slow(struct lock *lock);
void lock_write_slow(struct lock *lock);
void lock_wake(struct lock *lock);

static inline void lock_read(struct lock *lock)
{
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    if ((word & (LOCK_WRITER | LOCK_SLEEPERS)) ||
        !atomic_compare_exchange_weak_explicit(&lock->word, &word, word + 1, memory_order_acquire,
                                               memory_order_relaxed))
        lock_read_slow(lock);
}

static inline void lock_read_done(struct lock *lock)
{
    uint32_t word = atomic_fetch_sub_explicit(&lock->word, 1, memory_order_release) - 1;
    if (word == LOCK_SLEEPERS)
        lock_wake(lock);
}

static inline void lock_write(struct lock *lock)
{
    uint32_t word = 0;
    if (!atomic_compare_exchange_weak_explicit(&lock->word, &word, LOCK_WRITER,
                                               memory_order_acquire, memory_order_relaxed))
        lock_write_slow(lock);
}

static inline void lock_write_done(struct lock *lock)
{
    uint32_t word = atomic_fetch_sub_explicit(&lock->word, LOCK_WRITER, memory_order_release);
    if (word & LOCK_SLEEPERS)
        lock_wake(lock);
}

/* Returns when nobody holds the lock, which nobody takes any more. Who held it may still look at
 * its word then, to wake others: the word has to stay that of a lock. */
static inline void lock_drain(struct lock *lock)
{
    if (atomic_load_explicit(&lock->word, memory_order_acquire) == 0)
        return;
    lock_write(lock);
    lock_write_done(lock);
}

static inline void lock_assert_write(const struct lock *lock)
{
    assert(atomic_load_explicit(&lock->word, memory_order_relaxed) & LOCK_WRITER);
    (void)lock;
}

#pragma GCC visibility pop
#endif
