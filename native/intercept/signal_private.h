/*
 * signal_private.h - what the files of signal.h share.
 */
#ifndef DF_INTERCEPT_SIGNAL_PRIVATE_H
#define DF_INTERCEPT_SIGNAL_PRIVATE_H

#include "intercept/signal.h"

#define DFI_MASK_ALL  ~DFI_NEVER_BLOCKED /* the most that the program may block */
#define DFI_MASK_FULL ~0ul

/* ---- signal_action.c ---- */

/* The program's function for the signal that has come; NULL: none is to be called. */
__sighandler_t dfi_signal_handler(struct dfi_process *process, int signal, const siginfo_t *info);

/* The default action, taken by the kernel when the handler returns. */
void dfi_signal_default(int signal, const siginfo_t *info);

/* ---- signal_shown.c ---- */

/* The thread is outside of the core: its registers become those of the program's own instruction,
 * where they are not. */
void dfi_signal_show(struct sigcontext *at);

static inline bool dfi_between(unsigned long ip, const char *start, const char *end)
{
    return ip >= (uintptr_t)start && ip < (uintptr_t)end;
}

#endif
