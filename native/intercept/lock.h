/*
 * lock.h - the locks of the mechanism, in lock order, and what fork does with them.
 */
#ifndef DF_INTERCEPT_LOCK_H
#define DF_INTERCEPT_LOCK_H

#include "intercept/intercept.h"

extern struct dfi_lock dfi_limit_lock;   /* process.c: between the two of RLIMIT_NOFILE */
extern struct dfi_lock dfi_rewrite_lock; /* sites and trampolines: rewrite.c */
extern struct dfi_lock dfi_action_lock;  /* dispositions: signal.c */
extern struct dfi_lock dfi_thread_lock;  /* the threads and their memory: thread.c */
extern struct dfi_lock dfi_alloc_lock;   /* alloc.c */

/* From now on every thread that takes a lock has a struct dfi_thread. */
void dfi_lock_begin(void);

/* In a child that shares its parent's memory, ahead of its first lock. */
void dfi_lock_born(struct dfi_process *process);

/* Around fork, in this order: all locks taken; released by the parent, made new in the child. */
void dfi_fork_prepare(void);
void dfi_fork_parent(long child);
void dfi_fork_child(struct dfi_process *process);

#endif
