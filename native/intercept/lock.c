/*
 * lock.c - the core's lock: one word, a futex when it is contended; and what fork does with locks.
 *
 * The threads of a process end together, and its locks with them. But a child that shares our
 * memory, by vfork(2) or posix_spawn(3), may be killed while it holds one that others wait for; and
 * it outlives us, when we end or become another program while one of our threads holds one. So
 * locks say whose they are.
 */
#include "intercept/lock.h"

#include "intercept/brief.h"

#include <linux/kcmp.h>

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#define WAITED     (1 << 30)
#define IN_CHILD   (1 << 29) /* of a child that shares our memory */
#define NAMELESS   (1 << 28) /* of a thread whose id says nothing to others: none is given */
#define TIDS       (NAMELESS - 1)

#define PATIENCE   10000000 /* ns: until it is asked whether the holder is still there */

#define P_PID      1
#define WNOHANG    0x00000001
#define WEXITED    0x00000004
#define WNOWAIT    0x01000000
#define WALL       0x40000000

static bool begun DFI_HOT; /* dfi_self() may be asked */

void dfi_lock_begin(void)
{
    begun = true;
}

/* In a PID namespace of its own it does not see its parent. */
void dfi_lock_born(struct dfi_process *process)
{
    if (process->holder != NAMELESS)
        process->holder = dfi_kernel(__NR_getppid) == 0 ? NAMELESS : IN_CHILD;
}

static int holder(void)
{
    if (!begun)
        return NAMELESS;
    const struct dfi_thread *self = dfi_self();
    int kind = self->process->holder;
    return kind == NAMELESS ? NAMELESS : kind | self->tid;
}

/* Whether we may outlive the holder: it is a thread of such a child, or we are one. */
static bool may_outlive(int seen)
{
    return (seen & TIDS) != 0 && begun && dfi_process()->holder != NAMELESS &&
           ((seen & IN_CHILD) != 0 || dfi_process()->holder == IN_CHILD);
}

/* One that has ended may still wait for its parent to hear of it. */
static bool has_ended(int tid)
{
    struct {
        int signal, error, code, pad, pid, rest[32];
    } ended = {0};
    if (dfi_kernel(__NR_waitid, P_PID, tid, &ended, WEXITED | WNOHANG | WNOWAIT | WALL, 0) == 0)
        return ended.pid == tid;
    return dfi_kernel(__NR_kill, tid, 0) == -ESRCH;
}

/* Who has ended or is another program has not our memory; kcmp(2) is not everywhere allowed. */
static bool is_gone(int tid)
{
    long differs = dfi_kernel(__NR_kcmp, dfi_self()->tid, tid, KCMP_VM, 0, 0);
    return differs < 0 ? has_ended(tid) : differs != 0;
}

/* The lock of one who is gone is free: what such a lock protects is whole at each store. */
static bool take_over(struct dfi_lock *lock, int seen)
{
    return is_gone(seen & TIDS) &&
           __atomic_compare_exchange_n(&lock->word, &seen, holder() | WAITED, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void wait_for(struct dfi_lock *lock)
{
    static const long patience[2] = {0, PATIENCE};
    for (;;) {
        int seen = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
        int wanted = seen == 0 ? holder() | WAITED : seen | WAITED;
        if (seen != wanted && !__atomic_compare_exchange_n(&lock->word, &seen, wanted, false,
                                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if (seen == 0)
            return;
        long result = dfi_kernel(__NR_futex, &lock->word, FUTEX_WAIT, wanted,
                                 may_outlive(wanted) ? patience : NULL);
        if (result == -ETIMEDOUT && take_over(lock, wanted))
            return;
    }
}

void dfi_lock(struct dfi_lock *lock)
{
    int seen = 0;
    if (!__atomic_compare_exchange_n(&lock->word, &seen, holder(), false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        wait_for(lock);
}

void dfi_unlock(struct dfi_lock *lock)
{
    if ((__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & WAITED) != 0)
        dfi_kernel(__NR_futex, &lock->word, FUTEX_WAKE, 1);
}

/* Every lock of the mechanism, outermost first; behind them comes that of brief.c. */
static struct dfi_lock *const fork_locks[] = {&dfi_limit_lock, &dfi_rewrite_lock, &dfi_action_lock,
                                              &dfi_thread_lock, &dfi_alloc_lock};
#define FORK_LOCKS (sizeof fork_locks / sizeof *fork_locks)

void dfi_fork_prepare(void)
{
    dfi_files_fork_prepare();
    for (size_t i = 0; i < FORK_LOCKS; i++)
        dfi_lock(fork_locks[i]);
    dfi_brief_fork_prepare();
}

void dfi_fork_parent(long child)
{
    dfi_brief_fork_parent();
    for (size_t i = FORK_LOCKS; i-- > 0;)
        dfi_unlock(fork_locks[i]);
    dfi_files_fork_parent(child);
}

void dfi_fork_child(struct dfi_process *process)
{
    for (size_t i = 0; i < FORK_LOCKS; i++)
        fork_locks[i]->word = 0;
    process->holder = 0;
    dfi_brief_fork_child(process);
    dfi_files_fork_child(process);
}
