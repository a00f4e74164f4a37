/*
 * asleep.c - df-asleep: what a trip to a mount server costs whose workers sleep, beside what any
 * two processes of this machine need to wake each other by futex: a virtual machine's wake-ups
 * alone may take 30 us, and no two hours the same.
 *
 *   df-asleep FILE ROUNDS PROGRAM ARGUMENT...    FILE: regular, in the file system that is mounted
 *
 * In each round, after 2 ms in which all sleep, one of each, in turn. Prints the 10th percentile of
 * each, in ns: the trip, two wake-ups (there and back), one (the caller spins for the answer).
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "directfuse.h"

#define PAUSE_NS 2000000

/* Two words in memory of two processes; each is counted up by one of them. */
struct court {
    _Alignas(64) _Atomic uint32_t ping;
    _Alignas(64) _Atomic uint32_t pong;
};

static struct court *court;
static int fd;

static void die(const char *what)
{
    fprintf(stderr, "df-asleep: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void wake(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *word, uint32_t before)
{
    while (atomic_load(word) == before)
        syscall(SYS_futex, word, FUTEX_WAIT, before, NULL, NULL, 0);
}

/* ---- what is timed ------------------------------------------------------------------------- */

static void trip(void)
{
    char bytes[64];

    if (df_pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
        die("df_pread");
}

static void both_wake(void)
{
    uint32_t before = atomic_load(&court->pong);

    wake(&court->ping);
    await(&court->pong, before);
}

static void one_wakes(void)
{
    uint32_t before = atomic_load(&court->pong);

    wake(&court->ping);
    while (atomic_load_explicit(&court->pong, memory_order_acquire) == before)
        ;
}

static const struct {
    const char *name;
    void (*call)(void);
} rows[] = {{"trip", trip}, {"both", both_wake}, {"one", one_wakes}};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- rounds -------------------------------------------------------------------------------- */

static int64_t timed(void (*call)(void))
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    int64_t begin = now();
    call();
    return now() - begin;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void report(int rounds)
{
    int64_t *times = calloc((size_t)rounds * ROWS, sizeof(*times));

    if (!times)
        die("calloc");
    for (int round = 0; round < rounds; round++)
        for (size_t row = 0; row < ROWS; row++)
            times[row * (size_t)rounds + (size_t)round] = timed(rows[row].call);
    for (size_t row = 0; row < ROWS; row++) {
        int64_t *mine = times + row * (size_t)rounds;
        qsort(mine, (size_t)rounds, sizeof(*mine), ascending);
        printf("%s\t%lld\n", rows[row].name, (long long)mine[rounds / 10]);
    }
    free(times);
}

/* Answers each ping; ends with its parent. */
static pid_t begin_partner(void)
{
    court = mmap(NULL, sizeof(*court), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (court == MAP_FAILED)
        die("mmap");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t seen = 0; getppid() == parent; seen++) {
        await(&court->ping, seen);
        wake(&court->pong);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int rounds = argc > 4 ? atoi(argv[2]) : 0;
    char why[512];

    if (rounds < 1) {
        fprintf(stderr, "usage: df-asleep FILE ROUNDS PROGRAM ARGUMENT...\n");
        return 2;
    }
    pid_t partner = begin_partner();
    int mount = df_mount(NULL, argc - 3, argv + 3, DF_MOUNT_SERVER, why, sizeof(why));
    if (mount < 0 || (fd = df_open(argv[1], O_RDONLY, 0)) < 0)
        die(mount < 0 ? why : argv[1]);
    report(rounds);
    df_close(fd);
    kill(partner, SIGKILL);
    waitpid(partner, NULL, 0);
    return df_unmount(mount, 0) != 0;
}
