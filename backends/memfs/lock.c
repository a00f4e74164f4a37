/*
 * lock.c - the waiting half of lock.h.
 *
 * LOCK_SLEEPERS is set only while the lock is held, by a thread about to sleep, and stays until the
 * holder that finds no other holder clears it and wakes everybody; a writer may slip in between
 * and then inherits the duty. futex(2) compares the word before it sleeps, so no wake-up is lost.
 */
#include "lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 100 }; /* about the time of a short critical section, far below a context switch */

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps until the lock is woken, unless its word has changed from `word` already. */
static void sleep_on(struct lock *lock, uint32_t word)
{
    if (!(word & LOCK_SLEEPERS)) {
        if (!atomic_compare_exchange_strong_explicit(&lock->word, &word, word | LOCK_SLEEPERS,
                                                     memory_order_relaxed, memory_order_relaxed))
            return;
        word |= LOCK_SLEEPERS;
    }
    syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
}

/*
 * Takes the lock by adding `held` to its word as soon as no bit of `against` is set in it, in
 * addition to LOCK_WRITER.
 */
static void wait_for(struct lock *lock, uint32_t against, uint32_t held)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (!(word & (LOCK_WRITER | against))) {
            if (atomic_compare_exchange_weak_explicit(&lock->word, &word, word + held,
                                                      memory_order_acquire, memory_order_relaxed))
                return;
        } else if (tries < SPINS) {
            pause_cpu();
        } else {
            sleep_on(lock, word);
        }
    }
}

void lock_read_slow(struct lock *lock)
{
    wait_for(lock, LOCK_SLEEPERS, 1);
}

void lock_write_slow(struct lock *lock)
{
    wait_for(lock, ~(LOCK_WRITER | LOCK_SLEEPERS), LOCK_WRITER);
}

void lock_wake(struct lock *lock)
{
    uint32_t word = LOCK_SLEEPERS;
    if (atomic_compare_exchange_strong_explicit(&lock->word, &word, 0, memory_order_relaxed,
                                                memory_order_relaxed))
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
