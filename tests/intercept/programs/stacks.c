/*
 * stacks.c - alternate signal stacks: what sigaltstack(2) promises, and threads that have set the
 * same one, which harms nobody on Linux as long as one of them handles signals at a time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31) /* linux/signal.h */
#endif

#define SIZE    65536
#define THREADS 8

static char common[SIZE], other[SIZE];
static pthread_barrier_t ready;

static void line(const char *name, long value)
{
    printf("%s %ld\n", name, value);
    fflush(stdout);
}

static long set(void *start, size_t size, int flags)
{
    stack_t stack = {.ss_sp = start, .ss_size = size, .ss_flags = flags};
    return sigaltstack(&stack, NULL) == 0 ? 0 : -errno;
}

static void show(const char *name)
{
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    sigaltstack(NULL, &stack);
    printf("%s: %s, %zu bytes, flags %#x\n", name,
           stack.ss_sp == common  ? "common"
           : stack.ss_sp == other ? "other"
                                  : "none",
           stack.ss_flags & SS_DISABLE ? 0 : stack.ss_size, (unsigned)stack.ss_flags);
    fflush(stdout);
}

static void inside(int signal)
{
    (void)signal;
    show("in the handler");
    line("another one there", set(other, SIZE, 0));
    line("none there", set(NULL, 0, SS_DISABLE));
}

static void promises(void)
{
    struct sigaction action = {.sa_handler = inside, .sa_flags = SA_ONSTACK};

    show("at first");
    line("too small", set(common, 100, 0));
    line("unknown flag", set(common, SIZE, 8));
    line("from nowhere", syscall(SYS_sigaltstack, 8, NULL) < 0 ? errno : 0);
    line("set", set(common, SIZE, 0));
    line("into nowhere", syscall(SYS_sigaltstack, NULL, 8) < 0 ? errno : 0);
    show("set");
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    show("behind the handler");
    line("disarmed while used", set(other, SIZE, (int)SS_AUTODISARM));
    show("disarmed while used");
    if (fork() == 0) {
        show("forked");
        _exit(0);
    }
    wait(NULL);
    line("none", set(NULL, 0, SS_DISABLE));
    show("none");
}

/* Calls that trap, beside others that do; each thread has values on its stack to lose. */
static void *share(void *argument)
{
    long wrong = set(common, SIZE, 0);
    stack_t stack;

    sigaltstack(NULL, &stack);
    wrong += stack.ss_sp != common || stack.ss_size != SIZE || stack.ss_flags != 0;
    pthread_barrier_wait(&ready);
    for (int i = 0; i < 20000; i++)
        wrong += syscall(SYS_getppid) != (long)argument;
    return (void *)wrong;
}

static void shared(void)
{
    pthread_t threads[THREADS];
    long wrong = 0;
    void *found;

    line("in the first thread", set(common, SIZE, 0));
    pthread_barrier_init(&ready, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, share, (void *)(long)getppid());
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &found);
        wrong += (long)found;
    }
    line("wrong", wrong);
    show("of the first thread");
}

/* A frame may have no room there: of no signal that does not come. */
static void small(void)
{
    line("small", set(common, 2048, 0));
    show("small");
    for (int i = 0; i < 8; i++)
        line("a call", getppid() > 0);
    line("none", set(NULL, 0, SS_DISABLE));
}

int main(void)
{
    promises();
    small();
    shared();
    return 0;
}
