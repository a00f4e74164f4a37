/*
 * tracer.c - ptrace(2), wait4(2) and waitid(2) of a debugger inside: its tracees look as they do
 * outside.
 *
 * Two stops are none of the debugger's business, and are gone over before it hears of them:
 *
 * The stop of execve(2), where the loader begins. A debugger looks for the program there, by
 * /proc/PID/auxv. The tracee goes on until the loader has put the program into its place, stops
 * itself (loader.S), and that is told as the stop of execve.
 *
 * The SIGSYS of a call that traps. It is what the call is, and no signal of the program.
 *
 * Not so for a tracer that has seized its tracees or resumes them from call to call, strace(1): it
 * wants each stop, in its order. And not for a tracee that was resumed for one step.
 */
#include "intercept/tracer.h"

#include "intercept/brief.h"
#include "intercept/filter.h"
#include "intercept/mem.h"
#include "intercept/shown.h"
#include "intercept/signal.h"
#include "intercept/text.h"

#include <asm/siginfo.h>
#include <asm/signal.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/ptrace.h>
#include <linux/wait.h>
#include <sys/user.h>

#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2 /* si_code: Syscall User Dispatch triggered */
#endif

#define TRACEES  16 /* that may be under way at the same time: stepping, or between two stops */

#define COMPARED 0x8d5 /* of %eflags: what loader.S has compared by */
#define STOPPED  0x7f
#define EXECUTED (PTRACE_EVENT_EXEC << 16 | SIGTRAP << 8 | STOPPED)

/* ptrace(2) is a thread's own affair: nobody but its tracer looks for a tracee, so that a place
 * needs no lock once it is taken. */
static struct tracee {
    int tid; /* 0: free */
    bool steps;
    int told;       /* the status of an execve that the tracer has not been told; 0: none */
    siginfo_t info; /* and what is known of its stop */
} tracees[TRACEES];

static bool wants_all; /* the tracer sees each call */

static struct tracee *find(int tid)
{
    for (int i = 0; i < TRACEES; i++) {
        if (__atomic_load_n(&tracees[i].tid, __ATOMIC_RELAXED) == tid)
            return &tracees[i];
    }
    return NULL;
}

/* NULL: there are too many. */
static struct tracee *take(int tid)
{
    struct tracee *tracee = find(tid);
    for (int i = 0; i < TRACEES && tracee == NULL; i++) {
        int none = 0;
        if (__atomic_compare_exchange_n(&tracees[i].tid, &none, tid, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            tracee = &tracees[i];
    }
    return tracee;
}

static void forget(int tid)
{
    struct tracee *tracee = find(tid);
    if (tracee == NULL)
        return;
    tracee->steps = false;
    tracee->told = 0;
    __atomic_store_n(&tracee->tid, 0, __ATOMIC_RELEASE);
}

static void steps(int tid)
{
    struct tracee *tracee = take(tid);
    if (tracee == NULL)
        wants_all = true;
    else
        tracee->steps = true;
}

/* By somebody who has asked for it, or whom it has asked: proc(5), "TracerPid". */
static bool is_traced(void)
{
    char text[512];
    long fd = dfi_brief(__NR_open, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
    long size = fd < 0 ? fd : dfi_kernel(__NR_read, fd, text, sizeof text - 1);
    dfi_brief_close(fd);
    text[size < 0 ? 0 : size] = '\0';
    for (const char *at = text; *at != '\0'; at++) {
        if (dfi_text_begins(at, "\nTracerPid:\t"))
            return at[12] != '0';
    }
    return false;
}

/*
 * A child that says it is traced: not before somebody can see it, or execve. A call of its that
 * traps would stop it, and a parent that waits for the execve (vfork) would wait for ever.
 */
static long trace_me(struct dfi_thread *self)
{
    if (self->trace_me == DFI_TRACE_ASKED || is_traced())
        return -EPERM;
    self->trace_me = DFI_TRACE_ASKED;
    return 0;
}

void dfi_tracer_begin(struct dfi_thread *self)
{
    if (self->trace_me == DFI_TRACE_ASKED && dfi_kernel(__NR_ptrace, PTRACE_TRACEME, 0, 0, 0) == 0)
        self->trace_me = DFI_TRACE_BEGUN;
}

void dfi_tracer_execute(struct dfi_thread *self, unsigned long mask)
{
    const unsigned long trap = DFI_BIT(SIGTRAP);
    dfi_tracer_begin(self);
    if (self->trace_me == DFI_TRACE_BEGUN && (mask & trap) == 0)
        dfi_kernel(__NR_rt_sigprocmask, SIG_UNBLOCK, &trap, 0, sizeof trap);
}

/* A signal may be one that the child stops itself with, for its parent to begin. */
long dfi_do_kill(struct dfi_frame *frame)
{
    (void)frame;
    dfi_tracer_begin(dfi_self());
    return DFI_PASS;
}

long dfi_do_ptrace(struct dfi_frame *frame)
{
    int tid = (int)frame->args[1];
    switch (frame->args[0]) {
    case PTRACE_TRACEME:
        return trace_me(dfi_self());
    case PTRACE_SEIZE:
    case PTRACE_SYSCALL:
        wants_all = true;
        break;
    case PTRACE_SINGLESTEP:
    case PTRACE_SINGLEBLOCK:
        steps(tid);
        break;
    case PTRACE_CONT:
    case PTRACE_DETACH:
    case PTRACE_KILL:
        forget(tid);
        break;
    default:
        break;
    }
    return DFI_PASS;
}

/* ---- stops ---- */

static bool ask(long request, int tid, void *data)
{
    return dfi_kernel(__NR_ptrace, request, tid, 0, data) == 0;
}

static bool resume(int tid, long signal)
{
    return dfi_kernel(__NR_ptrace, PTRACE_CONT, tid, 0, signal) == 0;
}

/* A call that has trapped. */
static bool pass_trap(int tid)
{
    const struct tracee *tracee = find(tid);
    siginfo_t info;
    if (tracee != NULL && tracee->steps)
        return false;
    if (!ask(PTRACE_GETSIGINFO, tid, &info))
        return false;
    bool ours = info.si_code == SYS_USER_DISPATCH ||
                (info.si_code == SYS_SECCOMP && info.si_errno == DFI_FILTER_DATA);
    return ours && resume(tid, SIGSYS);
}

/* The loader's first instruction: the execve is told when there is something to see. */
static bool pass_execve(int tid, int status, struct user_regs_struct *at)
{
    bool executed = at->orig_rax == __NR_execve || at->orig_rax == __NR_execveat;
    if (!executed || at->rip != dfi_shown_auxv(tid, AT_ENTRY) || !dfi_shown_is_loaded(tid))
        return false;
    struct tracee *tracee = take(tid);
    if (tracee == NULL)
        return false;
    tracee->steps = false;
    tracee->told = status;
    at->rdx = DFI_TRACED;
    if (ask(PTRACE_GETSIGINFO, tid, &tracee->info) && ask(PTRACE_SETREGS, tid, at) &&
        resume(tid, 0))
        return true;
    forget(tid);
    return false;
}

/* The loader's last but one: as if the kernel had put the program into its place. */
static int tell_execve(int tid, struct tracee *tracee, struct user_regs_struct *at)
{
    int status = tracee->told;
    at->rip = at->r11;
    at->orig_rax = __NR_execve;
    at->rax = at->rdx = at->r11 = 0;
    at->eflags &= ~(unsigned long)COMPARED;
    ask(PTRACE_SETREGS, tid, at);
    ask(PTRACE_SETSIGINFO, tid, &tracee->info);
    forget(tid);
    return status;
}

static bool pass_stop(int tid, int *status)
{
    struct user_regs_struct at;
    struct tracee *tracee = find(tid);
    if (*status == (SIGSYS << 8 | STOPPED))
        return pass_trap(tid);
    if ((*status != (SIGTRAP << 8 | STOPPED) && *status != EXECUTED) ||
        !ask(PTRACE_GETREGS, tid, &at))
        return false;
    if (tracee != NULL && tracee->told != 0 && at.rax == DFI_TRACED && at.rip != at.r11) {
        *status = tell_execve(tid, tracee, &at);
        return false;
    }
    return pass_execve(tid, *status, &at);
}

/* WIFSIGNALED() */
static bool is_killed(int status)
{
    return (status & 0x7f) != 0 && (status & 0x7f) != STOPPED;
}

/* Whether who waits need not hear of it. */
static bool passes(int tid, int *status)
{
    if ((*status & 0xff) == STOPPED)
        return !wants_all && pass_stop(tid, status);
    forget(tid);
    if (is_killed(*status))
        dfi_files_child_killed(tid);
    return false;
}

/* What waitid(2) says in two fields; 0: of another end than by a signal, or none. */
static int status_of(const siginfo_t *info)
{
    switch (info->si_code) {
    case CLD_TRAPPED:
    case CLD_STOPPED:
        return info->si_status << 8 | STOPPED;
    case CLD_KILLED:
    case CLD_DUMPED:
        return info->si_status;
    default:
        return 0;
    }
}

/* The same for waitid(2). */
static bool passes_info(siginfo_t *info)
{
    int status = status_of(info);
    if (passes(info->si_pid, &status))
        return true;
    if ((status & 0xff) == STOPPED)
        info->si_status = status >> 8;
    return false;
}

/* Bytes that the kernel writes. */
#define TOLD_SIZE (offsetof(siginfo_t, si_status) + sizeof(int))

/* The kernel fills it in whatever the result is. */
long dfi_do_waitid(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    siginfo_t info;
    long result;
    do {
        info = (siginfo_t){.si_signo = 0};
        result = dfi_kernel_wait6(__NR_waitid, a[0], a[1], (unsigned long)&info, a[3], a[4], 0);
    } while (result == 0 && info.si_pid != 0 && passes_info(&info));
    if (a[2] != 0 && dfi_copy_to((void *)a[2], &info, TOLD_SIZE) < 0)
        return -EFAULT;
    return result;
}

/* Whoever waits may turn out to trace: it is the child that asks for it. */
long dfi_do_wait4(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    int status;
    long tid;
    do {
        status = 0;
        tid = dfi_kernel_wait(__NR_wait4, a[0], &status, a[2], a[3]);
    } while (tid > 0 && passes((int)tid, &status));
    if (tid > 0 && a[1] != 0 && dfi_copy_to((void *)a[1], &status, sizeof status) < 0)
        return -EFAULT;
    return tid;
}
