/*
 * brief.h - descriptors that the core has for less than a call: their numbers are the lowest that
 * are free, as the kernel gives them.
 *
 * A thread of the program may give that very number to dup2(2), which takes it where it is free: by
 * the call under way the program's file would be read, written to and closed. So, from the first
 * thread that a process makes, the numbers of such descriptors are noted, and none is made or
 * closed while dup2(2) looks at a number and takes it, or while a child is made that gets copies of
 * all. In a process of one thread nobody can be between, and nothing is noted.
 */
#ifndef DF_INTERCEPT_BRIEF_H
#define DF_INTERCEPT_BRIEF_H

#include "intercept/intercept.h"

/* Around the making of a descriptor; leave() notes it, unless it is an error, and returns it. No
 * lock may be taken between the two; before them, any may be. */
void dfi_brief_enter(void);
long dfi_brief_leave(long fd);

/* A call of the kernel's that makes a descriptor: also where the program has used up its own, for
 * which nothing is to fail that needs none elsewhere. Behind dfi_limit_lock, in lock order. */
#define dfi_brief(...) DFI_KERNEL_BY(__VA_ARGS__)(dfi_brief6, __VA_ARGS__)
long dfi_brief6(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                unsigned long e, unsigned long f);

/* The same, EMFILE where the program has used up its descriptors. */
#define dfi_brief_if_left(...) (dfi_brief_enter(), dfi_brief_leave(dfi_kernel(__VA_ARGS__)))

/* pipe2(2), of descriptors that are left. 0 or a negative errno. */
long dfi_brief_pipe(int pipe[2], int flags);

/* open(2). O_CLOEXEC is added. */
long dfi_brief_open(const char *path, int flags);

/* close(2) of what the above have made, or of an error. */
void dfi_brief_close(long fd);

/*
 * Before a dup2(2) of the program's to that number. 1: it is free, and stays so for the core until
 * dfi_brief_release(); 0: the program's own file is there, or there are no other threads; -EINTR;
 * -EBUSY, which dup2(2) gives for a race with open(2), too.
 */
long dfi_brief_claim(int fd);
void dfi_brief_release(void);

/* Whether that descriptor is one of these. */
bool dfi_brief_is(int fd);

/* The lowest of them in the range; UINT_MAX: none. */
unsigned dfi_brief_next(unsigned first, unsigned last);

/* From now on the process may have more threads. False: no memory. */
bool dfi_brief_begin(struct dfi_process *process);

/* Around fork(2), behind all locks. The child closes its copies. */
void dfi_brief_fork_prepare(void);
void dfi_brief_fork_parent(void);
void dfi_brief_fork_child(struct dfi_process *process);

#endif
