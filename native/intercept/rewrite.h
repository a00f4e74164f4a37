/*
 * rewrite.h - sites of system calls that trap, and turning them into jumps.
 */
#ifndef DF_INTERCEPT_REWRITE_H
#define DF_INTERCEPT_REWRITE_H

#include "intercept/intercept.h"

/*
 * The syscall instruction at site has trapped with *nr in %rax. Rewrites the site when that is
 * worth it and possible. *nr is corrected when another thread is rewriting the site this moment.
 */
void dfi_rewrite_hit(uintptr_t site, unsigned long *nr);

/*
 * mmap(2) of a file as private code, PROT_READ | PROT_EXEC, that is going to be executed: what the
 * programs of the run have learnt of its sites is rewritten before anybody can execute them
 * (decision 059). The address, or a negative errno.
 */
long dfi_rewrite_map(uintptr_t at, size_t size, unsigned long flags, int fd, unsigned long offset);

/*
 * The same for code of a file that lies in memory of its own, [at, at + size), which is still
 * writable: what is learnt of `file` (learn.h) is rewritten, and the rest when it has trapped.
 */
void dfi_rewrite_copy(uintptr_t at, size_t size, int file, unsigned long offset);

/*
 * The program is about to change what is mapped there, or its rights: what is known of code there
 * holds no longer. Code that it made itself, or wants to write to, is left as it is.
 */
void dfi_rewrite_changed(uintptr_t start, size_t size);

/* The code of the dynamic linker: [start, end). */
void dfi_rewrite_linker(uintptr_t start, uintptr_t end);

/*
 * Whether it is the dynamic linker that maps code by the call that goes on at `ip`. Others may look
 * at what they map in place of executing it (valgrind, which runs a copy of its own making).
 */
bool dfi_rewrite_is_linker(uintptr_t ip);

/*
 * Threads, or a child of vfork(2), are about to share the memory. What a rewriting among them wants
 * of the kernel is asked for now: with one user of the memory that is a microsecond, with more the
 * kernel waits for every processor, for several milliseconds (decision 088).
 */
void dfi_rewrite_shared(void);

/*
 * Puts a jump to target over the instruction at `at`, of five bytes or more in one word, in code of
 * the core. Under dfi_rewrite_lock. false: code cannot be written to.
 */
bool dfi_rewrite_redirect(uintptr_t at, uintptr_t target);

/* Whether sites are rewritten in this process: switched off by the run, or by what is refused. */
extern bool dfi_rewrite_on;

#endif
