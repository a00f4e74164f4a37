/*
 * overtaken.c - writes each page of a file once, by write(2), while another process that has it
 * mapped is killed, or unmaps and closes it: what that process never stored is written back over
 * nothing. When nobody has the file open any more it holds what was written. ROUNDS times.
 *
 *     overtaken ROUNDS kill|munmap
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_file.h"

#define PAGE  4096
#define PAGES 512

static char bytes[PAGES * PAGE];

static void make_file(void)
{
    int fd = open_file(O_RDWR | O_CREAT | O_TRUNC);

    memset(bytes, 'a', sizeof(bytes));
    if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
        _exit(3);
    close(fd);
}

static void map_file(int told, int delay)
{
    int fd = open_file(O_RDWR);
    char *memory = map_shared(fd, sizeof(bytes), PROT_READ | PROT_WRITE);

    if (write(told, memory, 1) != 1)
        _exit(3);
    if (delay == 0)
        pause();
    usleep((useconds_t)delay);
    munmap(memory, sizeof(bytes));
    close(fd);
    pause();
}

static void write_file(void)
{
    int fd = open_file(O_WRONLY);
    char page[PAGE];

    memset(page, 'b', PAGE);
    for (int i = 0; i < PAGES; i++)
        if (pwrite(fd, page, PAGE, (off_t)i * PAGE) != PAGE)
            _exit(3);
    usleep(20000); /* what a killed process had is looked at before this one ends */
    _exit(0);
}

static int count_lost(void)
{
    int fd = open_file(O_RDONLY), lost = 0;

    if (read(fd, bytes, sizeof(bytes)) != sizeof(bytes))
        _exit(3);
    for (int i = 0; i < PAGES; i++)
        lost += bytes[i * PAGE] != 'b';
    close(fd);
    return lost;
}

static int one_round(int kills)
{
    int mapped[2], delay = rand() % 5000;
    pid_t maps, writes;
    char byte;

    make_file();
    if (pipe(mapped) < 0)
        _exit(3);
    if ((maps = fork()) == 0)
        map_file(mapped[1], kills ? 0 : 500 + delay);
    if (read(mapped[0], &byte, 1) != 1)
        _exit(3);
    if ((writes = fork()) == 0)
        write_file();
    usleep((useconds_t)(300 + delay));
    if (kills)
        kill(maps, SIGKILL);
    waitpid(writes, NULL, 0);
    kill(maps, SIGKILL);
    waitpid(maps, NULL, 0);
    close(mapped[0]);
    close(mapped[1]);
    usleep(20000);
    return count_lost();
}

int main(int argc, char **argv)
{
    int lost = 0;

    for (int i = 0; i < atoi(argv[1]); i++)
        lost += one_round(strcmp(argv[argc - 1], "kill") == 0);
    return printf("lost %d\n", lost) < 0;
}
