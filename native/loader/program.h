/*
 * program.h - runs the main() of a loaded program on the calling thread, and brings the thread back
 * when the program believes that it ends its process.
 *
 * A plugin object exports main. A stripped executable does not, but its entry point calls
 * __libc_start_main(main, ...), which is hooked (hooks_process.c): so the entry is entered on a
 * stack as the kernel builds it, and the hook hands main over.
 */
#ifndef DF_LOADER_PROGRAM_H
#define DF_LOADER_PROGRAM_H

#include <stdint.h>

#include "loader/constructors.h"
#include "loader/guest.h"

typedef int (*df_main_function)(int argc, char **argv, char **environment);

/* Where a program begins. */
struct df_program_start {
    struct df_constructors constructors;
    uintptr_t base; /* its load address */
    df_main_function main;
    void *entry; /* its _start, where main is NULL */
};

/*
 * Runs its constructors and main(argc, argv, environ), for `guest`. argv is the program's to
 * modify. Returns its status, 0 to 255, also when it ended with exit(3) on this thread;
 * DF_PROGRAM_KILLED + SIGABRT after abort(3) or a failed assertion.
 */
int df_program_run(const struct df_program_start *start, struct df_guest *guest, int argc,
                   char **argv);

enum { DF_PROGRAM_KILLED = 256 }; /* + the signal that would have killed its process */

/* For the hooks of exit and abort: ends df_program_run() on this thread with `status`. Returns only
 * where this thread runs no program. */
void df_program_leave(int status);

/* Whether this thread runs a program's main. */
bool df_program_runs(void);

/* What makes a thread the one that runs a program, for a main that changes threads in the middle.
 */
struct df_program_place {
    struct run *running;
    struct df_guest *guest;
};

/* Takes it from the calling thread, which runs nothing and works for nobody then; gives it to the
 * calling thread. */
struct df_program_place df_program_lift(void);
void df_program_land(struct df_program_place place);

/* For the hook of __libc_start_main. */
_Noreturn void df_program_enter(df_main_function main);

#endif
