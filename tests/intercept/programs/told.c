/*
 * told.c - what sigaction(2) tells of what was set: flags and signals that the kernel does not know
 * or never blocks are gone. So programs ask which flags there are (SA_UNSUPPORTED). And which
 * action was replaced, also one that the kernel alone has heard of.
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

static const char *name_of(void (*handler)(int))
{
    return handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignored" : "handled";
}

/* An action that ends when its signal comes, and what replaces it in turn. */
static void replace(int number)
{
    struct sigaction once = {.sa_handler = nothing, .sa_flags = (int)SA_RESETHAND};
    void (*const next[])(int) = {SIG_IGN, nothing, SIG_IGN, SIG_DFL, nothing};
    sigaction(number, &once, NULL);
    raise(number);
    for (int i = 0; i < 5; i++)
        printf("was %s\n", name_of(signal(number, next[i])));
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
    replace(SIGUSR2);
    replace(SIGBUS);
    signal(SIGPIPE, SIG_IGN); /* the first that is heard of it */
    printf("was %s\n", name_of(signal(SIGPIPE, nothing)));
    return 0;
}
