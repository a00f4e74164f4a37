/*
 * lock.c - the core's lock: one word, a futex when it is contended; and what fork does with locks.
 */
#include "intercept/lock.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

void dfi_lock(struct dfi_lock *lock)
{
    int seen = 0;
    if (__atomic_compare_exchange_n(&lock->word, &seen, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
        dfi_kernel(__NR_futex, &lock->word, FUTEX_WAIT, 2, 0);
}

void dfi_unlock(struct dfi_lock *lock)
{
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
        dfi_kernel(__NR_futex, &lock->word, FUTEX_WAKE, 1);
}

/* Every lock of the mechanism, outermost first. */
static struct dfi_lock *const fork_locks[] = {&dfi_rewrite_lock, &dfi_action_lock, &dfi_thread_lock,
                                              &dfi_alloc_lock};
#define FORK_LOCKS (sizeof fork_locks / sizeof *fork_locks)

void dfi_fork_prepare(void)
{
    dfi_files_fork_prepare();
    for (size_t i = 0; i < FORK_LOCKS; i++)
        dfi_lock(fork_locks[i]);
}

void dfi_fork_parent(bool born)
{
    for (size_t i = FORK_LOCKS; i-- > 0;)
        dfi_unlock(fork_locks[i]);
    dfi_files_fork_parent(born);
}

void dfi_fork_child(struct dfi_process *process)
{
    for (size_t i = 0; i < FORK_LOCKS; i++)
        fork_locks[i]->word = 0;
    dfi_files_fork_child(process);
}
