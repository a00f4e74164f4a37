/*
 * signal_private.h - what the files of signal.h share.
 */
#ifndef DF_INTERCEPT_SIGNAL_PRIVATE_H
#define DF_INTERCEPT_SIGNAL_PRIVATE_H

#include "intercept/signal.h"

#define DFI_MASK_ALL  ~DFI_NEVER_BLOCKED /* the most that the program may block */
#define DFI_MASK_FULL ~0ul

/* ---- signal.c ---- */

/* The signal is the kernel's again, for this thread. */
void dfi_signal_queue(int signal, const siginfo_t *info);

/* Whether a signal ends the call whatever SA_RESTART says. */
bool dfi_is_never_restarted(long nr);

/* ---- signal_mask.c ---- */

/* Whether the call waits with a mask of its own. */
bool dfi_has_mask(const struct dfi_frame *frame);

/* ---- parked.c ---- */

/* Outside of the core: whether the signal that has come has to wait, and does so now. */
bool dfi_parked(int signal, const siginfo_t *info, struct ucontext *context);

/* Whether any that is in the set waits. */
bool dfi_is_parked(unsigned long set);

/* It is ignored from now on. Under dfi_action_lock. */
void dfi_parked_drop(struct dfi_process *process, int signal);

/* ---- signal_frame.c ---- */

/* Moves the frame to the stack on which the thread was interrupted, if it lies on another: how far,
 * in bytes. What the context says is where the thread is (dfi_signal_show()). */
long dfi_frame_move(struct ucontext *context);

/* ---- signal_action.c ---- */

/* The program's function for the signal that has come, where that mask was in force; NULL: none is
 * to be called. */
__sighandler_t dfi_signal_handler(struct dfi_process *process, int signal, const siginfo_t *info,
                                  unsigned long mask);

/* The default action, taken by the kernel when the handler returns. */
void dfi_signal_default(int signal, const siginfo_t *info);

/* ---- signal_shown.c ---- */

/* A call that was made for the program, and that the signal has ended, is made anew. */
void dfi_signal_resume(struct sigcontext *at);

/* The thread is outside of the core: its registers become those of the program's own instruction,
 * where they are not. */
void dfi_signal_show(struct sigcontext *at);

static inline bool dfi_between(unsigned long ip, const char *start, const char *end)
{
    return ip >= (uintptr_t)start && ip < (uintptr_t)end;
}

#endif
