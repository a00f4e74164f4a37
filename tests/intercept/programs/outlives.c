/*
 * outlives.c - a child that shares its parent's memory, as posix_spawn(3) makes it, outlives the
 * parent, whose threads are in system calls when it is killed, exits or becomes another program:
 * whether the child can go on. outlives COUNT
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum end { KILLED, EXITS, EXECUTES, ENDS };

static int told[2];  /* by the child: its process id when it lives, and again when it has gone on */
static int alive[2]; /* nobody writes: it is closed with the parent */
static volatile int born;
static enum end end;
static char stack[1 << 18] __attribute__((aligned(16)));

static void use_signals(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR1, _exit);
}

static _Noreturn void *use_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        use_signals();
}

static void tell(void)
{
    pid_t own = getpid();
    if (write(told[1], &own, sizeof own) != sizeof own)
        _exit(3);
}

static int child(void *unused)
{
    (void)unused;
    struct pollfd parent = {.fd = alive[0], .events = POLLIN};
    close(alive[1]);
    tell();
    born = 1;
    while (poll(&parent, 1, 0) == 0)
        use_signals();
    for (int i = 0; i < 50; i++)
        use_signals();
    tell();
    _exit(0);
}

static void *bear(void *unused)
{
    (void)unused;
    return clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) < 0 ? NULL
                                                                                          : stack;
}

static void *finish(void *unused)
{
    (void)unused;
    while (!born)
        sched_yield();
    for (volatile int i = rand() % 200000; i > 0; i--)
        ;
    if (end == KILLED)
        kill(getpid(), SIGKILL);
    else if (end == EXECUTES)
        execl("/bin/sleep", "sleep", "60", NULL);
    _exit(0);
}

static void live(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_for_ever, NULL);
    pthread_create(&thread, NULL, bear, NULL);
    pthread_create(&thread, NULL, finish, NULL);
    use_for_ever(NULL);
}

/* The process id that the child tells; 0: it does not. */
static pid_t hear(void)
{
    pid_t pid = 0;
    struct pollfd child = {.fd = told[0], .events = POLLIN};
    if (poll(&child, 1, 5000) != 1 || read(told[0], &pid, sizeof pid) != sizeof pid)
        return 0;
    return pid;
}

static int round_hangs(void)
{
    if (pipe(told) != 0 || pipe2(alive, O_CLOEXEC) != 0)
        return 1;
    pid_t parent = fork();
    if (parent == 0)
        live();
    close(alive[1]);
    pid_t orphan = hear();
    int hangs = orphan == 0 || hear() != orphan;
    kill(parent, SIGKILL);
    if (orphan != 0)
        kill(orphan, SIGKILL);
    while (wait(NULL) > 0)
        ;
    close(alive[0]);
    close(told[0]);
    close(told[1]);
    return hangs;
}

int main(int argc, char **argv)
{
    static const char *const ends[] = {"is killed", "exits", "becomes another program"};
    int count = argc > 1 ? atoi(argv[1]) : 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < ENDS * count; i++) {
        end = (enum end)(i % ENDS);
        srand((unsigned)i);
        if (round_hangs())
            printf("hangs when its parent %s\n", ends[end]);
    }
    puts("all ended");
    return 0;
}
