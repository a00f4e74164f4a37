/*
 * appended.c [ROUNDS] - one process appends to a file while another maps it for the first time, and
 * again and again, with msync(2). "0 wrong": all that was appended is there. Each round keeps some
 * descriptions open, so that those of the next are ones that never were in use.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 250, PAGE = 4096, KEPT = 3 };

static const char text[16] = "0123456789abcdef";

static void map_on(void)
{
    for (;;) {
        int fd = open("f", O_RDWR);
        char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (*(volatile char *)memory == text[0])
            msync(memory, PAGE, MS_SYNC);
        munmap(memory, PAGE);
        close(fd);
    }
}

static void append(void)
{
    int fd = open("f", O_WRONLY | O_APPEND);

    for (int i = 0; i < TIMES; i++)
        if (write(fd, text, sizeof(text)) != sizeof(text))
            _exit(1);
    _exit(0);
}

static pid_t start(void (*function)(void))
{
    pid_t pid = fork();

    if (pid == 0)
        function();
    return pid;
}

static void keep_open(void)
{
    for (int i = 0; i < KEPT; i++)
        if (open("kept", O_RDWR | O_CREAT, 0600) < 0)
            exit(1);
}

static int is_wrong(void)
{
    char found[(TIMES + 2) * sizeof(text)];
    int fd = open("f", O_RDONLY);
    ssize_t size = read(fd, found, sizeof(found));

    close(fd);
    for (ssize_t at = 0; at < size; at += sizeof(text))
        if (memcmp(found + at, text, sizeof(text)) != 0)
            return 1;
    return size != (TIMES + 1) * (ssize_t)sizeof(text);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1, wrong = 0, status;

    for (int i = 0; i < rounds; i++) {
        int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
        pid_t mapping, appending;

        if (write(fd, text, sizeof(text)) != sizeof(text) || close(fd) < 0)
            return 1;
        keep_open();
        mapping = start(map_on);
        appending = start(append);
        if (waitpid(appending, &status, 0) != appending || status != 0)
            return 1;
        kill(mapping, SIGKILL);
        waitpid(mapping, NULL, 0);
        wrong += is_wrong();
    }
    printf("%d wrong\n", wrong);
    return 0;
}
