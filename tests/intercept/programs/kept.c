/*
 * kept.c - signals that are blocked when they are sent wait through fork(2) and execve(2), and are
 * there when they are let in; the mask goes along, whatever is in it.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 8 /* of the kernel's masks */

static volatile sig_atomic_t handled;

static void count(int signal)
{
    (void)signal;
    handled++;
}

static unsigned long bit(int signal)
{
    return 1ul << (signal - 1);
}

static void set_mask(unsigned long mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, SIZE);
}

static int executed(void)
{
    struct sigaction action = {.sa_handler = count};
    unsigned long mask = 0, pending = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, SIZE);
    syscall(SYS_rt_sigpending, &pending, SIZE);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    set_mask(0);
    printf("mask %lx, pending %lx, handled %d\n", mask, pending, (int)handled);
    return 0;
}

/* In a child: blocks, is sent, has a child of its own, executes. */
static void keep(const char *self, unsigned long mask)
{
    int status;
    set_mask(mask);
    kill(getpid(), SIGBUS);
    kill(getpid(), SIGUSR1);
    if (fork() == 0)
        _exit(0);
    if (wait(&status) < 0 || execl("/no/such/program", "none", (char *)NULL) == 0)
        abort();
    execl(self, self, "executed", (char *)NULL);
    abort();
}

int main(int argc, char **argv)
{
    const unsigned long masks[] = {bit(SIGBUS) | bit(SIGUSR1), ~0ul};
    int status;
    if (argc > 1)
        return executed();
    for (int i = 0; i < 2; i++) {
        if (fork() == 0)
            keep(argv[0], masks[i]);
        if (wait(&status) < 0)
            abort();
        printf("ended %d\n", status);
        fflush(stdout);
    }
    return 0;
}
