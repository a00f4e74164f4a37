/*
 * lock.c - waiting for a node's lock: futex(2).
 */
#include "nodes/lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Says that somebody waits and sleeps until the word is no longer `word`. A change in between, or a
 * signal, only costs another look. */
static void await_change(struct df_node_lock *lock, uint32_t word)
{
    if (!(word & DF_NODE_LOCK_WAITERS) &&
        !atomic_compare_exchange_strong(&lock->word, &word, word | DF_NODE_LOCK_WAITERS))
        return;
    syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, word | DF_NODE_LOCK_WAITERS, NULL, NULL, 0);
}

void df_node_lock_slow(struct df_node_lock *lock)
{
    for (;;) {
        uint32_t word = atomic_load(&lock->word);

        if (word & ~DF_NODE_LOCK_WAITERS)
            await_change(lock, word);
        else if (atomic_compare_exchange_weak(&lock->word, &word, word | DF_NODE_LOCK_WRITER))
            return;
    }
}

/* A waiting reader takes the lock past other waiters: it has waited as long as they have. */
void df_node_lock_shared_slow(struct df_node_lock *lock)
{
    for (bool waited = false;; waited = true) {
        uint32_t word = atomic_load(&lock->word);
        uint32_t blocking =
            waited ? DF_NODE_LOCK_WRITER : DF_NODE_LOCK_WRITER | DF_NODE_LOCK_WAITERS;

        while (!(word & blocking))
            if (atomic_compare_exchange_weak(&lock->word, &word, word + 1))
                return;
        await_change(lock, word);
    }
}

void df_node_lock_wake(struct df_node_lock *lock)
{
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
