/*
 * spawns.c - how many pages the process has grown by when it has started a program many times:
 * spawns COUNT PROGRAM; without a program: children that share its memory and go on beside it, of
 * which one in three is killed, and one has a child itself before it ends.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void spawn(char *program)
{
    char *words[] = {program, NULL};
    pid_t child;
    int status = -1;
    if (posix_spawn(&child, program, NULL, NULL, words, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

enum end { ENDS, IS_KILLED, HAS_A_CHILD };

static int child_beside(void *end)
{
    if (*(enum end *)end == IS_KILLED)
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    if (*(enum end *)end == ENDS)
        syscall(SYS_exit_group, 7);
    long child = syscall(SYS_fork);
    if (child == 0)
        syscall(SYS_exit, 0);
    syscall(SYS_wait4, child, NULL, 0, NULL);
    return 7;
}

/* Another one comes before it is waited for. */
static void beside(enum end end)
{
    static char stack[2][65536] __attribute__((aligned(16)));
    int status, child[2];
    siginfo_t info;
    for (int i = 0; i < 2; i++) {
        child[i] = clone(child_beside, stack[i] + sizeof stack[i], CLONE_VM | SIGCHLD, &end);
        if (child[i] < 0 || waitid(P_PID, (id_t)child[i], &info, WEXITED | WNOWAIT) != 0)
            exit(4);
    }
    for (int i = 0; i < 2; i++) {
        if (waitpid(child[i], &status, 0) != child[i])
            exit(5);
        if (end == IS_KILLED ? !WIFSIGNALED(status) : WEXITSTATUS(status) != 7)
            exit(6);
    }
}

static void make(char *program, int number)
{
    if (program != NULL)
        spawn(program);
    else
        beside((enum end)(number % 3));
}

static long pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long count = -1;
    if (file == NULL || fscanf(file, "%ld", &count) != 1)
        exit(2);
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 3;
    int count = atoi(argv[1]);
    long before;
    for (int i = 0; i < 20; i++) /* what is kept for the next one */
        make(argv[2], i);
    pages();
    before = pages();
    for (int i = 0; i < count; i++)
        make(argv[2], i);
    printf("pages more: %ld\n", pages() - before);
    return 0;
}
