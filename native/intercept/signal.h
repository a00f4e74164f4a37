/*
 * signal.h - signals of the program: dispositions as it sees them, and holding back while the core
 * is entered.
 */
#ifndef DF_INTERCEPT_SIGNAL_H
#define DF_INTERCEPT_SIGNAL_H

#include "intercept/intercept.h"

#include <asm/signal.h>

#include <asm/sigcontext.h>
#include <asm/siginfo.h>

#include <asm/ucontext.h>

#define DFI_SIGNALS     65 /* 1 to 64 */

#define DFI_BIT(signal) (1ul << ((signal) - 1))

/* A system call that traps, and memory that is brought when it is touched (map.h), must find the
 * signal open: the kernel ends a process that blocks what a fault sends. */
#define DFI_NEVER_BLOCKED (DFI_BIT(SIGSYS) | DFI_BIT(SIGSEGV))

/* A disposition of the program. Under dfi_action_lock; handlers are read without. */
struct dfi_action {
    struct sigaction set; /* as rt_sigaction(2) gave it, valid when known */
    __sighandler_t entry; /* the last function that was set: a signal may be on its way to it */
    unsigned char known;
};

/* Signals that were sent while the program has them blocked: parked.c. */
struct dfi_parked {
    unsigned long signals; /* of DFI_NEVER_BLOCKED */
    siginfo_t info[2];     /* SIGSEGV, SIGSYS */
};

/* The alternate stack that a thread has set (signal_stack.c). Under dfi_thread_lock for others. */
struct dfi_stack {
    stack_t set;   /* of no bytes: none */
    bool withheld; /* from the kernel, which has none, or one of the core's */
};

/* What waits until a thread leaves the core. One signal is enough, for all others are blocked: but
 * SIGSEGV and SIGBUS, which are open to faults and may be sent by kill(2), too. */
struct dfi_pending {
    siginfo_t info;
    int signal;                /* 0: none */
    int queued;                /* whose `info` is still: a signal that is the kernel's again */
    siginfo_t sent[2];         /* SIGSEGV, SIGBUS */
    unsigned long held;        /* their bits */
    bool ended;                /* by the kernel, for good, is the call that the core was making */
    unsigned long mask;        /* the program's, while one of the core's is in force */
    unsigned long scratch[16]; /* masks without DFI_NEVER_BLOCKED, for calls under way */
    unsigned scratch_next;
    /* Of DFI_NEVER_BLOCKED: */
    unsigned long believed; /* what the program takes to be blocked, */
    unsigned long along;    /* and what it had blocked of the others along with them */
    unsigned long during;   /* what the last call that has a mask takes to be blocked meanwhile */
    unsigned long awaited;  /* what the last rt_sigtimedwait(2) was for */
    unsigned long let;      /* was parked, and is to be delivered whatever the mask is */
    struct dfi_parked parked;
    struct dfi_stack stack;
};

/* What the program takes to be blocked of DFI_NEVER_BLOCKED, by the kernel's mask: a handler that
 * has blocked these along with others, and has returned, blocks none of them any more. */
static inline unsigned long dfi_believed(const struct dfi_pending *pending, unsigned long mask)
{
    return (pending->along & ~mask) == 0 ? pending->believed : 0;
}

/* Takes over SIGSYS, SIGSEGV and SIGBUS. 0 or a negative errno. */
long dfi_signals_begin(struct dfi_process *process);

/* The same in a child that the kernel has taken all handlers from (CLONE_CLEAR_SIGHAND): ours too.
 */
long dfi_signals_cleared(struct dfi_process *process);

/* Takes over handlers that were installed before the core was there. 0 or a negative errno. */
long dfi_signals_adopt(struct dfi_process *process);

/* entry.S */
extern const char dfi_pass_out[], dfi_let_in[], dfi_let_out[];
extern const char dfi_entry[], dfi_leave_begin[], dfi_leave_end[], dfi_pass_begin[], dfi_pass_end[],
    dfi_wait_begin[], dfi_wait_end[], dfi_wait_interrupted[], dfi_copy_rest[], dfi_copy_insn[],
    dfi_copy_fault[], dfi_byte_fault[], dfi_text_fault[], dfi_signal_entry[], dfi_trap_entry[],
    dfi_restorer[];
_Noreturn void dfi_sigreturn(uintptr_t sp);
/* Of those that sandbox.h names: a filter of the program's does not see it. */
long dfi_unfiltered(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                    unsigned long e);
/* Calls the function on the thread's core stack; the thread must not be in the core yet. */
bool dfi_on_core_stack(uintptr_t first, unsigned long second,
                       bool (*function)(uintptr_t, unsigned long));
_Noreturn void dfi_thread_exit(long status, int *state);

/*
 * The mask. In the program it is the program's; in the core that, or one of two of the core's own:
 * all but SIGSEGV and SIGBUS, which faults of dfi_copy_some() need (SIGBUS and SIGSEGV may still be
 * sent, and are remembered), or all. Masks of the core have SIGSYS blocked, and the program's never
 * has (DFI_NEVER_BLOCKED). So whoever finds a mask - in what rt_sigprocmask(2) replaced, in the
 * frame of a signal that came at any instruction - sees whose it is: the program's is written down
 * in dfi_pending.mask, one of the core's says that it has been (098).
 */

/* The first of the two is set; the program's mask. Inside of the core. */
unsigned long dfi_signals_block(void);

/* The second: nothing comes from here on. No memory of the program may be touched. */
unsigned long dfi_signals_hold(void);

/* The program's mask, from now on: at once, or when a signal that waits has left the core. */
void dfi_signals_unblock(unsigned long mask);

/* dfi_signals_hold(), and what waited is the kernel's again: the next mask may let it in. */
void dfi_signals_return(void);

/* Before there is a thread: as dfi_signals_block(), but the mask may be anything. */
unsigned long dfi_signals_found(void);

/* The core is left for the program's first instruction, with that mask. */
void dfi_signals_open(unsigned long mask);

/* What entry.S does before it calls such a handler: sets the mask, and changes to the frame where
 * that has been moved to. */
struct dfi_handing {
    unsigned long mask;
    long moved; /* bytes */
};

/* The program's handler of a SIGSYS that no system call of ours caused; NULL: nothing to call. */
__sighandler_t dfi_signal_foreign(int signal, siginfo_t *info, struct ucontext *context,
                                  struct dfi_handing *handing);

/* Those that are parked and in the set are the kernel's again, for this thread. Which these are. */
unsigned long dfi_parked_release(unsigned long set);

/* A child of fork(2) has none. */
void dfi_parked_forked(struct dfi_thread *self);

/* Of the three that are always ours: what the program ignores; the next one is told, for the kernel
 * would ignore also those that other threads raise by their calls, and end the process. */
unsigned long dfi_signals_ignored(const struct dfi_process *process);
void dfi_signals_ignore(struct dfi_process *process, unsigned long ignored);

#endif
