/*
 * resized.c - several processes change a file at the same time: they map it and store there, write
 * to it, cut it. When they have ended, what is read of the file is as long as it says, is what
 * memory shows, and is still there when it is opened anew. ROUNDS times.
 *
 *     resized ROUNDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_file.h"

#define SIZE      (256 << 10)
#define PROCESSES 3
#define STEPS     25

static char was[2 * SIZE], is[2 * SIZE];

static void step(int fd, char *memory)
{
    static char bytes[20000];
    int at = SIZE / 2 + rand() % (SIZE / 4);

    memset(bytes, rand(), sizeof(bytes));
    switch (rand() % 6) {
    case 0:
    case 1:
        if (pwrite(fd, bytes, sizeof(bytes), at) < 0)
            _exit(3);
        break;
    case 2:
    case 3:
        if (ftruncate(fd, at) < 0)
            _exit(3);
        break;
    case 4:
        msync(memory, SIZE, MS_SYNC);
        break;
    default:
        memory[rand() % (SIZE / 2)] = (char)rand(); /* which nobody cuts off */
    }
}

static void change(int seed)
{
    int fd = open_file(O_CREAT | O_RDWR);
    char *memory = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);

    srand((unsigned)seed);
    for (int i = 0; i < STEPS; i++)
        step(fd, memory);
    _exit(0);
}

static void change_all(int round)
{
    int status;

    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            change(round * PROCESSES + i);
    while (wait(&status) > 0)
        if (status != 0)
            exit(3);
}

/* What is wrong, or NULL. */
static const char *look(int fd, char *memory)
{
    ssize_t size = pread(fd, was, sizeof(was), 0), shown = size < SIZE ? size : SIZE;
    struct stat st;

    if (fstat(fd, &st) < 0 || st.st_size != size)
        return "size";
    if (memcmp(was, memory, (size_t)shown) != 0)
        return "memory";
    close(fd);
    munmap(memory, SIZE);
    fd = open_file(O_CREAT | O_RDONLY);
    if (pread(fd, is, sizeof(is), 0) != size || memcmp(was, is, (size_t)size) != 0)
        return "opened anew";
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *wrong = NULL;

    for (int round = argc > 1 ? atoi(argv[1]) : 1; round > 0 && !wrong; round--) {
        int fd = open_file(O_CREAT | O_RDWR);
        char *memory =
            round % 2 ? map_shared(fd, SIZE, PROT_READ) : NULL; /* or they are the first */

        if (ftruncate(fd, SIZE) < 0)
            return 3;
        change_all(round);
        wrong = look(fd, memory ? memory : map_shared(fd, SIZE, PROT_READ));
    }
    printf("%s\n", wrong ? wrong : "one file");
    return 0;
}
