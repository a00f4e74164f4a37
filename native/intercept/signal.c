/*
 * signal.c - delivery: the program's handler at once, or, while its thread is in the core, later.
 *
 * For every signal that the program handles the kernel calls dfi_signal_entry. A thread that is in
 * the core remembers the signal, blocks all others in the mask it returns with, and has the signal
 * queued again when it leaves (dfi_signal_release): the kernel then delivers it to the program as
 * if it had arrived behind the call. Nothing here is shared between threads but the dispositions.
 */
#include "intercept/gs.h"
#include "intercept/mem.h"
#include "intercept/offsets.h"
#include "intercept/signal_private.h"

#define SYNC (DFI_BIT(SIGSEGV) | DFI_BIT(SIGBUS)) /* faults of dfi_copy_some */

/* Whose a mask is can be seen: SIGSYS is blocked in the core's and in no other (signal.h). */
#define MARK DFI_BIT(SIGSYS)
#define OURS ~SYNC

/* What the kernel does not block, or opens by itself: for a tracer's step. */
#define OPENED (DFI_BIT(SIGKILL) | DFI_BIT(SIGSTOP) | DFI_BIT(SIGTRAP))

static unsigned long set_mask(unsigned long mask)
{
    unsigned long old = 0;
    dfi_kernel(__NR_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof mask);
    return old;
}

/* A mask was in force, and one of the core's is now: the program's is to be known from here on. */
static void keep(struct dfi_pending *pending, unsigned long mask)
{
    if ((mask & MARK) == 0)
        pending->mask = mask;
}

static unsigned long block(unsigned long mask)
{
    struct dfi_pending *pending = dfi_self()->pending;
    keep(pending, set_mask(mask));
    return pending->mask;
}

unsigned long dfi_signals_block(void)
{
    return block(OURS);
}

unsigned long dfi_signals_hold(void)
{
    return block(DFI_MASK_FULL);
}

/* What is sent behind the look finds the core's mask still, or the program's already. */
void dfi_signals_unblock(unsigned long mask)
{
    struct dfi_thread *self = dfi_self();
    self->pending->mask = mask;
    if (!self->deferred)
        set_mask(mask);
}

unsigned long dfi_signals_found(void)
{
    return set_mask(OURS);
}

/* ---- delivery ---- */

/* A thread on its way out, or about to sleep, has to look at T_DEFERRED again. */
static void send_back(struct sigcontext *at)
{
    if (dfi_between(at->rip, dfi_leave_begin, dfi_leave_end))
        at->rip = (uintptr_t)dfi_leave_begin;
    else if (dfi_between(at->rip, dfi_pass_begin, dfi_pass_end))
        at->rip = (uintptr_t)dfi_pass_begin;
    else if (dfi_between(at->rip, dfi_leave_gs_begin, dfi_leave_gs_end))
        at->rip = (uintptr_t)dfi_leave_begin;
    else if (dfi_between(at->rip, dfi_pass_gs_begin, dfi_pass_gs_end))
        at->rip = (uintptr_t)dfi_pass_begin;
    else if (dfi_between(at->rip, dfi_wait_begin, dfi_wait_end))
        at->rip = (uintptr_t)dfi_wait_interrupted;
}

/* dfi_kernel_wait6() comes back with EINTR: where SA_RESTART holds the call would be made anew. */
static bool is_ended(const struct sigcontext *at)
{
    return at->rip == (uintptr_t)dfi_wait_end && (long)at->rax == -EINTR;
}

static long queue(int signal, const siginfo_t *info)
{
    return dfi_kernel(__NR_rt_tgsigqueueinfo, dfi_kernel(__NR_getpid), dfi_kernel(__NR_gettid),
                      signal, info);
}

/* Where the user has as many signals waiting as RLIMIT_SIGPENDING allows, one as of kill(2) can be
 * sent all the same: it takes no room. */
void dfi_signal_queue(int signal, const siginfo_t *info)
{
    const siginfo_t bare = {.si_signo = signal, .si_code = SI_USER};
    if (queue(signal, info) == -EAGAIN)
        queue(signal, &bare);
}

/* What comes back from the kernel is what was queued again, though there was no room for all of it:
 * then it is of nobody. */
static void recall(struct dfi_pending *pending, int signal, siginfo_t *info)
{
    if (signal != pending->queued)
        return;
    if (info->si_code == SI_USER && info->si_pid == 0)
        memcpy(info, &pending->info, sizeof *info);
    pending->queued = 0;
}

static siginfo_t *sent_of(struct dfi_pending *pending, int signal)
{
    return &pending->sent[signal == SIGBUS];
}

static void remember(struct dfi_pending *pending, int signal, const siginfo_t *info)
{
    if ((DFI_BIT(signal) & SYNC) != 0) { /* queued again, it would be here at once */
        memcpy(sent_of(pending, signal), info, sizeof *info);
        pending->held |= DFI_BIT(signal);
    } else if (pending->signal != 0) {
        dfi_signal_queue(signal, info);
    } else {
        memcpy(&pending->info, info, sizeof *info);
        pending->signal = signal;
        pending->queued = 0;
    }
}

/*
 * Remembers a signal, every other one being blocked. The kernel may have made frames for several
 * before the first handler ran: the last to get here has the frame that was made first, with the
 * program's own mask and the place where the core was interrupted. What was remembered before it is
 * as good as any other; this one is queued again.
 */
static void defer(struct dfi_thread *self, int signal, const siginfo_t *info,
                  struct ucontext *context)
{
    struct dfi_pending *pending = self->pending;
    set_mask(OURS);
    pending->ended |= is_ended((const struct sigcontext *)&context->uc_mcontext);
    remember(pending, signal, info);
    keep(pending, context->uc_sigmask);
    self->deferred = 1;
    context->uc_sigmask = OURS;
    send_back((struct sigcontext *)&context->uc_mcontext);
}

/* All that waits is the kernel's again, until a mask lets it in: every signal is blocked. Returns
 * one of them; 0: none waits. */
static int queue_again(struct dfi_thread *self)
{
    struct dfi_pending *pending = self->pending;
    int any = pending->signal;
    if (pending->signal != 0) {
        dfi_signal_queue(pending->signal, &pending->info);
        pending->queued = pending->signal;
    }
    for (int signal = SIGBUS; signal <= SIGSEGV; signal += SIGSEGV - SIGBUS) {
        if ((pending->held & DFI_BIT(signal)) != 0)
            dfi_signal_queue(any = signal, sent_of(pending, signal));
    }
    pending->signal = 0;
    pending->held = 0;
    self->deferred = 0;
    return any;
}

/* The mask that the program has set. */
static void believe(struct dfi_pending *pending, unsigned long mask)
{
    pending->along = mask & DFI_MASK_ALL & ~OPENED;
    __atomic_store_n(&pending->believed, mask & DFI_NEVER_BLOCKED, __ATOMIC_SEQ_CST);
}

void dfi_signals_return(void)
{
    dfi_signals_hold();
    queue_again(dfi_self());
}

void dfi_signals_open(unsigned long mask)
{
    struct dfi_thread *self = dfi_self();
    dfi_signals_return();
    believe(self->pending, mask);
    self->in_core = 0;
    set_mask(mask & DFI_MASK_ALL);
}

/* Memory that is brought when it is touched. Every signal waits meanwhile; the mask of the frame
 * lets it in, or that of the program's handler. */
static bool is_late_memory(struct dfi_thread *self, const siginfo_t *info,
                           const struct ucontext *context)
{
    const struct sigcontext *at = (const struct sigcontext *)&context->uc_mcontext;
    bool brought;
    self->in_core = 1;
    unsigned long mask = dfi_signals_block();
    brought = dfi_on_core_stack((uintptr_t)info->si_addr, at->err, dfi_files_fault);
    dfi_signals_return();
    self->in_core = 0;
    if (!brought && !dfi_gs_used) /* there the mask is held further: pick_with_gs() */
        set_mask(mask);
    return brought;
}

/* A call of the core's was refused by a filter of the program's, which tells by SIGSYS. The kernel
 * has left the number in place of a result. */
static void refuse(struct dfi_thread *self, struct sigcontext *at)
{
    at->rax = (unsigned long)-ENOSYS;
    self->refused = 1;
}

static __sighandler_t pick(struct dfi_thread *self, int signal, siginfo_t *info,
                           struct ucontext *context)
{
    recall(self->pending, signal, info);
    if (!self->in_core) {
        if (signal == SIGSEGV && info->si_code > 0 && self->process->late != 0 &&
            is_late_memory(self, info, context))
            return NULL;
        if (dfi_parked(signal, info, context))
            return NULL;
        dfi_signal_show((struct sigcontext *)&context->uc_mcontext);
        return dfi_signal_handler(self->process, signal, info, context->uc_sigmask);
    }
    struct sigcontext *at = (struct sigcontext *)&context->uc_mcontext;
    if ((signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0) {
        if (at->rip == (uintptr_t)dfi_copy_insn)
            at->rip = (uintptr_t)dfi_copy_fault;
        else if (at->rip >= (uintptr_t)dfi_copy_some && at->rip < (uintptr_t)dfi_copy_rest)
            at->rip = (uintptr_t)dfi_copy_rest;
        else if (at->rip == (uintptr_t)dfi_copy_byte)
            at->rip = (uintptr_t)dfi_byte_fault;
        else if (at->rip >= (uintptr_t)dfi_copy_text && at->rip < (uintptr_t)dfi_text_fault)
            at->rip = (uintptr_t)dfi_text_fault;
        else
            dfi_signal_default(signal, info); /* a fault of ours: die where it happened */
        return NULL;
    }
    if (signal == SIGSYS && info->si_code == SYS_SECCOMP)
        refuse(self, at);
    else
        defer(self, signal, info, context);
    return NULL;
}

/* The program's handler finds the program's base of %gs, and who goes on in the core the core's. No
 * signal comes in between. */
static __sighandler_t pick_with_gs(int signal, siginfo_t *info, struct ucontext *context)
{
    struct dfi_thread *self = dfi_gs_self();
    if (self->in_core) {
        dfi_gs_take(self);
        return pick(self, signal, info, context);
    }
    unsigned long mask = set_mask(DFI_MASK_FULL);
    keep(self->pending, mask);
    dfi_gs_take(self);
    dfi_gs_end_leaving((struct sigcontext *)&context->uc_mcontext);
    __sighandler_t handler = pick(self, signal, info, context);
    dfi_gs_give(self);
    set_mask(mask);
    return handler;
}

/* Called by dfi_signal_entry: the function to go on with, or NULL to return. */
__sighandler_t dfi_signal_pick(int signal, siginfo_t *info, struct ucontext *context);
__sighandler_t dfi_signal_pick(int signal, siginfo_t *info, struct ucontext *context)
{
    return dfi_gs_used ? pick_with_gs(signal, info, context)
                       : pick(dfi_self(), signal, info, context);
}

/* Calls that a signal always ends, whatever SA_RESTART says: signal(7). */
bool dfi_is_never_restarted(long nr)
{
    switch (nr) {
    case __NR_poll:
    case __NR_ppoll:
    case __NR_select:
    case __NR_pselect6:
    case __NR_epoll_wait:
    case __NR_epoll_pwait:
    case __NR_epoll_pwait2:
    case __NR_nanosleep:
    case __NR_clock_nanosleep:
    case __NR_pause:
    case __NR_rt_sigsuspend:
    case __NR_rt_sigtimedwait:
    case __NR_semop:
    case __NR_semtimedop:
    case __NR_msgrcv:
    case __NR_msgsnd:
    case __NR_io_getevents:
    case __NR_io_pgetevents:
        return true;
    default:
        return false;
    }
}

/* What the core could not do for the program the kernel is asked for as the program did: its filter
 * sees the program's own call, and so does its handler of SIGSYS, which may make it in another way.
 */
static int end_refused(struct dfi_thread *self, struct dfi_frame *frame, bool is_pass)
{
    self->refused = 0;
    if (is_pass)
        return DFI_RELEASE_PASS;
    if (frame->result != -ENOSYS)
        return DFI_RELEASE_LEAVE;
    frame->nr = frame->saved_nr;
    memcpy(frame->args, frame->saved, sizeof frame->args);
    return DFI_RELEASE_PASS;
}

/* Calls that the kernel restarts or not, as the socket has a timeout or none. */
static bool may_have_timeout(long nr)
{
    switch (nr) {
    case __NR_accept:
    case __NR_accept4:
    case __NR_connect:
    case __NR_recvfrom:
    case __NR_recvmsg:
    case __NR_recvmmsg:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_sendmmsg:
        return true;
    default:
        return false;
    }
}

/* Whether the call, which has ended in EINTR, is made again behind a handler with SA_RESTART. What
 * ended so inside of others is no answer to them. */
static bool is_restarted(long nr, bool ended)
{
    return !dfi_is_never_restarted(nr) && !(ended && may_have_timeout(nr));
}

/*
 * Called on the way out of the core: queues the signal that waits; the mask that lets it in is
 * written to where the exit reads it. DFI_RELEASE_*.
 */
int dfi_signal_release(struct dfi_frame *frame, long is_pass, unsigned long *mask);
int dfi_signal_release(struct dfi_frame *frame, long is_pass, unsigned long *mask)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_pending *pending = self->pending;
    if (self->refused)
        return end_refused(self, frame, is_pass);
    dfi_signals_hold();
    int signal = queue_again(self);
    bool ended = pending->ended;
    pending->ended = false;
    *mask = pending->mask;
    if (is_pass)
        return DFI_RELEASE_REDO;
    const struct dfi_action *action = &self->process->actions[signal];
    return frame->result == -EINTR && (action->set.sa_flags & SA_RESTART) != 0 &&
                   is_restarted(frame->saved_nr, ended)
               ? DFI_RELEASE_REDO
               : DFI_RELEASE_DONE;
}

/* ---- the calls of signals ---- */

/* What rt_sigprocmask(2) makes of a mask; *mask is left alone for a bad how. */
static long change_mask(long how, unsigned long set, unsigned long *mask)
{
    switch (how) {
    case SIG_BLOCK:
        *mask |= set;
        return 0;
    case SIG_UNBLOCK:
        *mask &= ~set;
        return 0;
    case SIG_SETMASK:
        *mask = set;
        return 0;
    default:
        return -EINVAL;
    }
}

/*
 * The kernel never sees DFI_NEVER_BLOCKED blocked. The program sees what it set. The usual call has
 * nothing to do with these and is the kernel's.
 */
long dfi_do_rt_sigprocmask(struct dfi_frame *frame)
{
    const void *new = (const void *)frame->args[1];
    void *old = (void *)frame->args[2];
    struct dfi_thread *self = dfi_self();
    unsigned long set = 0;
    if (frame->args[3] != sizeof set)
        return -EINVAL;
    if (new != NULL && dfi_copy_from(&set, new, sizeof set) < 0)
        return -EFAULT;
    if ((set & DFI_NEVER_BLOCKED) == 0 && self->pending->believed == 0)
        return DFI_PASS;

    unsigned long mask = dfi_signals_block();
    unsigned long was = mask | dfi_believed(self->pending, mask), now = was;
    long result = new == NULL ? 0 : change_mask((int)frame->args[0], set, &now);
    believe(self->pending, now);
    dfi_parked_release(~now);
    dfi_signals_unblock(now & DFI_MASK_ALL);
    if (result == 0 && old != NULL)
        result = dfi_copy_to(old, &was, sizeof was);
    return result;
}

long dfi_do_rt_sigreturn(struct dfi_frame *frame)
{
    dfi_signals_return(); /* the frame's mask lets them in */
    dfi_sigreturn(frame->sp);
}
