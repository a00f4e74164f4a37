/*
 * births.c - threads that open, read and allocate while others fork, vfork and execute: births N
 * DIR.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static atomic_int ended, failures;
static const char *directory;
static int rounds;

static void expect(int good)
{
    if (!good)
        atomic_fetch_add(&failures, 1);
}

static void *use_files(void *argument)
{
    char name[300], text[16];
    snprintf(name, sizeof name, "%s/file%ld", directory, (long)argument);
    for (long i = 0; !atomic_load(&ended); i++) {
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        expect(fd >= 0 && write(fd, "0123456789", 10) == 10);
        expect(pread(fd, text, sizeof text, 3) == 7 && memcmp(text, "3456789", 7) == 0);
        expect(close(fd) == 0);
        char *memory = malloc(200000);
        expect(memory != NULL);
        memset(memory, 1, 200000);
        free(memory);
    }
    return NULL;
}

static void expect_status(pid_t child, int wanted)
{
    int status = -1;
    expect(child > 0 && waitpid(child, &status, 0) == child);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

static void child_that_writes(int number)
{
    char name[300];
    snprintf(name, sizeof name, "%s/child%d", directory, number);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    _exit(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0 && unlink(name) == 0 ? 3 : 4);
}

static void *give_birth(void *argument)
{
    char *words[] = {"sh", "-c", "exit 5", NULL};
    for (int i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child == 0)
            child_that_writes((int)(long)argument * 100000 + i);
        expect_status(child, 3);
        child = vfork();
        if (child == 0)
            _exit(6);
        expect_status(child, 6);
        expect(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
        expect_status(child, 5);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t users[3], parents[2];
    rounds = argc > 1 ? atoi(argv[1]) : 20;
    directory = argc > 2 ? argv[2] : ".";
    for (long i = 0; i < 3; i++)
        pthread_create(&users[i], NULL, use_files, (void *)i);
    for (long i = 0; i < 2; i++)
        pthread_create(&parents[i], NULL, give_birth, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(parents[i], NULL);
    atomic_store(&ended, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(users[i], NULL);
    printf("failures %d\n", atomic_load(&failures));
    return 0;
}
