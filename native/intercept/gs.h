/*
 * gs.h - programs that have a base of %gs of their own: Wine, and WebAssembly compiled to C.
 *
 * The core finds a thread by that base (intercept.h). As long as the program sets none, it has it
 * for itself. From arch_prctl(ARCH_SET_GS) on each of the two has its own: entry.S changes them at
 * the way in and out, the handlers of signals around what they do. Who the thread is has to be
 * asked then: each call takes 0.25 us more, in this program and nowhere else (decision 154).
 *
 * wrgsbase would not be seen. Linux says by AT_HWCAP2 that it may be used, and the program is not
 * told so: it has to set its base by the call.
 */
#ifndef DF_INTERCEPT_GS_H
#define DF_INTERCEPT_GS_H

#include "intercept/intercept.h"
#include "intercept/signal.h"

/* Some thread has set a base: it is never taken back. */
extern bool dfi_gs_used;

/* What the program is told of AT_HWCAP2. Before, no base can be set: EPERM. */
unsigned long dfi_gs_hide(unsigned long hwcap2);

/* arch_prctl(ARCH_SET_GS): 0, or -EPERM for what is no address of the program, where the processor
 * or the kernel has no instructions for it, and where no code can be written to. */
long dfi_gs_set(unsigned long base);

/* In a new thread, when it knows its number. */
void dfi_gs_born(struct dfi_thread *self);

/* ---- of use only if dfi_gs_used ---- */

/* The calling thread, whoever's base it has. */
struct dfi_thread *dfi_gs_self(void);

/* The core's base, and the program's is kept; and back. The first may be done twice. */
void dfi_gs_take(struct dfi_thread *self);
void dfi_gs_give(const struct dfi_thread *self);

/* A thread that has left the core and still has its base: it is sent on with the program's. */
void dfi_gs_end_leaving(struct sigcontext *at);

/* Whether it is asking at the entry which thread it is. */
bool dfi_gs_asks(const struct sigcontext *at);

/* entry.S: the entry that asks, and what it is made of; the exits. */
extern const char dfi_gs_entry[], dfi_gs_begun[], dfi_gs_kept[], dfi_gs_known[], dfi_gs_inside[],
    dfi_leave_gs_begin[], dfi_leave_gs_end[], dfi_leave_gs_out[], dfi_pass_gs_begin[],
    dfi_pass_gs_end[], dfi_pass_gs_out[], dfi_free_call[], dfi_free_end[];

#endif
