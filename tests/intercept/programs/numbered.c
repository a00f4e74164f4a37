/*
 * numbered.c - children of a process whose threads copy the descriptor of a file and close the copy
 * all the time: numbers that are free in a child are those of what it opens next.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOWEST (void *)0x10000000
#define SIZE   ((size_t)64 << 20)

static atomic_bool over;
static int file;

static void *copy_it(void *none)
{
    while (!over)
        close(dup(file));
    return none;
}

/* Which fork(2) copies before all else, and after the descriptors: threads have time between. */
static bool be_large(void)
{
    void *memory = mmap(LOWEST, SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (memory != LOWEST)
        return false;
    madvise(memory, SIZE, MADV_NOHUGEPAGE);
    memset(memory, 1, SIZE);
    return true;
}

/* 0: every file is what was opened. */
static int open_others(void)
{
    int wrong = 0;
    char byte;

    for (int i = 0; i < 6; i++) {
        int fd = open("/dev/zero", O_RDONLY);

        wrong |= fd < 0 || read(fd, &byte, 1) != 1;
    }
    return wrong;
}

static int count_wrong(int children, bool shares)
{
    int wrong = 0, status;

    for (int i = 0; i < children; i++) {
        pid_t pid = shares ? vfork() : fork();

        if (pid == 0)
            _exit(open_others());
        waitpid(pid, &status, 0);
        wrong += status != 0;
    }
    return wrong;
}

int main(void)
{
    pthread_t threads[2];

    file = open("file", O_CREAT | O_RDWR, 0600);
    if (file < 0 || !be_large())
        return 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, copy_it, NULL);
    printf("%d of fork", count_wrong(200, false));
    printf(", %d of vfork\n", count_wrong(2000, true));
    over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
