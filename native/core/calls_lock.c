/*
 * calls_lock.c - flock and poll: the calls that may wait for somebody else.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/use.h"
#include "core/wake.h"

/* ---- flock --------------------------------------------------------------------------------- */

int df_call_flock(int fd, int operation)
{
    int kind = operation & ~LOCK_NB;
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    if (kind != LOCK_SH && kind != LOCK_EX && kind != LOCK_UN)
        return (int)df_use_end(&use, -EINVAL);
    ret = use.fs->ops->flock(use.fs, &use.call, use.file, operation, df_lock_file_owner(use.file));
    ret = df_call_result(&use.call, ret);
    if (ret == DF_NOT_OURS)
        ret = df_lock_flock(&use.call, use.file, operation);
    return (int)df_use_end(&use, ret);
}

/* ---- poll ---------------------------------------------------------------------------------- */

/* One sleep of one poll. Each host that may wake it holds a reference: one may come late. */
struct sleep {
    struct df_wake wake; /* the first member */
    _Atomic uint32_t refs;
    _Atomic uint32_t woken; /* futex; also set when the sleep is over without a wake */
};

static void drop_sleep(struct df_wake *wake)
{
    struct sleep *sleep = (struct sleep *)wake;

    if (atomic_fetch_sub(&sleep->refs, 1) == 1)
        free(sleep);
}

static void wake_up(struct df_wake *wake)
{
    struct sleep *sleep = (struct sleep *)wake;

    atomic_store(&sleep->woken, 1);
    syscall(SYS_futex, &sleep->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    drop_sleep(wake);
}

static bool is_awake(const struct df_wake *wake)
{
    return atomic_load(&((const struct sleep *)wake)->woken);
}

static const struct df_wake_kind kind_of_sleep = {wake_up, drop_sleep, is_awake};

void df_wake(struct df_wake *wake)
{
    wake->kind->wake(wake);
}

void df_wake_drop(struct df_wake *wake)
{
    if (wake)
        wake->kind->drop(wake);
}

bool df_wake_drop_over(struct df_wake *wake)
{
    bool over = wake->kind->is_over(wake);

    if (over)
        df_wake_drop(wake);
    return over;
}

/* Each host takes over a reference on the sleep. */
static short poll_one(struct pollfd *p, struct sleep *sleep)
{
    struct df_use use;
    ssize_t ready = df_use_begin(&use, p->fd);

    if (ready < 0)
        return POLLNVAL;
    if (sleep)
        atomic_fetch_add(&sleep->refs, 1);
    ready = use.fs->ops->poll(use.fs, &use.call, use.file, p->events | POLLERR | POLLHUP,
                              sleep ? &sleep->wake : NULL);
    ready = df_call_result(&use.call, ready);
    df_use_end(&use, 0);
    return ready < 0 ? POLLERR : (short)(ready & (p->events | POLLERR | POLLHUP));
}

/* Returns the number of descriptors that are ready. */
static int poll_all(struct pollfd *fds, nfds_t count, struct sleep *sleep)
{
    int ready = 0;

    for (nfds_t i = 0; i < count; i++) {
        if (fds[i].fd < 0) {
            fds[i].revents = 0;
            continue;
        }
        fds[i].revents = poll_one(&fds[i], ready ? NULL : sleep);
        ready += fds[i].revents != 0;
    }
    return ready;
}

/* ---- time ---- */

/* Sleeps until woken or `until` (ns; negative: for ever). 0 or -EINTR. The wait always has a
 * limit: without one the kernel would go on waiting after a signal, which poll(2) never does. */
static int sleep_until(struct df_thread *thread, struct sleep *sleep, int64_t until)
{
    int saved = errno, ret = 0;

    df_gate_sleep(thread);
    while (ret == 0 && !atomic_load(&sleep->woken)) {
        int64_t left = until < 0 ? INT64_C(3600000000000) : until - df_clock();
        struct timespec limit = {left / 1000000000, left % 1000000000};

        if (left <= 0)
            break;
        if (syscall(SYS_futex, &sleep->woken, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0) < 0 &&
            errno == EINTR)
            ret = -EINTR;
    }
    errno = saved;
    df_gate_awake(thread);
    return ret;
}

/* Asks, registers, sleeps, once. Returns what is ready, 0 after a sleep, or -errno. */
static int poll_round(struct df_thread *thread, struct pollfd *fds, nfds_t count, int64_t until)
{
    struct sleep *sleep = calloc(1, sizeof(*sleep));
    int ret;

    if (!sleep)
        return -ENOMEM;
    sleep->wake.kind = &kind_of_sleep;
    atomic_init(&sleep->refs, 1);
    ret = poll_all(fds, count, sleep);
    if (ret == 0)
        ret = sleep_until(thread, sleep, until);
    atomic_store(&sleep->woken, 1);
    drop_sleep(&sleep->wake);
    return ret;
}

static int poll_ours(struct pollfd *fds, nfds_t count, int timeout)
{
    int64_t until = timeout < 0 ? -1 : df_clock() + (int64_t)timeout * 1000000;
    struct df_thread *thread;
    int ret = 0;

    thread = df_gate_enter(&ret);
    if (!thread)
        return ret;
    ret = poll_all(fds, count, NULL);
    while (ret == 0 && (until < 0 || df_clock() < until)) {
        ret = poll_round(thread, fds, count, until);
        if (ret == 0)
            ret = poll_all(fds, count, NULL);
    }
    df_gate_leave(thread);
    return ret;
}

int df_call_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    bool ours = false, theirs = false;

    for (nfds_t i = 0; i < count; i++) {
        ours = ours || df_fd_ours(fds[i].fd);
        theirs = theirs || (fds[i].fd >= 0 && !df_fd_ours(fds[i].fd));
    }
    if (!ours)
        return DF_NOT_OURS;
    return theirs ? df_gate_refuse(DF_NR_poll, -EINVAL) : poll_ours(fds, count, timeout);
}
