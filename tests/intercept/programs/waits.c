/*
 * waits.c - clone(2) with CLONE_VFORK and without CLONE_VM, beside another thread: who makes the
 * child waits until it has ended or is another program, and nobody else does. Prints what came of
 * it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int ends[2], file;

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static pid_t make_child(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
}

static int end_of(pid_t child)
{
    int status = -1;

    waitpid(child, &status, 0);
    return status;
}

/* Uses files and the core's memory while the other thread waits; the child ends behind that. */
static void *use_files(void *unused)
{
    char byte;

    for (int i = 0; i < 200; i++) {
        void *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);

        need(memory != MAP_FAILED && pread(file, &byte, 1, 0) == 1, "use");
        need(munmap(memory, 4096) == 0 && access("ended", F_OK) != 0, "ended");
    }
    need(write(ends[1], "go", 2) == 2, "go");
    return unused;
}

static void until_it_has_ended(void)
{
    char go[2];
    pthread_t thread;
    pid_t child;

    need(pthread_create(&thread, NULL, use_files, NULL) == 0, "thread");
    if ((child = make_child()) == 0)
        _exit(read(ends[0], go, 2) != 2 || close(open("ended", O_CREAT, 0600)) != 0);
    printf("it has ended: %s", access("ended", F_OK) == 0 ? "yes" : "no");
    pthread_join(thread, NULL);
    printf(", %x\n", end_of(child));
}

static void *wait_too(void *end)
{
    char byte;

    need(read(*(int *)end, &byte, 1) == 0, "wait");
    return NULL;
}

/* The new program reads until its parent, which goes on, has closed the other end. */
static void until_it_is_another_program(char *self)
{
    char *words[] = {self, "read", NULL};
    int other[2];
    pthread_t thread;
    pid_t child;

    need(pipe2(ends, O_CLOEXEC) == 0 && pipe2(other, O_CLOEXEC) == 0, "pipe");
    need(pthread_create(&thread, NULL, wait_too, &other[0]) == 0, "thread");
    if ((child = make_child()) == 0) {
        dup2(ends[0], 0);
        execve(self, words, environ);
        _exit(1);
    }
    close(ends[1]);
    close(other[1]);
    pthread_join(thread, NULL);
    printf("it has read: %x\n", end_of(child));
}

int main(int argc, char **argv)
{
    char byte;

    if (argc > 1 && strcmp(argv[1], "read") == 0)
        return read(0, &byte, 1) != 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    file = open("f", O_RDWR | O_CREAT, 0600);
    need(file >= 0 && write(file, "x", 1) == 1 && pipe2(ends, O_CLOEXEC) == 0, "file");
    until_it_has_ended();
    until_it_is_another_program(argv[0]);
    return 0;
}
