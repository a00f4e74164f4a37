/*
 * signal_action.c - dispositions: what the program has set for each signal, what the kernel is told
 * of it, and which function a signal that has come leads to.
 */
#include "intercept/lock.h"
#include "intercept/signal_private.h"

/* What the kernel keeps of a program's flags since Linux 5.11: by the others, which are gone when
 * it asks again, a program finds out which flags are known. */
#define FLAGS_KEPT                                                                                 \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER |             \
     SA_RESETHAND | SA_EXPOSE_TAGBITS | SA_RESTORER)

struct dfi_lock dfi_action_lock DFI_HOT;

static long set_kernel(int signal, __sighandler_t handler, unsigned long flags, unsigned long mask)
{
    struct sigaction action = {.sa_handler = handler,
                               .sa_flags = flags,
                               .sa_restorer = (__sigrestore_t)dfi_restorer,
                               .sa_mask = mask};
    return dfi_kernel(__NR_rt_sigaction, signal, &action, 0, sizeof action.sa_mask);
}

static bool is_function(__sighandler_t handler)
{
    return handler != SIG_DFL && handler != SIG_IGN;
}

static bool is_ours(int signal)
{
    return signal == SIGSYS || signal == SIGSEGV || signal == SIGBUS;
}

/* What is ignored, or waits, is to end no call. */
static long install(int signal, const struct sigaction *set)
{
    bool handled = is_function(set->sa_handler);
    unsigned long ours = SA_SIGINFO | SA_RESTORER;
    unsigned long flags =
        handled ? set->sa_flags & ~(unsigned long)SA_RESETHAND : SA_ONSTACK | SA_RESTART;
    if (signal == SIGSYS)
        return set_kernel(signal, (__sighandler_t)dfi_trap_entry,
                          ours | SA_ONSTACK | (flags & SA_RESTART), DFI_MASK_FULL);
    if (handled || is_ours(signal))
        return set_kernel(signal, (__sighandler_t)dfi_signal_entry, ours | flags,
                          handled ? set->sa_mask & DFI_MASK_ALL : 0);
    return dfi_kernel(__NR_rt_sigaction, signal, set, 0, sizeof set->sa_mask);
}

static long ask_kernel(int signal, struct sigaction *set)
{
    return dfi_kernel(__NR_rt_sigaction, signal, 0, set, sizeof set->sa_mask);
}

/* Signals whose kernel disposition is always ours. */
static const int ours[] = {SIGSYS, SIGSEGV, SIGBUS};

long dfi_signals_begin(struct dfi_process *process)
{
    long result = 0;
    for (size_t i = 0; i < 3 && result == 0; i++) {
        struct dfi_action *action = &process->actions[ours[i]];
        ask_kernel(ours[i], &action->set);
        action->known = 1;
        result = install(ours[i], &action->set);
    }
    return result;
}

/* What was ignored still is. */
long dfi_signals_cleared(struct dfi_process *process)
{
    long result = 0;
    for (int signal = 1; signal < DFI_SIGNALS; signal++) {
        struct sigaction *set = &process->actions[signal].set;
        if (is_function(set->sa_handler))
            *set = (struct sigaction){.sa_handler = SIG_DFL};
    }
    for (size_t i = 0; i < 3 && result == 0; i++)
        result = install(ours[i], &process->actions[ours[i]].set);
    return result;
}

long dfi_signals_adopt(struct dfi_process *process)
{
    long result = 0;
    for (int signal = 1; signal < DFI_SIGNALS && result == 0; signal++) {
        struct dfi_action *action = &process->actions[signal];
        if (action->known || ask_kernel(signal, &action->set) < 0)
            continue;
        action->known = 1;
        action->entry = action->set.sa_handler;
        if (is_function(action->set.sa_handler))
            result = install(signal, &action->set);
    }
    return result;
}

unsigned long dfi_signals_ignored(const struct dfi_process *process)
{
    unsigned long ignored = 0;
    for (size_t i = 0; i < 3; i++) {
        if (process->actions[ours[i]].set.sa_handler == SIG_IGN)
            ignored |= DFI_BIT(ours[i]);
    }
    return ignored;
}

void dfi_signals_ignore(struct dfi_process *process, unsigned long ignored)
{
    for (size_t i = 0; i < 3; i++) {
        if ((ignored & DFI_BIT(ours[i])) != 0)
            process->actions[ours[i]].set.sa_handler = SIG_IGN;
    }
}

/* ---- a signal has come ---- */

void dfi_signal_default(int signal, const siginfo_t *info)
{
    set_kernel(signal, SIG_DFL, SA_RESTORER, 0);
    if (info->si_code <= 0)
        dfi_kernel(__NR_rt_tgsigqueueinfo, dfi_kernel(__NR_getpid), dfi_kernel(__NR_gettid), signal,
                   info);
}

/* The first process of a PID namespace: what is sent to it, and it does not handle, is ignored. Who
 * told the kernel of the default would be left with it. */
static bool ends(const struct dfi_process *process, const siginfo_t *info)
{
    return process->pid != 1 || info->si_code > 0;
}

__sighandler_t dfi_signal_handler(struct dfi_process *process, int signal, const siginfo_t *info,
                                  unsigned long mask)
{
    struct dfi_action *action = &process->actions[signal];
    __sighandler_t handler = action->set.sa_handler;
    if (info->si_code > 0 && signal == SIGSEGV &&
        (dfi_believed(dfi_self()->pending, mask) & DFI_BIT(signal)) != 0) {
        dfi_signal_default(signal, info); /* a fault that the program takes to be blocked ends it */
        return NULL;
    }
    if (is_function(handler)) {
        if (action->set.sa_flags & SA_RESETHAND) {
            action->set.sa_handler = SIG_DFL;
            if (!is_ours(signal))
                set_kernel(signal, SIG_DFL, action->set.sa_flags | SA_RESTORER,
                           action->set.sa_mask);
        }
        return handler;
    }
    if (!is_ours(signal)) /* another thread has just reset it */
        return action->entry;
    if ((handler == SIG_DFL || info->si_code > 0) && ends(process, info))
        dfi_signal_default(signal, info);
    return NULL;
}

__sighandler_t dfi_signal_foreign(int signal, siginfo_t *info, struct ucontext *context,
                                  struct dfi_handing *handing)
{
    struct dfi_process *process = dfi_process();
    if (dfi_parked(signal, info, context))
        return NULL;
    struct sigcontext *at = (struct sigcontext *)&context->uc_mcontext;
    dfi_signal_show(at);
    if (info->si_code == SYS_SECCOMP) /* handlers look whether it is where they are */
        info->si_call_addr = (void *)at->rip;
    const struct sigaction set = process->actions[signal].set;
    handing->mask = (context->uc_sigmask | set.sa_mask) & DFI_MASK_ALL;
    __sighandler_t handler = dfi_signal_handler(process, signal, info, context->uc_sigmask);
    if (handler != NULL && (set.sa_flags & SA_ONSTACK) == 0)
        handing->moved = dfi_frame_move(context);
    return handler;
}

/* ---- rt_sigaction(2) ---- */

static long set_action(struct dfi_process *process, int signal, const struct sigaction *set)
{
    struct dfi_action *action = &process->actions[signal];
    if (!is_function(set->sa_handler)) { /* first the kernel: no signal may find no function */
        long result = install(signal, set);
        if (result == 0)
            action->set = *set;
        if (result == 0 && set->sa_handler == SIG_IGN && (DFI_BIT(signal) & DFI_NEVER_BLOCKED) != 0)
            dfi_parked_drop(process, signal);
        return result;
    }
    struct sigaction before = action->set;
    action->set = *set;
    action->entry = set->sa_handler;
    long result = install(signal, set);
    if (result < 0)
        action->set = before;
    return result;
}

/* As the kernel keeps it, and tells it. */
static void clear_unknown(struct sigaction *set)
{
    set->sa_flags &= (unsigned)FLAGS_KEPT;
    set->sa_mask &= ~(DFI_BIT(SIGKILL) | DFI_BIT(SIGSTOP));
}

/* What is no function the kernel knows better: such a one is set without us. */
static bool is_known(const struct dfi_action *action, int signal)
{
    return action->known && (is_ours(signal) || is_function(action->set.sa_handler));
}

long dfi_do_rt_sigaction(struct dfi_frame *frame)
{
    unsigned long signal = frame->args[0];
    const void *new = (const void *)frame->args[1];
    void *old = (void *)frame->args[2];
    struct sigaction set, was;
    if (frame->args[3] != sizeof set.sa_mask || signal < 1 || signal >= DFI_SIGNALS)
        return -EINVAL;
    if (new != NULL && (signal == SIGKILL || signal == SIGSTOP))
        return -EINVAL;
    if (new != NULL && dfi_copy_from(&set, new, sizeof set) < 0)
        return -EFAULT;

    struct dfi_process *process = dfi_process();
    struct dfi_action *action = &process->actions[signal];
    if (!is_ours((int)signal) && !is_function(action->set.sa_handler) &&
        (new == NULL || !is_function(set.sa_handler)))
        return DFI_PASS; /* no function before, none after: the kernel knows it all */
    dfi_lock(&dfi_action_lock);
    if (!is_known(action, (int)signal)) {
        ask_kernel((int)signal, &action->set);
        action->known = 1;
    }
    was = action->set;
    if (new != NULL)
        clear_unknown(&set);
    long result = new == NULL ? 0 : set_action(process, (int)signal, &set);
    dfi_unlock(&dfi_action_lock);
    if (result == 0 && old != NULL && dfi_copy_to(old, &was, sizeof was) < 0)
        return -EFAULT;
    return result;
}
