/*
 * run.h - what all processes of one run share: a memfd made by `directfuse run`, inherited at a
 * high descriptor, mapped by each. directfuse/_run_block.py writes and reads the same layout.
 *
 * The configuration is text, lines of "key=value":
 *   server   descriptor of the socket that leads to the mount server; it is inherited by all
 *   shadow   the directory of shadow files, absolute
 */
#ifndef DF_INTERCEPT_RUN_H
#define DF_INTERCEPT_RUN_H

#include "core/build.h"
#include "intercept/intercept.h"

#define DFI_RUN_MAGIC 0x31304e5552464544ul /* "DEFRUN01" */

/* Flags of a run. */
#define DFI_RUN_VERBOSE   1u /* notes are written */
#define DFI_RUN_STRICT    2u /* a program that would run uninterposed is refused: EPERM */
#define DFI_RUN_NOREWRITE 4u /* every call traps */
#define DFI_RUN_SECCOMP   8u /* as on a kernel without Syscall User Dispatch */
/* openat2(2) is there, and no filter ends who calls it: until a program sets one of its own. */
#define DFI_RUN_OPENAT2 16u

#define DFI_RUN_SLOTS   256 /* of counters; the last one is shared by those who find none free */

/* Counters of one thread, by call: two pages, of which most programs touch one. Written by it
 * alone; the sums over all slots are the run's. A slot's counts stay when it changes hands. */
struct dfi_counts {
    struct {
        unsigned long made;   /* that arrived */
        unsigned long passed; /* of them, left to the kernel */
    } calls[DFI_CALLS_MAX];
};

struct dfi_run {
    unsigned long magic;
    char build[DF_BUILD_SIZE]; /* of who made it */
    unsigned long flags;
    unsigned long size; /* of the whole, bytes */
    unsigned long config_offset, config_size;
    unsigned long slots_offset; /* struct dfi_counts[DFI_RUN_SLOTS], on a page of its own */
    unsigned long learn_offset; /* struct dfi_learn, on a page of its own */
    unsigned long log_offset, log_size;
    unsigned long log_used;    /* bytes that were wanted; what went beyond log_size is lost */
    unsigned long events[32];  /* by enum dfi_event */
    int owners[DFI_RUN_SLOTS]; /* thread ids, by slot; 0: free. Together: all are looked at often */
    char loader[PATH_MAX];     /* directfuse-exec, where /proc/self/exe does not say it */
};

_Static_assert(DFI_EVENTS <= sizeof(((struct dfi_run *)0)->events) / sizeof(unsigned long),
               "directfuse/_run_block.py");

extern struct dfi_run *dfi_run;
extern int dfi_run_fd;
extern int dfi_run_socket; /* leads to the mount server; -1: at the number in the configuration */

/* Maps the run of a descriptor; 0, or a negative errno: -EPROTO (of another build). */
int dfi_run_open(int fd);

/* The descriptor that the configuration names for the way to the server; -1: a run without one. */
int dfi_run_server_fd(void);

/* Whether the run has the flag now. */
static inline bool dfi_run_has(unsigned long flag)
{
    return dfi_run != NULL && (__atomic_load_n(&dfi_run->flags, __ATOMIC_RELAXED) & flag) != 0;
}

/* A filter from elsewhere, or one that a program is about to set, may end who makes calls that
 * programs do not make: the core makes none from now on, in any program of the run. */
void dfi_run_filtered(void);

/* A slot of counters for a thread with its tid, and its return at its end. */
void dfi_counts_take(struct dfi_thread *thread);
void dfi_counts_give(struct dfi_thread *thread);

/*
 * Over execve the slot of a process's first thread stays its own, for who has a slot is a program
 * of the run: `directfuse run` waits for the mount server until it sees one. What the thread counts
 * in between is lost. Again: in the next program, or when there is none.
 */
void dfi_counts_leave(struct dfi_thread *thread);
void dfi_counts_take_again(struct dfi_thread *thread);

#endif
