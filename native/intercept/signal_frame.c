/*
 * signal_frame.c - a signal's frame, moved to the stack on which the thread was interrupted.
 *
 * A call that traps comes on the alternate stack, if the thread has one: programs set one because
 * they have no room elsewhere. So SIGSYS always does. A handler of the program's own for it, which
 * has not asked for that stack, may find it too small.
 */
#include "intercept/mem.h"
#include "intercept/offsets.h"
#include "intercept/signal_private.h"

#define FPU_ALIGN 64

static bool lies_on(const stack_t *stack, uintptr_t at)
{
    return at - (uintptr_t)stack->ss_sp < stack->ss_size;
}

/* Its size, as the kernel has written it down (struct _fpstate). */
static size_t size_of(const struct _fpstate *state)
{
    const struct _fpx_sw_bytes *more = &state->sw_reserved;
    return more->magic1 == FP_XSTATE_MAGIC1 ? more->extended_size : sizeof *state;
}

/* From the return address on, below the context, to the end of the processor's state, above it. */
long dfi_frame_move(struct ucontext *context)
{
    struct sigcontext *at = (struct sigcontext *)&context->uc_mcontext;
    uintptr_t start = (uintptr_t)context - sizeof(uintptr_t), state = (uintptr_t)at->fpstate;
    if (!lies_on(&context->uc_stack, start) || lies_on(&context->uc_stack, at->rsp) ||
        state < start)
        return 0;
    size_t size = size_of((const struct _fpstate *)state);
    long moved = (long)(((at->rsp - RED_ZONE - size) & -(uintptr_t)FPU_ALIGN) - state);
    at->fpstate = (void *)(state + moved);
    memcpy((void *)(start + moved), (void *)start, state + size - start);
    return moved;
}
