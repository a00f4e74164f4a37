/*
 * process.c - descriptors that are ours, and the calls that would take away what the core stands
 * on.
 */
#include "intercept/gs.h"
#include "intercept/intercept.h"
#include "intercept/lock.h"
#include "intercept/sandbox.h"

#include <asm/prctl.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#ifndef ARCH_SHSTK_ENABLE
#define ARCH_SHSTK_ENABLE 0x5001 /* asm/prctl.h since 6.6 */
#endif

#define RLIMIT_NOFILE 7
#define UNRAISED      (~0ul) /* no limit of descriptors is as high */
#define HIGH_FD 1024 /* below: where select(2) and small limits reach, and fork copies little */

bool dfi_is_hidden(const struct dfi_process *process, int fd)
{
    for (int i = 0; i < process->hidden_count; i++) {
        if (process->hidden[i] == fd)
            return true;
    }
    return false;
}

/* Other threads may be looking: what they find is below the count, and not below hidden_from. */
static void hidden_set(struct dfi_process *process, int at, int fd)
{
    if (process->hidden_count == 0 || fd < process->hidden_from)
        __atomic_store_n(&process->hidden_from, fd, __ATOMIC_RELEASE);
    process->hidden[at] = fd;
    if (at == process->hidden_count)
        __atomic_store_n(&process->hidden_count, at + 1, __ATOMIC_RELEASE);
}

void dfi_hidden_add(struct dfi_process *process, int fd)
{
    hidden_set(process, process->hidden_count, fd);
}

struct dfi_lock dfi_limit_lock DFI_HOT;

static bool was_raised DFI_HOT;         /* at some time, by somebody who shares our memory */
static unsigned long raised_to DFI_HOT; /* under dfi_limit_lock */

static long set_limit(const unsigned long limit[2], unsigned long before[2])
{
    return dfi_kernel(__NR_prlimit64, 0, RLIMIT_NOFILE, limit, before);
}

static long get_limit(unsigned long limit[2])
{
    return set_limit(0, limit);
}

/* What it was when it is raised: another process may have set it since it was asked for. */
unsigned long dfi_limit_raise(void)
{
    unsigned long limit[2], raised[2];
    dfi_lock(&dfi_limit_lock);
    __atomic_store_n(&was_raised, true, __ATOMIC_RELAXED);
    raised_to = UNRAISED;
    if (get_limit(limit) < 0)
        return 0;
    raised[0] = raised[1] = limit[1];
    if (set_limit(raised, limit) == 0)
        raised_to = raised[0];
    return limit[0];
}

/* What is replaced ought to be our own: else another process has set it, and it is to stay. */
static void put_back(unsigned long limit[2], unsigned long soft)
{
    unsigned long own = limit[0], before[2];
    for (limit[0] = soft; set_limit(limit, before) == 0 && before[0] != own;) {
        own = limit[0];
        limit[0] = before[0];
        limit[1] = before[1];
    }
}

void dfi_limit_restore(unsigned long soft)
{
    unsigned long limit[2];
    if (raised_to != UNRAISED && get_limit(limit) == 0 && limit[0] == raised_to)
        put_back(limit, soft);
    dfi_unlock(&dfi_limit_lock);
}

/* A process of one thread has not raised it just now. Nor may a child that shares our memory hold
 * the lock where it becomes another program: it would live on, and others wait. */
bool dfi_limit_hold(void)
{
    const struct dfi_process *process = dfi_process();
    if (process->threads <= 1 || process->holder != 0)
        return false;
    dfi_lock(&dfi_limit_lock);
    return true;
}

void dfi_limit_release(bool held)
{
    if (held)
        dfi_unlock(&dfi_limit_lock);
}

unsigned long dfi_limit_soft(void)
{
    unsigned long limit[2] = {0, 0};
    if (dfi_process()->threads <= 1)
        return 0;
    bool held = dfi_limit_hold();
    dfi_kernel(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, limit);
    dfi_limit_release(held);
    return limit[0];
}

void dfi_limit_inherit(unsigned long soft)
{
    unsigned long limit[2];
    if (soft == 0 || !__atomic_load_n(&was_raised, __ATOMIC_RELAXED) ||
        dfi_kernel(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, limit) < 0)
        return;
    limit[0] = soft;
    dfi_kernel(__NR_prlimit64, 0, RLIMIT_NOFILE, limit, 0);
}

/* At most 2: there is none behind the standard ones, which are the program's. */
static int highest_free(void)
{
    unsigned long limit[2] = {HIGH_FD, HIGH_FD};
    dfi_kernel(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, limit);
    int fd = (int)(limit[0] < HIGH_FD ? limit[0] : HIGH_FD) - 1;
    while (fd > 2 && dfi_kernel(__NR_fcntl, fd, F_GETFD) >= 0)
        fd--;
    return fd;
}

int dfi_move_high(int fd)
{
    long flags = dfi_kernel(__NR_fcntl, fd, F_GETFD);
    if (flags < 0)
        return (int)flags;
    int high = highest_free();
    if (high <= 2)
        return fd;
    long moved = dfi_kernel(__NR_dup3, fd, high, flags != 0 ? O_CLOEXEC : 0);
    if (moved < 0) /* a filter may refuse it: hidden it is there, too */
        return fd;
    dfi_kernel(__NR_close, fd);
    return (int)moved;
}

int dfi_hide_fd(struct dfi_process *process, int fd)
{
    int at = 0;
    while (at < process->hidden_count && process->hidden[at] != fd)
        at++;
    if (at == DFI_HIDDEN_MAX)
        return -EMFILE;
    int moved = dfi_move_high(fd);
    if (moved < 0)
        return moved;
    hidden_set(process, at, moved);
    return moved;
}

void dfi_unhide_fd(struct dfi_process *process, int fd)
{
    for (int i = 0; i < process->hidden_count; i++) {
        if (process->hidden[i] == fd)
            process->hidden[i] = process->hidden[--process->hidden_count];
    }
}

/* The base of %gs is where a thread finds itself; the program's own is kept beside: gs.h. A shadow
 * stack knows the core's returns, and a child leaves the core by none: it is as on a processor that
 * has no such stacks. */
long dfi_do_arch_prctl(struct dfi_frame *frame)
{
    const struct dfi_thread *self = dfi_self();
    switch (frame->args[0]) {
    case ARCH_SET_GS:
        return dfi_gs_set(frame->args[1]);
    case ARCH_GET_GS:
        return dfi_copy_to((void *)frame->args[1], &self->gs_base, sizeof self->gs_base);
    case ARCH_SHSTK_ENABLE:
        return -EOPNOTSUPP;
    default:
        return DFI_PASS;
    }
}

static long is_inside(const struct dfi_process *process, unsigned long of)
{
    char shadow[PATH_MAX];
    if (of == 0)
        return 1;
    long length = dfi_copy_path(shadow, (const char *)of, sizeof shadow);
    return length < 0 ? length : dfi_files_belong(process, shadow);
}

/* PR_SET_SYSCALL_USER_DISPATCH: as a kernel without it answers. */
long dfi_do_prctl(struct dfi_frame *frame)
{
    switch (frame->args[0]) {
    case DFI_PR_INSIDE:
        return is_inside(dfi_self()->process, frame->args[1]);
    case PR_SET_SYSCALL_USER_DISPATCH:
        return -EINVAL;
    case PR_SET_SECCOMP:
        return dfi_sandbox_begin(frame, frame->args[1] == SECCOMP_MODE_FILTER);
    default:
        return DFI_PASS;
    }
}
