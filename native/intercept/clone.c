/*
 * clone.c - fork, vfork, clone, clone3, exit: new threads and processes enter life inside the core.
 *
 * The kernel call is made with the caller's own core stack and the child leaves that stack with its
 * first instruction (dfi_clone in entry.S): it goes to the stack of its own struct dfi_thread,
 * where a copy of the frame waits. So a child that shares our memory, with a stack of its own or
 * (vfork) without, never touches what the parent still needs, and needs no stack of the program at
 * all. Syscall User Dispatch is not inherited; the child arms itself before it sees the program.
 */
#include "intercept/brief.h"
#include "intercept/exec.h"
#include "intercept/gs.h"
#include "intercept/lock.h"
#include "intercept/mem.h"
#include "intercept/rewrite.h"
#include "intercept/run.h"
#include "intercept/shown.h"
#include "intercept/signal.h"
#include "intercept/text.h"
#include "intercept/thread.h"

#include <linux/sched.h>

#define PF_FORKNOEXEC 0x40 /* linux/sched.h of the kernel */

#define SHORTEST      50000   /* ns: between two looks at a child */
#define LONGEST       3000000 /* ns */

long dfi_clone(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
               struct dfi_thread *child, unsigned long e);

/* A birth under way: what the child is told by its struct dfi_thread. */
struct birth {
    unsigned long flags; /* CLONE_* */
    uintptr_t sp;        /* the program's stack for the child; 0: as the parent's */
    unsigned long mask;  /* the program's signal mask */
    bool waits;          /* waits_later() */
};

/*
 * Children that share our memory and go on beside us (CLONE_VM without CLONE_VFORK). What is kept
 * for them is freed when they are gone and waited for, however they ended; that is looked at when
 * the next one is made. All who share the memory share the list, so nobody holds a lock who may be
 * killed: what one takes off is at worst never freed. Each judges its own children, for another may
 * know them by other numbers.
 */
static struct dfi_thread *beside DFI_HOT;

bool dfi_clone_beside(void)
{
    return __atomic_load_n(&beside, __ATOMIC_RELAXED) != NULL;
}

static bool shares_process(unsigned long flags)
{
    return (flags & CLONE_THREAD) != 0;
}

/*
 * The kernel would hold up a parent that waits for a child with memory of its own in the middle of
 * the birth: with every lock of the core, which others want. So there it waits afterwards.
 */
static bool waits_later(unsigned long flags)
{
    const struct dfi_thread *self = dfi_self();
    return (flags & (CLONE_VFORK | CLONE_VM)) == CLONE_VFORK &&
           (self->process->threads > 1 || self->shares_memory || dfi_clone_beside());
}

/*
 * A child that is no thread has descriptors of its own here, whatever it asks for: what is known of
 * them is a process's, and the core's own in a table of both would take each other's numbers.
 */
static unsigned long kernel_flags(unsigned long flags, bool waits)
{
    if (!shares_process(flags))
        flags &= ~(unsigned long)CLONE_FILES;
    return waits ? flags & ~(unsigned long)CLONE_VFORK : flags;
}

/* First code of the child, on its own core stack, %gs set, every signal blocked. */
void dfi_thread_born(struct dfi_thread *self);
void dfi_thread_born(struct dfi_thread *self)
{
    self->tid = (int)dfi_unfiltered(__NR_gettid, 0, 0, 0, 0, 0);
    if (!self->shares_memory) {
        self->process->pid = (int)dfi_unfiltered(__NR_getpid, 0, 0, 0, 0, 0);
        self->process->threads = 1;
        self->trace_me = 0; /* it was our parent who has asked */
        dfi_fork_child(self->process);
        dfi_threads_forked(self);
        dfi_parked_forked(self);
        beside = NULL; /* their stacks are for others now */
    } else if (!self->shares_process) {
        self->process->pid = (int)dfi_unfiltered(__NR_getpid, 0, 0, 0, 0, 0);
        dfi_lock_born(self->process);
        dfi_limit_inherit(self->birth_limit);
        dfi_files_born(self->process);
    }
    dfi_gs_born(self);
    dfi_counts_take(self);
    if ((self->loses_handlers && dfi_signals_cleared(self->process) < 0) ||
        dfi_thread_arm() < 0) { /* it was possible before: this cannot go on unseen */
        dfi_note("a child cannot be interposed: it is ended");
        dfi_kernel(__NR_exit_group, 125);
    }
    dfi_signals_unblock(self->birth_mask);
}

/* The child's thread: its own for one that shares our memory, else the very same, copied. */
static struct dfi_thread *prepare(struct dfi_frame *frame, const struct birth *birth)
{
    struct dfi_thread *self = dfi_self(), *child = self;
    if ((birth->flags & CLONE_VM) != 0) {
        struct dfi_process *process = self->process;
        if (!shares_process(birth->flags)) {
            process = dfi_process_copy(process, (birth->flags & CLONE_SIGHAND) != 0);
        } else if (!dfi_brief_begin(process)) {
            return NULL;
        }
        child = process == NULL ? NULL : dfi_thread_new(process);
        if (child == NULL) {
            if (process != NULL && process != self->process)
                dfi_process_free(process);
            return NULL;
        }
        child->gs_apart = self->gs_apart;
        child->gs_base = self->gs_base;
        child->pending->believed = self->pending->believed;
        child->pending->along = self->pending->along;
        if ((birth->flags & CLONE_VFORK) != 0) /* the kernel takes it from all others */
            child->pending->stack = self->pending->stack;
        memcpy(child->frame, frame, sizeof *frame);
        if (process == self->process)
            dfi_files_thread(child);
    }
    if (birth->sp != 0)
        child->frame->sp = birth->sp;
    child->frame->result = 0;
    child->shares_memory = (birth->flags & CLONE_VM) != 0;
    child->shares_process = shares_process(birth->flags);
    child->loses_handlers = (birth->flags & CLONE_CLEAR_SIGHAND) != 0;
    child->birth_mask = birth->mask;
    child->birth_limit = child->shares_memory && !child->shares_process ? dfi_limit_soft() : 0;
    return child;
}

/* A child that shared our memory for a time, or that was never born. */
static void discard(struct dfi_thread *self, struct dfi_thread *child)
{
    if (child == self)
        return;
    dfi_exec_free(child);
    if (child->process != self->process)
        dfi_process_free(child->process);
    dfi_counts_give(child);
    dfi_thread_free(child);
}

static void keep_beside(struct dfi_thread *child)
{
    child->next_beside = __atomic_load_n(&beside, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&beside, &child->next_beside, child, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

static void free_gone(struct dfi_thread *self)
{
    struct dfi_thread *child = __atomic_exchange_n(&beside, NULL, __ATOMIC_ACQUIRE), *next;
    for (; child != NULL; child = next) {
        next = child->next_beside;
        if (child->parent == self->process && dfi_kernel(__NR_kill, child->pid, 0) == -ESRCH)
            discard(self, child);
        else
            keep_beside(child);
    }
}

/* A child that shared our memory until now, or goes on to. */
static void end_birth(struct dfi_thread *self, struct dfi_thread *child, unsigned long flags,
                      long result)
{
    if (result < 0 || (flags & CLONE_VFORK) != 0) {
        discard(self, child);
    } else if ((flags & CLONE_VM) != 0 && !shares_process(flags)) {
        child->parent = self->process;
        child->pid = (int)result;
        keep_beside(child);
    }
}

/* Behind the last parenthesis of a name that may have some itself. NULL: there is none. */
static const char *behind_name(const char *text)
{
    const char *behind = NULL;
    for (; *text != '\0'; text++) {
        if (dfi_text_begins(text, ") "))
            behind = text + 2;
    }
    return behind;
}

/* Its state and flags, proc_pid_stat(5): neither ended nor executed yet. */
static bool is_as_born(int pid)
{
    char text[512];
    long size = dfi_shown_read(pid, "/stat", text, sizeof text - 1, 0);
    text[size < 0 ? 0 : size] = '\0';
    const char *at = behind_name(text);
    if (at == NULL || *at == 'Z' || *at == 'X')
        return false;
    for (int spaces = 0; spaces < 6; spaces += *at++ == ' ') {
        if (*at == '\0')
            return false;
    }
    return (dfi_text_number(&at) & PF_FORKNOEXEC) != 0;
}

/* As the kernel lets a parent wait: for nothing else but what kills it. */
static void wait_for(int pid)
{
    long pause[2] = {0, SHORTEST};
    while (is_as_born(pid)) {
        dfi_kernel(__NR_nanosleep, pause, NULL);
        if (pause[1] < LONGEST)
            pause[1] *= 2;
    }
}

static void count_birth(const struct dfi_thread *child, unsigned long flags)
{
    dfi_count((flags & CLONE_THREAD) != 0 ? DFI_EVENT_THREADS : DFI_EVENT_FORKS);
    if (child->shares_process)
        __atomic_fetch_add(&child->process->threads, 1, __ATOMIC_RELAXED);
}

/* The kernel call of a birth: number and arguments, without the child's stack. */
struct kernel_call {
    long nr;
    unsigned long args[5];
};

/* With memory of its own the child is told by a copy of our own thread, where we stand as it is to
 * be: with whom we share ours is true again only now. */
static void end_fork(struct dfi_thread *self, bool shared_memory, bool shared_process, long result)
{
    dfi_fork_parent(result);
    self->shares_memory = shared_memory;
    self->shares_process = shared_process;
}

static long give_birth(struct dfi_frame *frame, struct birth *birth, const struct kernel_call *call)
{
    struct dfi_thread *self = dfi_self();
    bool forks = (birth->flags & CLONE_VM) == 0;
    bool shared_memory = self->shares_memory, shared_process = self->shares_process;
    birth->mask = dfi_signals_hold();
    if (self->deferred) /* no child may have it, too: once more, behind its handler */
        return DFI_PASS;
    uintptr_t sp = frame->sp;
    if (dfi_clone_beside())
        free_gone(self);
    if (!forks)
        dfi_rewrite_shared();
    if ((birth->flags & CLONE_NEWUSER) != 0)
        dfi_files_namespace();
    struct dfi_thread *child = prepare(frame, birth);
    if (child == NULL) {
        dfi_signals_unblock(birth->mask);
        return -ENOMEM;
    }
    count_birth(child, birth->flags);
    if (forks)
        dfi_fork_prepare();
    long result = dfi_clone(call->nr, call->args[0], call->args[1], call->args[2], call->args[3],
                            child, call->args[4]);
    frame->sp = sp;
    if (result < 0 && child->shares_process)
        __atomic_fetch_sub(&child->process->threads, 1, __ATOMIC_RELAXED);
    if (forks)
        end_fork(self, shared_memory, shared_process, result);
    end_birth(self, child, birth->flags, result);
    if (result > 0 && birth->waits)
        wait_for((int)result);
    dfi_signals_unblock(birth->mask);
    return result;
}

long dfi_do_clone(struct dfi_frame *frame)
{
    unsigned long flags = (unsigned)frame->args[0]; /* the kernel reads no more of it */
    struct birth birth = {.flags = flags & ~(unsigned long)CSIGNAL,
                          .sp = frame->args[1],
                          .waits = waits_later(flags)};
    struct kernel_call call = {
        __NR_clone,
        {kernel_flags(flags, birth.waits), 0, frame->args[2], frame->args[3], frame->args[4]}};
    return give_birth(frame, &birth, &call);
}

long dfi_do_fork(struct dfi_frame *frame)
{
    struct birth birth = {.flags = 0};
    struct kernel_call call = {__NR_clone, {SIGCHLD}};
    return give_birth(frame, &birth, &call);
}

long dfi_do_vfork(struct dfi_frame *frame)
{
    struct birth birth = {.flags = CLONE_VM | CLONE_VFORK};
    struct kernel_call call = {__NR_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}};
    return give_birth(frame, &birth, &call);
}

struct birth_args {
    struct clone_args known;
    unsigned long later[16]; /* fields of kernels to come: handed through */
};

/* What is behind those has to be 0, and is left out. */
static long take_args(struct birth_args *args, const void *program, size_t *size)
{
    if (*size < CLONE_ARGS_SIZE_VER0)
        return -EINVAL;
    if (*size <= sizeof *args)
        return dfi_copy_from(args, program, *size);
    long result = dfi_copy_struct(args, sizeof *args, program, *size);
    *size = sizeof *args;
    return result;
}

long dfi_do_clone3(struct dfi_frame *frame)
{
    struct birth_args args = {0};
    size_t size = frame->args[1];
    long taken = take_args(&args, (const void *)frame->args[0], &size);
    if (taken < 0)
        return taken;
    if ((args.known.stack == 0) != (args.known.stack_size == 0))
        return -EINVAL;
    struct birth birth = {.flags = args.known.flags,
                          .sp = args.known.stack + args.known.stack_size,
                          .waits = waits_later(args.known.flags)};
    args.known.flags = kernel_flags(args.known.flags, birth.waits);
    args.known.stack = 0;
    args.known.stack_size = 0;
    struct kernel_call call = {__NR_clone3, {(unsigned long)&args, size}};
    return give_birth(frame, &birth, &call);
}

/* ---- the end ---- */

long dfi_do_exit_group(struct dfi_frame *frame)
{
    (void)frame;
    dfi_files_end(dfi_process());
    dfi_counts_give(dfi_self());
    return DFI_PASS;
}

long dfi_do_exit(struct dfi_frame *frame)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_process *process = self->process;
    dfi_signals_hold();
    if (self->deferred) /* nobody would be left to handle it */
        return DFI_PASS;
    if (__atomic_sub_fetch(&process->threads, 1, __ATOMIC_RELAXED) == 0) {
        dfi_signals_block(); /* the program's memory is touched */
        dfi_files_end(process);
    }
    if (self->shares_memory && !self->shares_process) /* the parent frees what is left */
        dfi_kernel(__NR_exit, frame->args[0]);
    dfi_thread_end(self, (long)frame->args[0]);
}
