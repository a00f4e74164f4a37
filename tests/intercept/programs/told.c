/*
 * told.c - what sigaction(2) tells of what was set: flags and signals that the kernel does not know
 * or never blocks are gone. So programs ask which flags there are (SA_UNSUPPORTED).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static void nothing(int signal)
{
    (void)signal;
}

static void call(int signal, const struct kernel_action *set, struct kernel_action *old)
{
    if (syscall(SYS_rt_sigaction, signal, set, old, sizeof set->mask) != 0)
        abort();
}

static void tell(const char *what, const struct kernel_action *old)
{
    printf("%s: flags %lx, mask %lx\n", what, old->flags, old->mask);
}

int main(void)
{
    const int signals[] = {SIGUSR1, SIGSEGV, SIGSYS, SIGBUS};
    struct kernel_action set, old;
    struct sigaction libcs = {.sa_handler = nothing};
    for (int i = 0; i < 4; i++) {
        sigaction(signals[i], &libcs, NULL); /* for its restorer */
        call(signals[i], NULL, &set);
        set.flags |= SA_RESTART | (unsigned long)SA_RESETHAND | 0x7f0ff3f8ul | ~0ul << 32;
        set.mask = ~0ul;
        call(signals[i], &set, NULL);
        call(signals[i], NULL, &old);
        tell("handled", &old);
        set.handler = SIG_DFL;
        call(signals[i], &set, &old);
        tell("replaced", &old);
        call(signals[i], NULL, &old);
        tell("default", &old);
    }
    return 0;
}
