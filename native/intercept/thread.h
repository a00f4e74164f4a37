/*
 * thread.h - the life of what the core keeps for each thread.
 */
#ifndef DF_INTERCEPT_THREAD_H
#define DF_INTERCEPT_THREAD_H

#include "intercept/intercept.h"

/* All threads that there have been, linked by `next`. */
extern struct dfi_thread *dfi_threads;

/* A thread of a process that has a stack and counters and is not running yet; NULL: no memory. */
struct dfi_thread *dfi_thread_new(struct dfi_process *process);

/* Gives back a thread that never ran, or that has ended. */
void dfi_thread_free(struct dfi_thread *thread);

/* Makes a thread's memory reusable as its last act, and ends the calling thread. */
_Noreturn void dfi_thread_end(struct dfi_thread *self, long status);

/* For the calling thread: finds itself by %gs from now on. 0 or a negative errno. */
long dfi_thread_adopt(struct dfi_thread *thread);

/* From now on every system call of the calling thread outside the core traps. 0 or -errno. */
long dfi_thread_arm(void);

/* The first running thread of the process for which visit() is true; NULL: there is none. */
struct dfi_thread *dfi_threads_visit(const struct dfi_process *process,
                                     bool (*visit)(struct dfi_thread *, unsigned long),
                                     unsigned long with);

/* In a forked child: no other thread is there any more. */
void dfi_threads_forked(struct dfi_thread *self);

/* Whether a process that is no thread of ours may share our memory and go on beside us: clone.c. */
bool dfi_clone_beside(void);

/* The lower end of a thread's core stack, to which hardly any call comes. */
uintptr_t dfi_thread_bottom(const struct dfi_thread *thread);

/* A process object with nothing in it but the dispositions' default; NULL: no memory. */
struct dfi_process *dfi_process_new(void);

/* A copy for a child that shares our memory only; NULL: no memory. */
struct dfi_process *dfi_process_copy(struct dfi_process *process, bool shares_actions);
void dfi_process_free(struct dfi_process *process);

#endif
