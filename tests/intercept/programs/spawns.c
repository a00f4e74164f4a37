/*
 * spawns.c - how many pages the process has grown by when it has started a program many times:
 * spawns COUNT PROGRAM; without a program: children that share its memory and go on beside it, of
 * which every second one is killed.
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

static int child_beside(void *killed)
{
    if (*(int *)killed)
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    syscall(SYS_exit_group, 7);
    return 0;
}

static void beside(int killed)
{
    static char stack[65536] __attribute__((aligned(16)));
    int status, child = clone(child_beside, stack + sizeof stack, CLONE_VM | SIGCHLD, &killed);
    if (child < 0 || waitpid(child, &status, 0) != child)
        exit(4);
    if (killed ? !WIFSIGNALED(status) : WEXITSTATUS(status) != 7)
        exit(5);
}

static void make(char *program, int number)
{
    if (program != NULL)
        spawn(program);
    else
        beside(number % 2);
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
