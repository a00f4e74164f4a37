/*
 * parked.c - SIGSYS and SIGSEGV that were sent while the program has them blocked.
 *
 * The kernel delivers them, for it never sees them blocked. So what it would have kept pending is
 * parked here, one of each for a thread and for the process, until a thread lets the signal in or
 * waits for it: then it is the kernel's again, or the result of the call. One for the process is
 * sent on to a thread that does not block it, if there is any, for the kernel chose without
 * knowing.
 *
 * No signal is lost between two threads: who lets one in says so first and looks for parked ones
 * then; who parks one looks for such threads afterwards.
 */
#include "intercept/lock.h"
#include "intercept/mem.h"
#include "intercept/signal_private.h"
#include "intercept/thread.h"

#ifndef SI_TKILL
#define SI_TKILL (-6)
#endif

/* ---- what is parked: under dfi_action_lock ---- */

static siginfo_t *place(struct dfi_parked *parked, int signal)
{
    return &parked->info[signal == SIGSYS];
}

static void put(struct dfi_parked *parked, int signal, const siginfo_t *info)
{
    if ((parked->signals & DFI_BIT(signal)) != 0)
        return; /* of two that wait the kernel keeps the first */
    memcpy(place(parked, signal), info, sizeof *info);
    __atomic_fetch_or(&parked->signals, DFI_BIT(signal), __ATOMIC_SEQ_CST);
}

static int take(struct dfi_parked *parked, unsigned long set, siginfo_t *info)
{
    unsigned long found = parked->signals & set;
    if (found == 0)
        return 0;
    int signal = __builtin_ctzl(found) + 1;
    memcpy(info, place(parked, signal), sizeof *info);
    __atomic_fetch_and(&parked->signals, ~DFI_BIT(signal), __ATOMIC_SEQ_CST);
    return signal;
}

static bool drop(struct dfi_thread *thread, unsigned long set)
{
    siginfo_t dropped;
    take(&thread->pending->parked, set, &dropped);
    return false;
}

void dfi_parked_drop(struct dfi_process *process, int signal)
{
    siginfo_t dropped;
    take(process->parked, DFI_BIT(signal), &dropped);
    dfi_threads_visit(process, drop, DFI_BIT(signal));
}

void dfi_parked_forked(struct dfi_thread *self)
{
    self->pending->parked.signals = 0;
    self->process->parked->signals = 0;
}

/* ---- let in ---- */

static unsigned long all_of(const struct dfi_thread *self)
{
    return __atomic_load_n(&self->pending->parked.signals, __ATOMIC_SEQ_CST) |
           __atomic_load_n(&self->process->parked->signals, __ATOMIC_SEQ_CST);
}

bool dfi_is_parked(unsigned long set)
{
    return (all_of(dfi_self()) & set) != 0;
}

/* One that is in the set: 0 or its number. */
static int take_any(unsigned long set, siginfo_t *info)
{
    struct dfi_thread *self = dfi_self();
    if (!dfi_is_parked(set))
        return 0;
    dfi_lock(&dfi_action_lock);
    int signal = take(&self->pending->parked, set, info);
    if (signal == 0)
        signal = take(self->process->parked, set, info);
    dfi_unlock(&dfi_action_lock);
    return signal;
}

unsigned long dfi_parked_release(unsigned long set)
{
    siginfo_t info;
    unsigned long released = 0;
    for (int signal; (signal = take_any(set, &info)) != 0; released |= DFI_BIT(signal))
        dfi_signal_queue(signal, &info);
    return released;
}

/* ---- park ---- */

static bool takes(struct dfi_thread *thread, unsigned long bit)
{
    const struct dfi_pending *pending = thread->pending;
    unsigned long blocked = __atomic_load_n(&pending->believed, __ATOMIC_SEQ_CST);
    unsigned long awaited = __atomic_load_n(&pending->awaited, __ATOMIC_SEQ_CST);
    return thread != dfi_self() && ((blocked & ~awaited) & bit) == 0;
}

/* To another thread, for which the kernel takes no info but what looks like sigqueue(3)'s. */
static bool send_on(const struct dfi_process *process, int signal, const siginfo_t *info)
{
    siginfo_t sent = *info;
    const struct dfi_thread *other = dfi_threads_visit(process, takes, DFI_BIT(signal));
    if (other == NULL)
        return false;
    sent.si_code = SI_QUEUE;
    return dfi_kernel(__NR_rt_tgsigqueueinfo, process->pid, other->tid, signal, &sent) == 0;
}

/* Of these two, what the thread blocks where it was interrupted. */
static unsigned long blocked_at(struct dfi_pending *pending, const struct ucontext *context)
{
    const struct sigcontext *at = (const struct sigcontext *)&context->uc_mcontext;
    if (dfi_between(at->rip, dfi_pass_end, dfi_pass_out) && dfi_has_mask(dfi_self()->frame))
        return pending->during;
    return dfi_believed(pending, context->uc_sigmask);
}

static void park(struct dfi_thread *self, int signal, const siginfo_t *info)
{
    dfi_lock(&dfi_action_lock);
    __atomic_store_n(&self->pending->awaited, 0, __ATOMIC_SEQ_CST); /* it is in no such call */
    put(info->si_code == SI_TKILL ? &self->pending->parked : self->process->parked, signal, info);
    if (info->si_code != SI_TKILL && send_on(self->process, signal, info)) {
        siginfo_t sent;
        take(self->process->parked, DFI_BIT(signal), &sent);
    }
    dfi_unlock(&dfi_action_lock);
}

bool dfi_parked(int signal, const siginfo_t *info, struct ucontext *context)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_pending *pending = self->pending;
    unsigned long bit = DFI_BIT(signal) & DFI_NEVER_BLOCKED, let = pending->let & bit;
    pending->let &= ~bit;
    if (info->si_code > 0 || let != 0 || (blocked_at(pending, context) & bit) == 0)
        return false;
    unsigned long mask = DFI_MASK_FULL;
    dfi_kernel(__NR_rt_sigprocmask, SIG_SETMASK, &mask, &mask, sizeof mask);
    park(self, signal, info);
    dfi_kernel(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    /* A call that is about to be made, or has been ended, is made anew: it sees what is parked. */
    dfi_signal_resume((struct sigcontext *)&context->uc_mcontext);
    dfi_signal_show((struct sigcontext *)&context->uc_mcontext);
    return true;
}

/* ---- calls that look for what waits ---- */

long dfi_do_rt_sigpending(struct dfi_frame *frame)
{
    unsigned long parked = all_of(dfi_self()), set = 0, size = frame->args[1];
    if (parked == 0)
        return DFI_PASS;
    if (size > sizeof set)
        return -EINVAL;
    dfi_kernel(__NR_rt_sigpending, &set, sizeof set);
    set |= parked;
    return dfi_copy_to((void *)frame->args[0], &set, size);
}

/* What comes later than the look is the kernel's to find. */
long dfi_do_rt_sigtimedwait(struct dfi_frame *frame)
{
    siginfo_t info;
    unsigned long set;
    if (frame->args[3] != sizeof set ||
        dfi_copy_from(&set, (const void *)frame->args[0], sizeof set) < 0)
        return DFI_PASS;
    __atomic_store_n(&dfi_self()->pending->awaited, set & DFI_NEVER_BLOCKED, __ATOMIC_SEQ_CST);
    int signal = take_any(set, &info);
    if (signal == 0)
        return DFI_PASS;
    void *to = (void *)frame->args[1];
    return to != NULL && dfi_copy_to(to, &info, sizeof info) < 0 ? -EFAULT : signal;
}
