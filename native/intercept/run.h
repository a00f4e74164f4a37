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

#include "intercept/intercept.h"

#define DFI_RUN_MAGIC   0x31304e5552464544ul /* "DEFRUN01" */
#define DFI_RUN_VERSION 1

/* Flags of a run. */
#define DFI_RUN_VERBOSE   1u /* notes are written */
#define DFI_RUN_STRICT    2u /* a program that would run uninterposed is refused: EPERM */
#define DFI_RUN_NOREWRITE 4u /* every call traps */
#define DFI_RUN_SECCOMP   8u /* as on a kernel without Syscall User Dispatch */

/* Counters of one thread. Written by it alone; the sums over all slots are the run's. */
struct dfi_counts {
    int owner; /* thread id; 0 when free. A slot's counts stay when it changes hands. */
    int pad;
    unsigned long calls[DFI_CALLS_MAX];  /* that arrived */
    unsigned long passed[DFI_CALLS_MAX]; /* of them, left to the kernel */
};

struct dfi_run {
    unsigned long magic;
    unsigned version;
    unsigned flags;
    unsigned long size; /* of the whole, bytes */
    unsigned long config_offset, config_size;
    unsigned long slots_offset, slots_count; /* struct dfi_counts; the last one is shared */
    unsigned long log_offset, log_size;
    unsigned long log_used;   /* bytes that were wanted; what went beyond log_size is lost */
    unsigned long events[32]; /* by enum dfi_event */
    char loader[PATH_MAX];    /* directfuse-exec, where /proc/self/exe does not say it */
};

extern struct dfi_run *dfi_run;
extern int dfi_run_fd;
extern int dfi_run_socket; /* leads to the mount server; -1: at the number in the configuration */

/* Maps the run of a descriptor; 0, or a negative errno. */
int dfi_run_open(int fd);

/* The descriptor that the configuration names for the way to the server; -1: a run without one. */
int dfi_run_server_fd(void);

/* A slot of counters for a thread, and its return. */
struct dfi_counts *dfi_counts_take(int tid);
void dfi_counts_give(struct dfi_counts *counts);

#endif
