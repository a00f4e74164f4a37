/*
 * lock.c - waiting for a path_lock.
 *
 * Whoever has to wait sets ASLEEP in the word and sleeps while the word stays as it was. The last
 * reader, or the writer, finds the bit when it goes, takes it away and wakes all; who must wait
 * still sets it again.
 */
#include "paths/lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static void sleep_on(struct df_path_lock *lock, uint32_t word)
{
    if (!(word & DF_PATH_LOCK_ASLEEP) &&
        !atomic_compare_exchange_strong(&lock->word, &word, word | DF_PATH_LOCK_ASLEEP))
        return;
    syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, word | DF_PATH_LOCK_ASLEEP, NULL, NULL, 0);
}

void df_path_lock_wake(struct df_path_lock *lock)
{
    atomic_fetch_and(&lock->word, ~(uint32_t)DF_PATH_LOCK_ASLEEP);
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* A polite reader waits only for writers that have readers to wait for: with none there, the lock
 * is free for whoever comes first, and nobody would wake it. */
static bool must_wait(struct df_path_lock *lock, uint32_t word, bool polite)
{
    if (word & DF_PATH_LOCK_WRITER)
        return true;
    return polite && word & DF_PATH_LOCK_READERS && atomic_load(&lock->writers);
}

void df_path_lock_read_slow(struct df_path_lock *lock, bool polite)
{
    for (;;) {
        uint32_t word = atomic_load(&lock->word);
        if (must_wait(lock, word, polite))
            sleep_on(lock, word);
        else if (atomic_compare_exchange_strong(&lock->word, &word, word + 1))
            return;
    }
}

void df_path_lock_write(struct df_path_lock *lock)
{
    atomic_fetch_add(&lock->writers, 1);
    while (!df_path_lock_try_write(lock)) {
        uint32_t word = atomic_load(&lock->word);
        if (word & ~(uint32_t)DF_PATH_LOCK_ASLEEP)
            sleep_on(lock, word);
    }
    atomic_fetch_sub(&lock->writers, 1);
}
