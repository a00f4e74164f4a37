/*
 * program.c - runs the main() of a loaded program on the calling thread; see program.h.
 */
#include "loader/program.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "host/on_stack.h"
#include "loader/hooks.h"
#include "loader/plugin.h"

/* The program that runs on this thread; a plugin's main thread runs one. */
struct run {
    jmp_buf start; /* from the program's _start back to us, with its main */
    jmp_buf end;   /* from exit() back to us */
    int status;
    df_main_function main;
};

static _Thread_local struct run *running;

enum { START_STACK = 32 * 1024 }; /* bytes; _start and our hook of __libc_start_main use < 1 KiB */

/* What the kernel puts on a new program's stack: argc, argv, environment, auxiliary vector. There
 * are no arguments and no environment in it, however many the program has: main gets them from
 * df_program_run(). The program's own libc is ours, started long ago; it reads none of it again. */
static uintptr_t *build_stack(uintptr_t *top)
{
    const uintptr_t words[] = {0, 0, 0, AT_PAGESZ, (uintptr_t)getpagesize(), AT_NULL, 0};
    uintptr_t *start = top - sizeof(words) / sizeof(words[0]);

    start -= (uintptr_t)start / sizeof(*start) % 2; /* aligned to 16 bytes, as the ABI has it */
    return memcpy(start, words, sizeof(words));
}

static _Noreturn void jump_to_entry(void *entry, uintptr_t *stack)
{
#if defined(__x86_64__)
    __asm__ volatile("mov %1, %%rsp\n\t"
                     "xor %%edx, %%edx\n\t" /* no rtld_fini */
                     "xor %%ebp, %%ebp\n\t"
                     "jmp *%0"
                     :
                     : "r"(entry), "r"(stack)
                     : "rdx", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov sp, %1\n\t"
                     "mov x0, #0\n\t"
                     "mov x29, #0\n\t"
                     "mov x30, #0\n\t"
                     "br %0"
                     :
                     : "r"(entry), "r"(stack)
                     : "x0", "memory");
#endif
    __builtin_unreachable();
}

/* Lets the program's _start find its main: it calls __libc_start_main, which is df_program_enter.
 */
static void find_main(void *entry, struct run *run)
{
    uintptr_t room[START_STACK / sizeof(uintptr_t)];
    uintptr_t *top = room + sizeof(room) / sizeof(room[0]);
    if (setjmp(run->start) == 0)
        jump_to_entry(entry, build_stack(top));
}

void df_program_enter(df_main_function main)
{
    if (!running)
        abort(); /* no program was started on this thread: nothing to return to */
    running->main = main;
    longjmp(running->start, 1);
}

bool df_program_runs(void)
{
    return running;
}

void df_program_leave(int status)
{
    if (!running)
        return;
    running->status = status;
    df_on_stack_cut(running); /* init() or destroy() may have called exit() */
    longjmp(running->end, 1);
}

/* Never inlined, as the thread may be another one after than before: no address of a thread's
 * variable may be kept. */
__attribute__((noinline)) struct df_program_place df_program_lift(void)
{
    struct df_program_place place = {running, df_guest_enter(NULL)};
    running = NULL;
    return place;
}

__attribute__((noinline)) void df_program_land(struct df_program_place place)
{
    running = place.running;
    df_guest_enter(place.guest);
}

int df_program_run(const struct df_program_start *start, struct df_guest *guest, int argc,
                   char **argv)
{
    struct run run = {.main = start->main};
    struct df_program_place before = df_program_lift();
    df_program_land((struct df_program_place){&run, guest});
    if (setjmp(run.end) == 0) {
        df_constructors_run(&start->constructors, start->base, argc, argv, environ);
        if (!run.main)
            find_main(start->entry, &run);
        run.status = run.main(argc, argv, environ) & 0xff;
    }
    df_plugin_serve_out(guest->plugin);
    if (run.status < DF_PROGRAM_KILLED)
        df_hooks_run_endings(guest, run.status); /* exit(3) in one of them leads here, too */
    df_program_land(before);
    fflush(guest->output);
    if (getpid() != guest->pid)
        df_hooks_exit(run.status); /* a child that it forked has come to its end */
    return run.status;
}
