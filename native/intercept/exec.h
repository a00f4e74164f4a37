/*
 * exec.h - starting another program inside: what execve checks, and what the loader is told.
 */
#ifndef DF_INTERCEPT_EXEC_H
#define DF_INTERCEPT_EXEC_H

#include "intercept/intercept.h"

/*
 * The last string of the environment that a loader finds, and takes out: DFI_MARKER, then
 * "<run> <1 + loader> <program> <1 + interpreter> <words> <unnamed> <mask> <ignored> <size of
 * text> <size of name> <text><name> <path>": descriptors of the run, the loader, the program's file
 * and its interpreter's, how many words at the beginning of argv are those of a script (the last is
 * its path), 1 if it was given by a descriptor alone, the program's signal mask (execve is made
 * with all blocked: a signal that the core held back would be lost), which of the core's own
 * signals are ignored, what dfi_files_exec() wrote, the name of the program's file in a mount, and
 * the path by which it was called.
 */
#define DFI_MARKER "DIRECTFUSE_EXEC="

/*
 * The loader, as a descriptor that all programs of a run have: the very file, whatever has become
 * of its path, in a chroot too, and without a look into /proc. -1: there is none.
 */
extern int dfi_loader_fd;
void dfi_loader_keep(const char *path);

/* Its number is free between the two, in a process of one thread. */
void dfi_loader_leave(struct dfi_process *process);
void dfi_loader_return(struct dfi_process *process);

/* Whether /proc/self/exe is the loader; not so in a program that was entered by LD_PRELOAD. */
extern bool dfi_loader_is_self;

/* What dfi_exec() is asked for. */
struct dfi_exec {
    struct dfi_process *process;
    int dirfd, flags;
    const char *path;
    unsigned long argv, envp; /* of the program's memory */
    unsigned long mask;       /* the program's signal mask; all are blocked */
};

/* execve as asked; returns only when it failed, or DFI_PASS: it is to be left to the kernel. */
long dfi_exec(const struct dfi_exec *asked);

/* Frees what an execve of that thread has allocated. One that succeeded in a child which shares its
 * parent's memory has left it behind: the parent's to free. */
void dfi_exec_free(struct dfi_thread *thread);

#endif
