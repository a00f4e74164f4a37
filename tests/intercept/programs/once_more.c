/*
 * once_more.c - a private mapping that can be read only, of a file that was mapped so before: what
 * the memory shows, and what becomes of what is stored there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (512 << 10)

static char *map(void)
{
    int fd = open("f", O_RDONLY);
    char *memory = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);

    if (memory == MAP_FAILED)
        exit(1);
    close(fd);
    return memory;
}

static void make(void)
{
    static char bytes[SIZE];
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);

    memset(bytes, 'a', sizeof(bytes));
    if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
        exit(1);
    close(fd);
}

static char in_file(off_t at)
{
    char byte = '-';
    int fd = open("f", O_RDONLY);

    if (pread(fd, &byte, 1, at) != 1)
        exit(1);
    close(fd);
    return byte;
}

/* Stays the program's own, until it says that it does not want it. */
static void stored(char *memory)
{
    mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
    memory[5000] = 'b';
    printf("stored: %c %c\n", memory[5000], in_file(5000));
    madvise(memory, SIZE, MADV_DONTNEED);
    printf("dropped: %c\n", memory[5000]);
    memory[5000] = 'c';
}

/* Where the program has not stored, memory shows what the file has now. */
static void changed(char *memory)
{
    int fd = open("f", O_WRONLY);

    if (pwrite(fd, "ddd", 3, 4999) != 3 || pwrite(fd, "ddd", 3, 20000) != 3)
        exit(1);
    close(fd);
    printf("changed: %c %c %c\n", memory[5000], memory[20001], in_file(5000));
}

static void shorter(char *memory)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (truncate("f", 4096) < 0)
            exit(2);
        exit(memory[SIZE - 1] == 'a');
    }
    waitpid(pid, &status, 0);
    printf("shorter: %d %c\n", WTERMSIG(status), memory[0]);
}

int main(void)
{
    char *memory;

    make();
    munmap(map(), SIZE);
    memory = map();
    printf("shown: %c %c\n", memory[0], memory[SIZE - 1]);
    stored(memory);
    changed(memory);
    shorter(memory);
    unlink("f");
    munmap(memory, SIZE);
    return 0;
}
