/*
 * trap.c - SIGSYS: a system call whose site is not rewritten (yet) is sent to the entry.
 *
 * The handler decides nothing about the call. It changes where the thread goes on: at dfi_entry,
 * with the registers of the call, as if the site had jumped there. So the call itself runs outside
 * of any signal handler and on no stack of the program.
 */
#include "intercept/filter.h"
#include "intercept/gs.h"
#include "intercept/rewrite.h"
#include "intercept/run.h"
#include "intercept/signal.h"

#include <linux/audit.h>

#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2 /* si_code: Syscall User Dispatch triggered */
#endif

#define SYSCALL_SIZE 2 /* bytes of the instruction */

/* A trap of ours; else the signal was sent by somebody, or by a filter of the program's own. */
static bool is_ours(const siginfo_t *info)
{
    return info->si_code == SYS_USER_DISPATCH ||
           (info->si_code == SYS_SECCOMP && info->si_errno == DFI_FILTER_DATA);
}

static __sighandler_t send_to_entry(int signal, siginfo_t *info, struct ucontext *context,
                                    struct dfi_handing *handing)
{
    struct sigcontext *at = (struct sigcontext *)&context->uc_mcontext;
    if (!is_ours(info))
        return dfi_signal_foreign(signal, info, context, handing);
    if (info->si_arch != AUDIT_ARCH_X86_64) { /* int $0x80: numbers of another table */
        at->rax = (unsigned long)-ENOSYS;
        return NULL;
    }
    dfi_count(DFI_EVENT_TRAPPED);
    dfi_rewrite_hit(at->rip - SYSCALL_SIZE, (unsigned long *)&at->rax);
    at->rcx = at->rip;
    at->rip = (uintptr_t)dfi_entry;
    return NULL;
}

/* Called by dfi_trap_entry, with every signal blocked. A handler of the program to go on with. */
__sighandler_t dfi_trap(int signal, siginfo_t *info, struct ucontext *context,
                        struct dfi_handing *handing);
__sighandler_t dfi_trap(int signal, siginfo_t *info, struct ucontext *context,
                        struct dfi_handing *handing)
{
    __sighandler_t handler = send_to_entry(signal, info, context, handing);
    if (dfi_gs_used)
        dfi_gs_give(dfi_self());
    return handler;
}

/* Called by dfi_entry for every call. */
long dfi_enter(struct dfi_frame *frame);
long dfi_enter(struct dfi_frame *frame)
{
    struct dfi_counts *counts = dfi_self()->counts;
    unsigned long nr = (unsigned long)frame->nr < DFI_CALLS_MAX ? (unsigned long)frame->nr : 0;
    counts->calls[nr].made++;
    long result = dfi_dispatch(frame);
    if (result == DFI_PASS)
        counts->calls[nr].passed++;
    return result;
}
