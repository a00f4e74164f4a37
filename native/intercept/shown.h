/*
 * shown.h - what others see of a program in /proc: debuggers, ps(1).
 */
#ifndef DF_INTERCEPT_SHOWN_H
#define DF_INTERCEPT_SHOWN_H

#include "intercept/image.h"

#include <linux/auxvec.h>

struct dfi_auxv {
    unsigned long type, value;
};

/* In /proc/PID/auxv alone: where the struct dfi_exe of the program is. A type that has a meaning
 * for nobody, and is known: ClickHouse ends itself when it reads one that no kernel uses. */
#define DFI_AT_EXE AT_IGNORE

/* The stack as the loader found it, and the program as it lies in memory. */
struct dfi_shown {
    const struct dfi_map *program;
    char **argv, **envp;
    const char *env_end; /* where the environment's strings end */
    const struct dfi_auxv *auxv;
    const struct dfi_exe *exe;
};

/*
 * /proc/PID/auxv and the ends of arguments and environment become the program's: the kernel knows
 * those of the loader, by which a debugger would look for the program in the wrong place. So does
 * where brk(2) begins, by which a program may look for itself. Needs no right (PR_SET_MM_MAP
 * without a file); a kernel without CONFIG_CHECKPOINT_RESTORE goes on showing the loader.
 */
void dfi_show(const struct dfi_shown *shown);

/* Bytes of /proc/PID and `name`, from `at` on: how many, or a negative errno. */
long dfi_shown_read(int pid, const char *name, void *to, size_t size, uint64_t at);

/* A value of a process's /proc/PID/auxv; 0: there is none, or it may not be read. */
unsigned long dfi_shown_auxv(int pid, unsigned long type);

/* Whether what the kernel shows as the program of a process is the loader of this run. */
bool dfi_shown_is_loaded(int pid);

/*
 * The program's file by its own name, as /proc/PID/exe would show it, whatever links led to it. Of
 * a process, or (pid 0) of this one. Its length.
 */
long dfi_shown_name(int pid, const struct dfi_exe *exe, char name[PATH_MAX]);

/*
 * The same of the file that such a process executes in truth. Its length; a negative errno: it is
 * no such process, or may not be looked into (as by ptrace(2)).
 */
long dfi_shown_exe(int pid, char name[PATH_MAX]);

#endif
