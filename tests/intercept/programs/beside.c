/*
 * beside.c - calls a system call whose code cannot become a jump by one store, while a child that
 * is no thread shares the memory: beside CALLS.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As syscall(3), of which the instruction before the syscall lies in two words. */
long crossing(long nr);
__asm__(".p2align 4\n"
        ".skip 8, 0x90\n"
        "crossing:\n"
        "movq %rdi, %rax\n"
        ".skip 3, 0x90\n"
        "movq 8(%rsp), %r9\n"
        "syscall\n"
        "ret\n");

static char stack[1 << 16];

static int wait_for_its_end(void *none)
{
    for (;;)
        pause();
    return none != NULL;
}

int main(int argc, char *argv[])
{
    int calls = argc > 1 ? atoi(argv[1]) : 0, same = 0;
    pid_t child = clone(wait_for_its_end, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

    for (int i = 0; i < calls; i++)
        same += crossing(SYS_getpid) == getpid();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("%d\n", same);
    return 0;
}
