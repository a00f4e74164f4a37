/*
 * called.c - executes itself by each name that a program has in /proc and by descriptors, and says
 * what /proc/self/exe shows then, and what the process is called: called [DIRECTORY [HOW]], the
 * part behind DIRECTORY.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *directory, const char *how)
{
    char name[4096], comm[16];
    ssize_t size = readlink("/proc/self/exe", name, sizeof(name) - 1);
    size_t prefix = strlen(directory);

    name[size < 0 ? 0 : size] = '\0';
    prctl(PR_GET_NAME, comm);
    printf("%s: %s (%s)\n", how, strncmp(name, directory, prefix) == 0 ? name + prefix : name,
           comm);
    fflush(stdout);
}

static void start(int fd, const char *path, const char *directory, const char *how)
{
    char *argv[] = {"called", (char *)directory, (char *)how, NULL};

    if (fork() == 0) {
        execveat(fd, path, argv, environ, fd < 0 ? 0 : AT_EMPTY_PATH);
        perror(how);
        _exit(1);
    }
    wait(NULL);
}

int main(int argc, char *argv[])
{
    char path[64];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), path_fd = open(argv[0], O_PATH);

    show(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "by its name");
    if (argc != 2)
        return 0;
    start(fd, "", argv[1], "by a descriptor");
    start(path_fd, "", argv[1], "by one of O_PATH");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    start(AT_FDCWD, path, argv[1], "/proc/self/fd");
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    start(AT_FDCWD, path, argv[1], "/dev/fd");
    start(AT_FDCWD, "/proc/self/exe", argv[1], "/proc/self/exe");
    start(AT_FDCWD, "/proc/thread-self/exe", argv[1], "/proc/thread-self/exe");
    snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
    start(AT_FDCWD, path, argv[1], "that of its parent");
    return 0;
}
