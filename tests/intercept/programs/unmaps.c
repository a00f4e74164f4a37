/*
 * unmaps.c - threads that unmap the stack they run on and end by a last call without any, as those
 * of musl do that are detached: with no alternate signal stack, with one, and with one that is
 * unmapped along.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE    65536
#define THREADS 6 /* of each kind: calls trap at first */

#define THREAD                                                                                     \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_CHILD_CLEARTID)

static char elsewhere[SIZE];
static stack_t told;
static volatile int alive;

struct thread {
    char *stack;
    stack_t alternate;
};

/* Has the parent's thread-local storage, so no function of libc may fail here. */
static int run(void *argument)
{
    const struct thread *thread = argument;
    syscall(SYS_sigaltstack, &thread->alternate, NULL);
    syscall(SYS_close, syscall(SYS_open, "/dev/null", O_RDONLY));
    __asm__ volatile("mov $11, %%eax\n\t" /* munmap */
                     "syscall\n\t"
                     "mov $131, %%eax\n\t" /* sigaltstack */
                     "xor %%edi, %%edi\n\t"
                     "lea %0, %%rsi\n\t"
                     "syscall\n\t"
                     "mov $60, %%eax\n\t" /* exit */
                     "xor %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "hlt"
                     : "=m"(told)
                     : "D"(thread->stack), "S"((size_t)SIZE)
                     : "rax", "rcx", "r11", "memory");
    return 0;
}

static const char *told_of(const char *stack)
{
    if (told.ss_flags & SS_DISABLE)
        return "none";
    return told.ss_sp == elsewhere ? "elsewhere" : told.ss_sp == stack ? "along" : "another";
}

static void try(const char *kind, size_t size, char *at)
{
    for (int i = 0; i < THREADS; i++) {
        char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct thread thread = {stack, {.ss_sp = at ? at : stack, .ss_size = size}};
        if (size == 0)
            thread.alternate.ss_flags = SS_DISABLE;
        memset(&told, 0, sizeof told);
        alive = 1;
        if (clone(run, stack + SIZE, THREAD, &thread, NULL, NULL, &alive) < 0)
            return;
        while (alive)
            syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL);
        printf("ended, with %s: told of %s\n", kind, told_of(stack));
        fflush(stdout);
    }
}

int main(void)
{
    try("no alternate stack", 0, NULL);
    try("one elsewhere", SIZE, elsewhere);
    try("one along", SIZE / 2, NULL);
    return 0;
}
