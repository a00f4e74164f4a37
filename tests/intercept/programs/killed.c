/*
 * killed.c - children that share their parent's memory, as posix_spawn(3) makes them, and are
 * killed in the middle of system calls: whether the parent can go on. killed COUNT
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t victim; /* set by the child itself, for they share it */
static volatile unsigned delay;
static char stack[1 << 18] __attribute__((aligned(16)));

static void *kill_it(void *unused)
{
    (void)unused;
    for (;;) {
        if (victim == 0) {
            sched_yield();
            continue;
        }
        for (volatile unsigned i = 0; i < delay; i++)
            ;
        kill(victim, SIGKILL);
        victim = 0;
    }
}

static void use_signals(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR1, _exit);
}

static void use_programs(void)
{
    char *const words[] = {"none", NULL};
    execve("./none", words, words + 1);
}

static void use_files(void)
{
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        _exit(3);
    close(fd);
}

static int child(void *use)
{
    pid_t own = getpid();
    for (;;) {
        victim = own; /* again: whoever has killed the one before forgets it a little later */
        ((void (*)(void))use)();
    }
}

static void end(int signal)
{
    (void)signal;
    static const char said[] = "the parent hangs\n";
    _exit(write(1, said, sizeof said - 1) > 0);
}

int main(int argc, char **argv)
{
    void (*const uses[])(void) = {use_signals, use_programs, use_files};
    int count = argc > 1 ? atoi(argv[1]) : 1, status = 0;
    pthread_t killer;
    signal(SIGALRM, end);
    srand(14);
    if (pthread_create(&killer, NULL, kill_it, NULL) != 0)
        return 2;
    for (int i = 0; i < 3 * count; i++) {
        delay = (unsigned)rand() % 20000;
        pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD,
                          (void *)uses[i % 3]);
        alarm(10);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || WTERMSIG(status) != SIGKILL)
            return 4;
        for (int use = 0; use < 3; use++)
            uses[use]();
        alarm(0);
    }
    puts("all killed");
    return 0;
}
