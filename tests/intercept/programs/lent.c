/*
 * lent.c - children that share their parent's signal handlers and are no threads (CLONE_SIGHAND):
 * what one of them sets is so for all of them.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define SHARED (CLONE_VM | CLONE_SIGHAND)

static volatile sig_atomic_t handled;
static char stacks[3][65536] __attribute__((aligned(16)));

static void handler(int signal)
{
    (void)signal;
    handled++;
}

static int make(int (*function)(void *), int depth, int flags)
{
    int status = -1;
    int pid = clone(function, stacks[depth] + sizeof stacks[depth], flags | SIGCHLD, NULL);
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int set(void *none)
{
    (void)none;
    signal(SIGUSR1, handler);
    signal(SIGSEGV, handler);
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR2, SIG_DFL);
    return 3;
}

static int grandchild(void *none)
{
    (void)none;
    return make(set, 1, SHARED) >> 8;
}

static void tell(const char *what, int status)
{
    static const int signals[] = {SIGUSR1, SIGSEGV, SIGTERM, SIGUSR2};
    struct sigaction found;
    printf("%s: status %x,", what, (unsigned)status);
    for (int i = 0; i < 4; i++) {
        sigaction(signals[i], NULL, &found);
        printf(" %s", found.sa_handler == handler   ? "handler"
                      : found.sa_handler == SIG_IGN ? "ignored"
                                                    : "default");
    }
    handled = 0;
    raise(SIGTERM);
    if (found.sa_handler == SIG_DFL) {
        raise(SIGUSR1);
        raise(SIGSEGV);
    }
    printf("; handled %d\n", (int)handled);
    fflush(stdout);
}

static void reset(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGSEGV, SIG_IGN);
    signal(SIGTERM, handler);
    signal(SIGUSR2, handler);
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        reset();
        tell("shared", make(set, 0, SHARED));
        reset();
        tell("by a grandchild", make(grandchild, 0, SHARED));
        reset();
        tell("while the parent waits", make(set, 0, SHARED | CLONE_VFORK));
        reset();
        tell("not shared", make(set, 0, CLONE_VM));
    }
    return 0;
}
