/*
 * emptied.c ROUNDS BY BESIDE - a file is emptied by ftruncate(2) or by an open(2) with O_TRUNC,
 * while a child that has it mapped and has stored in it unmaps it, is killed, or writes to it. How
 * often the file then had bytes that it should not have, or a size that its bytes did not have.
 *
 *     emptied ROUNDS ftruncate|open munmap|kill|write
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_file.h"

#define PAGE 4096
#define SIZE (16 * PAGE)

static char bytes[SIZE];
static _Atomic int *turn; /* 1: the file is mapped; 2: go */

static void make_file(void)
{
    int fd = open_file(O_RDWR | O_CREAT | O_TRUNC);

    if (write(fd, bytes, SIZE) != SIZE)
        _exit(3);
    close(fd);
}

static void wait_for(int wanted)
{
    while (atomic_load(turn) != wanted)
        sched_yield();
}

static void child(const char *beside)
{
    int fd = open_file(O_RDWR);
    char *memory = map_shared(fd, SIZE, PROT_READ | PROT_WRITE);

    for (int at = 0; at < SIZE; at += PAGE)
        memory[at] = 'm';
    atomic_store(turn, 1);
    wait_for(2);
    if (strcmp(beside, "kill") == 0)
        pause();
    if (strcmp(beside, "write") == 0)
        _exit(pwrite(fd, bytes, PAGE, 0) != PAGE);
    munmap(memory, SIZE);
    _exit(0);
}

static void empty(int fd, const char *by)
{
    if (strcmp(by, "open") == 0)
        close(open_file(O_WRONLY | O_TRUNC));
    else if (ftruncate(fd, 0) < 0)
        _exit(3);
}

/* Whether its size is that of its bytes, and of none that were not written. */
static int is_right(int fd, const char *beside)
{
    struct stat st;
    ssize_t got;

    if (fstat(fd, &st) < 0)
        _exit(3);
    got = pread(fd, bytes, SIZE, 0);
    memset(bytes, 'o', SIZE);
    return got == st.st_size && (got == 0 || (got == PAGE && strcmp(beside, "write") == 0));
}

static int one_round(const char *by, const char *beside)
{
    int fd, right, kills = strcmp(beside, "kill") == 0;
    pid_t pid;

    make_file();
    atomic_store(turn, 0);
    if ((pid = fork()) == 0)
        child(beside);
    fd = open_file(O_RDWR);
    wait_for(1);
    atomic_store(turn, 2);
    if (kills)
        kill(pid, SIGKILL);
    for (volatile int i = rand() % (kills ? 1000000 : 100000); i > 0; i--)
        ;
    empty(fd, by);
    waitpid(pid, NULL, 0);
    right = is_right(fd, beside);
    close(fd);
    fd = open_file(O_RDONLY);
    right &= is_right(fd, beside);
    close(fd);
    return !right;
}

int main(int argc, char **argv)
{
    int wrong = 0;

    memset(bytes, 'o', SIZE);
    turn = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; argc == 4 && i < atoi(argv[1]); i++)
        wrong += one_round(argv[2], argv[3]);
    return printf("wrong %d\n", wrong) < 0;
}
