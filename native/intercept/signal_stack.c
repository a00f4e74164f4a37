/*
 * signal_stack.c - sigaltstack(2), for threads that have set the same alternate stack.
 *
 * On Linux that does no harm as long as only one of them handles signals at a time. Here each call
 * that traps is a signal, and comes on that stack: the one that a thread runs on may have no room
 * for it (Go). So of threads whose stacks overlap one at most has its own in the kernel. From the
 * others it is withheld: they are told that it is there, and their handlers run on the stack on
 * which they were interrupted.
 *
 * So is a stack on which no signal's frame has room, which does no harm on Linux as long as no
 * signal comes: MINSIGSTKSZ, as it was, is less than the frame of a processor with AVX-512.
 *
 * A thread may unmap the stack that it runs on, and end (musl's detached threads do): the calls of
 * its last instructions then trap onto a part of the core's stack.
 */
#include "intercept/lock.h"
#include "intercept/offsets.h"
#include "intercept/shown.h"
#include "intercept/signal_private.h"
#include "intercept/thread.h"

#include <linux/signal.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* linux/auxvec.h since 5.14 */
#endif

#define LARGE     16384 /* bytes: no frame is larger */
#define TRAP_ROOM 32768 /* bytes: for a frame with all of the processor's state */

static bool overlap(const stack_t *one, const stack_t *other)
{
    return (uintptr_t)one->ss_sp < (uintptr_t)other->ss_sp + other->ss_size &&
           (uintptr_t)other->ss_sp < (uintptr_t)one->ss_sp + one->ss_size;
}

static bool has_overlapping(struct dfi_thread *thread, unsigned long with)
{
    const struct dfi_stack *stack = &thread->pending->stack;
    const struct dfi_thread *self = (const struct dfi_thread *)with;
    return thread != self && !stack->withheld && overlap(&stack->set, &self->pending->stack.set);
}

/* What the kernel says that a frame takes; what it does not say is no reason to withhold. */
static bool has_no_room(const struct dfi_thread *self, const stack_t *set)
{
    static unsigned long least DFI_HOT;
    if (set->ss_size == 0 || set->ss_size >= LARGE)
        return false;
    if (least == 0)
        least = dfi_shown_auxv(self->process->pid, AT_MINSIGSTKSZ);
    return set->ss_size < least;
}

static void note(struct dfi_thread *self, const struct dfi_stack *stack)
{
    dfi_lock(&dfi_thread_lock);
    self->pending->stack = *stack;
    dfi_unlock(&dfi_thread_lock);
}

/* What the program would be told of it with its stack pointer there. */
static stack_t shown(const struct dfi_stack *stack, uintptr_t sp)
{
    stack_t told;
    if (stack->withheld)
        return stack->set;
    dfi_kernel(__NR_sigaltstack, NULL, &told); /* which changes it, too, at rt_sigreturn(2) */
    if (told.ss_flags == 0 && sp > (uintptr_t)told.ss_sp &&
        sp - (uintptr_t)told.ss_sp <= told.ss_size)
        told.ss_flags = SS_ONSTACK;
    return told;
}

/* First it is there for the others to see, then they are looked at: of two at once one may lose
 * its own, but never have both the same. */
static long set_stack(struct dfi_thread *self, const stack_t *set)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    const struct dfi_stack before = self->pending->stack;
    struct dfi_stack stack = {.set = (set->ss_flags & SS_DISABLE) != 0 ? none : *set};
    stack.set.ss_flags &= ~SS_ONSTACK; /* it means nothing there */
    note(self, &stack);
    stack.withheld = has_no_room(self, &stack.set) ||
                     dfi_threads_visit(self->process, has_overlapping, (unsigned long)self) != NULL;
    long result = dfi_kernel(__NR_sigaltstack, set, NULL);
    if (result == 0 && stack.withheld)
        dfi_kernel(__NR_sigaltstack, &none, NULL);
    note(self, result == 0 ? &stack : &before);
    return result;
}

long dfi_do_sigaltstack(struct dfi_frame *frame)
{
    struct dfi_thread *self = dfi_self();
    const void *new = (const void *)frame->args[0];
    void *old = (void *)frame->args[1];
    stack_t set, was = shown(&self->pending->stack, frame->sp);
    long result = 0;
    if (new != NULL && dfi_copy_from(&set, new, sizeof set) < 0)
        return -EFAULT;
    if (new != NULL && was.ss_flags == SS_ONSTACK)
        return -EPERM;
    if (new != NULL) {
        unsigned long mask = dfi_signals_hold(); /* none may come onto what is to be withheld */
        result = set_stack(self, &set);
        dfi_signals_unblock(mask);
    }
    if (result == 0 && old != NULL && dfi_copy_to(old, &was, sizeof was) < 0)
        return -EFAULT;
    return result;
}

/* ---- the stack that the thread runs on ---- */

bool dfi_stack_is_in(const struct dfi_frame *frame, uintptr_t start, uintptr_t end)
{
    return start < frame->sp && frame->sp - P_ROOM < end;
}

static bool has_other(const struct dfi_stack *stack, uintptr_t start, uintptr_t end)
{
    const stack_t range = {.ss_sp = (void *)start, .ss_size = end - start};
    return !stack->withheld && stack->set.ss_size > 0 && !overlap(&stack->set, &range);
}

/* The program is told of the stack that it has set, or of none. */
void dfi_stack_gone(uintptr_t start, uintptr_t end)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_stack stack = self->pending->stack;
    const stack_t spare = {.ss_sp = (void *)dfi_thread_bottom(self), .ss_size = TRAP_ROOM};
    if (has_other(&stack, start, end))
        return;
    if (stack.set.ss_size == 0)
        stack.set.ss_flags = SS_DISABLE;
    stack.withheld = true;
    note(self, &stack);
    dfi_kernel(__NR_sigaltstack, &spare, NULL);
}
