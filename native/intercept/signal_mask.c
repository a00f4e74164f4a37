/*
 * signal_mask.c - calls that wait with a signal mask: DFI_NEVER_BLOCKED is taken out of it.
 *
 * The call itself is made outside the core, so the mask that the kernel reads must outlive the
 * handler: it is put into one of a thread's few places for that, used in turn. The kernel reads a
 * mask once, when the call begins (or begins again after a handler that itself waited, sixteen
 * levels deep at most).
 */
#include "intercept/mem.h"
#include "intercept/signal_private.h"

bool dfi_has_mask(const struct dfi_frame *frame)
{
    switch (frame->saved_nr) {
    case __NR_rt_sigsuspend:
    case __NR_ppoll:
    case __NR_pselect6:
    case __NR_epoll_pwait:
    case __NR_epoll_pwait2:
    case __NR_io_pgetevents:
        return true;
    default:
        return false;
    }
}

/* What was parked and is let in by the mask ends the call. */
static bool ends(unsigned long mask)
{
    struct dfi_pending *pending = dfi_self()->pending;
    unsigned long program = dfi_signals_hold();
    pending->let = dfi_parked_release(~mask);
    dfi_signals_unblock(program);
    return pending->let != 0;
}

static long opened(unsigned long *pointer)
{
    struct dfi_pending *pending = dfi_self()->pending;
    unsigned long mask;
    pending->during = pending->believed;
    if (*pointer == 0 || dfi_copy_from(&mask, (const void *)*pointer, sizeof mask) < 0)
        return DFI_PASS; /* the kernel says what is wrong */
    pending->during = mask & DFI_NEVER_BLOCKED;
    if (dfi_is_parked(~mask) && ends(mask))
        return -EINTR;
    if (pending->during == 0)
        return DFI_PASS;
    unsigned long *place = &pending->scratch[pending->scratch_next++ % 16];
    *place = mask & ~DFI_NEVER_BLOCKED;
    *pointer = (unsigned long)place;
    return DFI_PASS;
}

long dfi_do_rt_sigsuspend(struct dfi_frame *frame)
{
    return opened(&frame->args[0]);
}

long dfi_wait_with(struct dfi_frame *frame, unsigned argument)
{
    return opened(&frame->args[argument]);
}

/* Takes DFI_NEVER_BLOCKED out of the mask of a pair (pointer to mask, size) in the program;
 * DFI_PASS. */
static long opened_pair(unsigned long *argument)
{
    struct dfi_pending *pending = dfi_self()->pending;
    unsigned long pair[2];
    if (*argument == 0 || dfi_copy_from(pair, (const void *)*argument, sizeof pair) < 0)
        pair[0] = 0;
    unsigned long before = pair[0];
    long result = opened(&pair[0]);
    if (pair[0] == before)
        return result;
    unsigned at = pending->scratch_next;
    if (at % 16 == 15) /* two neighbours are needed */
        at++;
    pending->scratch_next = at + 2;
    unsigned long *place = &pending->scratch[at % 16];
    place[0] = pair[0];
    place[1] = pair[1];
    *argument = (unsigned long)place;
    return DFI_PASS;
}

long dfi_wait_with_pair(struct dfi_frame *frame, unsigned argument)
{
    return opened_pair(&frame->args[argument]);
}

/* What the program itself lets in comes at once, and is remembered again: then it ends the call.
 * What only the mask lets in has to be delivered by a call with that mask, outside of the core; it
 * does not wait, should the signal be none after all. */
long dfi_wait_ended(struct dfi_frame *frame, unsigned long mask)
{
    static const unsigned long at_once[2];
    struct dfi_thread *self = dfi_self();
    const unsigned long args[6] = {0, 0, (unsigned long)at_once, mask, sizeof mask, 0};
    if (mask == 0)
        return -EINTR;
    dfi_signals_return();
    dfi_signals_unblock(self->pending->mask);
    if (self->deferred)
        return -EINTR;
    frame->nr = __NR_ppoll;
    memcpy(frame->args, args, sizeof args);
    return DFI_PASS;
}

long dfi_do_io_pgetevents(struct dfi_frame *frame)
{
    return opened_pair(&frame->args[5]);
}
