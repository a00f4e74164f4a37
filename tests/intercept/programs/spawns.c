/*
 * spawns.c - how many pages the process has grown by when it has started a program many times:
 * spawns COUNT PROGRAM.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

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
    if (argc != 3)
        return 3;
    int count = atoi(argv[1]);
    long before;
    for (int i = 0; i < 20; i++) /* what is kept for the next one */
        spawn(argv[2]);
    pages();
    before = pages();
    for (int i = 0; i < count; i++)
        spawn(argv[2]);
    printf("pages more: %ld\n", pages() - before);
    return 0;
}
