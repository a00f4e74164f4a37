/*
 * numbers.c - dup2(2), close(2) and fork(2) in one thread, while others read and map files: the
 * numbers are the program's. argv[1] says what is done. Prints what came of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 64 /* all that the program has are lower */
#define LARGE   ((size_t)24 << 20)

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* ---- while others read: numbers that are free are taken and given back, again and again ---- */

static atomic_int over, wrong;

static void *read_file(void *file)
{
    int fd = *(int *)file;
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte;

    need(memory != MAP_FAILED, "map");
    for (int i = 0; !over; i++) {
        if (pread(fd, &byte, 1, 4) != 1 || byte != 't')
            wrong++;
        if (i % 16 == 0 && munmap(memory, 4096) == 0)
            memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    munmap(memory, 4096);
    return NULL;
}

static int file_of(const char *name, size_t size)
{
    int fd = open(name, O_RDWR | O_CREAT, 0600);

    need(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && pwrite(fd, "right", 5, 0) == 5, name);
    return fd;
}

/* A number that was free is the program's own from dup2 to close; 0 where it was not. */
static int take_and_give(int own, int number, ino_t ino)
{
    struct stat st;
    char byte = 0;

    if (dup2(own, number) != number)
        return 0;
    return fstat(number, &st) == 0 && st.st_ino == ino && pread(number, &byte, 1, 0) == 1 &&
           byte == 'o' && close(number) == 0;
}

static void free_numbers(int rounds)
{
    int file[] = {file_of("little", 4096), file_of("large", LARGE), file_of("large", LARGE)};
    int own = open("own", O_RDWR | O_CREAT, 0600), lost = 0;
    pthread_t thread[3];
    struct stat st;

    need(pwrite(own, "own", 3, 0) == 3 && fstat(own, &st) == 0, "own");
    for (int i = 0; i < 3; i++)
        need(pthread_create(&thread[i], NULL, read_file, &file[i]) == 0, "thread");
    for (int i = 0; i < rounds; i++)
        lost += !take_and_give(own, own + 1 + i % 4, st.st_ino);
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    printf("%d lost, %d wrong\n", lost, wrong);
}

/* ---- while a read is under way, of the file system of deadly.c ---- */

#define SLOW ((off_t)(512 << 10) + 4096)

static void *slow_read(void *fd)
{
    char bytes[64] = "";

    need(pread(*(int *)fd, bytes, sizeof(bytes), SLOW) == sizeof(bytes), "pread");
    return (void *)(intptr_t)(bytes[0] == 2 && bytes[63] == 2);
}

static void *take(void *numbers)
{
    const int *n = numbers;

    return (void *)(intptr_t)(dup2(n[0], n[1]) == n[1] && is_open(n[1]));
}

/* Those that are open and not among the first ones. */
static int strangers(int first)
{
    int count = 0;

    for (int fd = first; fd < NUMBERS; fd++)
        count += is_open(fd);
    return count;
}

static int status_of(pid_t child)
{
    int status = -1;

    waitpid(child, &status, 0);
    return status;
}

static void held(void)
{
    int fd = open("f", O_RDONLY), first = fd + 1, closed = 0, numbers[2] = {fd, first};
    pthread_t reader, taker;
    void *right, *taken;
    pid_t child;

    need(fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED, "map");
    need(pthread_create(&reader, NULL, slow_read, &fd) == 0, "thread");
    mkdir("wait", 0700);
    printf("in between: %s\n", strangers(first) > 0 ? "some" : "none");
    for (int i = first; i < NUMBERS; i++)
        closed += close(i) == 0;
    closed += close_range((unsigned)first, NUMBERS, 0) != 0;
    if ((child = fork()) == 0)
        _exit(strangers(first));
    printf("closed %d, a child's %d\n", closed, status_of(child));
    need(pthread_create(&taker, NULL, take, numbers) == 0, "thread");
    mkdir("end", 0700);
    pthread_join(reader, &right);
    pthread_join(taker, &taken);
    printf("read: %s, taken: %s\n", right ? "right" : "wrong", taken ? "yes" : "no");
    printf("left: %d\n", strangers(first));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 2 && strcmp(argv[1], "free") == 0)
        free_numbers(atoi(argv[2]));
    else if (argc > 1 && strcmp(argv[1], "held") == 0)
        held();
    else
        return 2;
    return 0;
}
