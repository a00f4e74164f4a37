/*
 * shares.c - children that ask for more of their parent than fork(2) gives, and are no threads:
 * clone(2), also with its memory. Files of the parent are whole when they have ended.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(16) char stack[1 << 16];

static int child(void *argument)
{
    char text[8] = "";
    int fd = open("file", O_RDWR);

    (void)argument;
    _exit(fd >= 0 && pread(fd, text, 4, 0) == 4 && strcmp(text, "text") == 0 ? 3 : 4);
}

static void try(const char *name, int flags)
{
    int status = 0, fd = open("file", O_RDWR | O_CREAT, 0600);
    char text[8] = "";
    ssize_t put = pwrite(fd, "text", 4, 0), got;

    pid_t pid = clone(child, stack + sizeof stack, flags | SIGCHLD, NULL);
    if (waitpid(pid, &status, 0) != pid)
        perror("waitpid");
    got = pread(fd, text, sizeof text, 0);
    printf("%s: %d %zd %zd %s %d %d\n", name, WEXITSTATUS(status), put, got, text, close(fd),
           unlink("file"));
}

int main(void)
{
    try("none", 0);
    try("descriptors", CLONE_FILES);
    try("memory", CLONE_VM);
    try("memory and descriptors", CLONE_VM | CLONE_FILES | CLONE_FS);
    try("all", CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND);
    try("descriptors, waiting", CLONE_VM | CLONE_VFORK | CLONE_FILES);
    try("none again", 0);
    return 0;
}
