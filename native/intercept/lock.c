/*
 * lock.c - the core's lock: one word, a futex when it is contended; and what fork does with locks.
 *
 * A process ends as a whole, and its locks with it. Only a child that shares our memory, by
 * vfork(2) or posix_spawn(3), may be killed while it holds one that others wait for. So its locks
 * say whose they are.
 */
#include "intercept/lock.h"

#include "intercept/brief.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#define WAITED     (1 << 30)
#define IN_CHILD   (1 << 29) /* of a child that shares our memory: with its process id */
#define HELD       1         /* of all others: whoever waits for it ends with it */
#define PIDS       (IN_CHILD - 1)

#define PATIENCE   10000000 /* ns: until it is asked whether such a child is still there */

#define P_PID      1
#define WNOHANG    0x00000001
#define WEXITED    0x00000004
#define WNOWAIT    0x01000000
#define WALL       0x40000000

static bool has_children DFI_HOT; /* that share our memory; or had some */

void dfi_lock_share(void)
{
    has_children = true;
}

int dfi_lock_child(int pid)
{
    return IN_CHILD | pid;
}

static int holder(void)
{
    int child = has_children ? dfi_process()->holder : 0;
    return child != 0 ? child : HELD;
}

/* One that has ended may still wait for its parent to hear of it. */
static bool is_gone(int pid)
{
    struct {
        int signal, error, code, pad, pid, rest[32];
    } ended = {0};
    if (dfi_kernel(__NR_waitid, P_PID, pid, &ended, WEXITED | WNOHANG | WNOWAIT | WALL, 0) == 0)
        return ended.pid == pid;
    return dfi_kernel(__NR_kill, pid, 0) == -ESRCH;
}

/* The lock of a child that was killed while it had it is free: what such a lock protects is whole
 * at each store. */
static bool take_over(struct dfi_lock *lock, int seen)
{
    return is_gone(seen & PIDS) &&
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
        bool child = (wanted & IN_CHILD) != 0;
        long result =
            dfi_kernel(__NR_futex, &lock->word, FUTEX_WAIT, wanted, child ? patience : NULL);
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

void dfi_fork_parent(bool born)
{
    dfi_brief_fork_parent();
    for (size_t i = FORK_LOCKS; i-- > 0;)
        dfi_unlock(fork_locks[i]);
    dfi_files_fork_parent(born);
}

void dfi_fork_child(struct dfi_process *process)
{
    for (size_t i = 0; i < FORK_LOCKS; i++)
        fork_locks[i]->word = 0;
    has_children = false;
    process->holder = 0;
    dfi_brief_fork_child(process);
    dfi_files_fork_child(process);
}
