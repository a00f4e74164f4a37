/*
 * signal_shown.c - where a handler of the program finds that its thread was interrupted: at the
 * program's own instructions, never at ours.
 */
#include "intercept/gs.h"
#include "intercept/offsets.h"
#include "intercept/signal_private.h"
#include "intercept/trampoline.h"

#define SYSCALL_SIZE 2     /* bytes of the instruction, which stays where it is: rewrite.c */
#define FLAGS        0x8d5 /* of %eflags: those that entry.S keeps */
#define OVERFLOW     0x800

/* %rdi to %r9, as entry.S stores them. */
static void restore_saved(struct sigcontext *at, const unsigned long *saved)
{
    at->rdi = saved[0];
    at->rsi = saved[1];
    at->rdx = saved[2];
    at->r10 = saved[3];
    at->r8 = saved[4];
    at->r9 = saved[5];
}

/* What lahf and seto have put into %rax. */
static unsigned long flags_of(unsigned long rax)
{
    return (rax >> 8 & 0xd5) | ((rax & 1) != 0 ? OVERFLOW : 0);
}

/* Made for the program: behind its instruction if the call is done, else before it. */
static void leave_pass(struct sigcontext *at)
{
    const unsigned long *kept = (const unsigned long *)at->rsp;
    bool done = at->rip != (uintptr_t)dfi_pass_end;
    restore_saved(at, kept + P_SAVED / sizeof *kept);
    at->rcx = kept[P_IP / sizeof *kept];
    at->rip = done ? at->rcx : at->rcx - SYSCALL_SIZE;
    at->rsp += P_ROOM;
}

/* A signal that has been waiting is let in: the same, where the core has made the call. */
static void leave_deferred(struct sigcontext *at)
{
    const unsigned long *kept = (const unsigned long *)at->rsp;
    bool done = kept[D_TARGET / sizeof *kept] != (uintptr_t)dfi_entry;
    restore_saved(at, kept + D_SAVED / sizeof *kept);
    at->rax = kept[D_RAX / sizeof *kept];
    at->eflags = (at->eflags & ~(unsigned long)FLAGS) | flags_of(kept[D_FLAGS / sizeof *kept]);
    at->rcx = kept[D_IP / sizeof *kept];
    at->rip = done ? at->rcx : at->rcx - SYSCALL_SIZE;
    at->rsp += D_ROOM;
}

/* At the entry, where it was asked which thread this is: before the program's instruction. */
static void leave_gs_entry(struct sigcontext *at, uintptr_t sp)
{
    const unsigned long *kept = (const unsigned long *)sp;
    if (!dfi_between(at->rip, dfi_gs_begun, dfi_gs_kept)) {
        at->rax = kept[G_RAX / sizeof *kept];
        at->rcx = kept[G_IP / sizeof *kept];
        at->rdx = kept[G_RDX / sizeof *kept];
    }
    if (dfi_between(at->rip, dfi_gs_known, dfi_gs_inside))
        at->eflags = (at->eflags & ~(unsigned long)FLAGS) | flags_of(kept[G_FLAGS / sizeof *kept]);
    at->rip = at->rcx - SYSCALL_SIZE;
    at->rsp = sp + G_ROOM;
}

/* What is at another place while the program has a base of its own for %gs. */
static bool show_gs(struct sigcontext *at)
{
    if (dfi_between(at->rip, dfi_gs_begun, dfi_gs_inside))
        leave_gs_entry(at, at->rsp);
    else if (dfi_gs_asks(at))
        leave_gs_entry(at, at->rsp + sizeof at->rsp);
    else if (at->rip == (uintptr_t)dfi_gs_entry)
        at->rip = at->rcx - SYSCALL_SIZE;
    else
        return false;
    return true;
}

void dfi_signal_resume(struct sigcontext *at)
{
    long nr = dfi_self()->frame->saved_nr;
    bool ended = at->rip == (uintptr_t)dfi_pass_end + SYSCALL_SIZE && (long)at->rax == -EINTR;
    if (!ended || dfi_is_never_restarted(nr))
        return;
    at->rip = (uintptr_t)dfi_pass_end;
    at->rax = (unsigned long)nr;
}

/*
 * A thread that is in a call, but no more in the core: a handler of the program is shown, and goes
 * back to, the program's own instruction and stack, as without us. Who unwinds from there
 * (pthread_cancel, exceptions, profilers) finds the functions, and who asks whether a call was made
 * (musl, glibc from 2.41 on, valgrind) the place where it looks.
 */
void dfi_signal_show(struct sigcontext *at)
{
    uintptr_t origin = dfi_trampoline_origin(at->rip);
    if (dfi_gs_used && show_gs(at))
        return;
    if (origin != 0)
        at->rip = origin;
    else if (at->rip == (uintptr_t)dfi_entry)
        at->rip = at->rcx - SYSCALL_SIZE;
    else if (dfi_between(at->rip, dfi_pass_end, dfi_pass_out))
        leave_pass(at);
    else if (dfi_between(at->rip, dfi_let_in, dfi_let_out))
        leave_deferred(at);
    else if (at->rip == (uintptr_t)dfi_pass_out || at->rip == (uintptr_t)dfi_leave_end)
        at->rip = at->rcx;
}
