/*
 * shortage.c - a mapped file of argv[1] MiB where there is memory for a few MiB of it: scanned and
 * stored into by processes and threads, passed to system calls, killed. Prints what it saw.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE    ((size_t)4096)
#define MIB     ((size_t)1 << 20)

#define THREADS 2

static size_t size;

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static uint64_t expected(size_t at)
{
    return at * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static void fill(int fd)
{
    uint64_t page[PAGE / 8];

    for (size_t at = 0; at < size; at += PAGE) {
        for (size_t i = 0; i < PAGE / 8; i++)
            page[i] = expected(at + i * 8);
        need(pwrite(fd, page, PAGE, (off_t)at) == (ssize_t)PAGE, "pwrite");
    }
}

/* The first and the last word of each page that are not as they should be. */
static size_t differs(const char *memory, size_t from, size_t to, uint64_t flip)
{
    size_t count = 0;

    for (size_t at = from; at < to; at += PAGE) {
        const volatile uint64_t *page = (const volatile uint64_t *)(memory + at);

        count += page[0] != (expected(at) ^ flip);
        count += page[PAGE / 8 - 1] != (expected(at + PAGE - 8) ^ flip);
    }
    return count;
}

static char *map(int fd, int prot, int flags)
{
    char *memory = mmap(NULL, size, prot, flags, fd, 0);

    need(memory != MAP_FAILED, "mmap");
    return memory;
}

/* ---- scanning ---- */

struct scan {
    pthread_t thread;
    const char *memory;
    unsigned start;
    size_t differ;
};

static void *scan_thread(void *arg)
{
    struct scan *s = arg;
    size_t from = size / THREADS * s->start;

    s->differ = differs(s->memory, from, size, 0) + differs(s->memory, 0, from, 0);
    return NULL;
}

/* Threads, each from another place on. */
static size_t scan(const char *memory)
{
    struct scan scans[THREADS];
    size_t differ = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        scans[i] = (struct scan){.memory = memory, .start = i};
        need(pthread_create(&scans[i].thread, NULL, scan_thread, &scans[i]) == 0, "thread");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(scans[i].thread, NULL);
        differ += scans[i].differ;
    }
    return differ;
}

static void scans(int fd)
{
    static const int kinds[] = {MAP_PRIVATE, MAP_SHARED};

    for (int i = 0; i < 2; i++) {
        char *memory = map(fd, PROT_READ, kinds[i]);
        int status, bad = 0;

        for (int child = 0; child < 2; child++)
            if (fork() == 0)
                _exit(scan(memory) != 0);
        printf("scan: %zu differ", scan(memory));
        while (wait(&status) > 0)
            bad += status != 0;
        printf(", %d children\n", bad);
        munmap(memory, size);
    }
}

/* ---- storing ---- */

#define FLIP UINT64_C(0x5555)

/* Every second page of those that have the remainder. */
static void flip(char *memory, size_t remainder)
{
    for (size_t at = remainder * PAGE; at < size; at += 2 * PAGE) {
        ((uint64_t *)(memory + at))[0] ^= FLIP;
        ((uint64_t *)(memory + at + PAGE))[-1] ^= FLIP;
    }
}

static void stores(int fd)
{
    char *memory = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), buffer[PAGE];
    size_t differ = 0;
    int status;

    if (fork() == 0) {
        flip(memory, 1);
        _exit(0);
    }
    flip(memory, 0);
    wait(&status);
    printf("stored: %d, %zu differ", status, differs(memory, 0, size, FLIP));
    for (size_t at = 0; at < size; at += PAGE) {
        need(pread(fd, buffer, PAGE, (off_t)at) == (ssize_t)PAGE, "pread");
        differ += differs(buffer - at, at, at + PAGE, FLIP);
    }
    printf(" in memory, %zu to read\n", differ);
    printf("msync: %d\n", msync(memory, size, MS_SYNC));
    if (fork() == 0) {
        flip(memory, 0);
        flip(memory, 1);
        kill(getpid(), SIGKILL);
    }
    wait(&status);
    printf("of one that was killed: %d, %zu differ\n", WTERMSIG(status),
           differs(memory, 0, size, 0));
    munmap(memory, size);
}

/* What a process keeps to itself it keeps, though the file's own bytes are given up around it. */
static void private_stores(int fd)
{
    char *memory = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    flip(memory, 0);
    flip(memory, 1);
    printf("private: %zu differ\n", differs(memory, 0, size, FLIP));
    if (fork() == 0)
        _exit(differs(memory, 0, size, FLIP) != 0);
    need(wait(NULL) > 0, "wait");
    munmap(memory, size);
    memory = map(fd, PROT_READ, MAP_SHARED);
    printf("the file: %zu differ\n", differs(memory, 0, size, 0));
    munmap(memory, size);
}

/* ---- system calls ---- */

static void *churn(void *arg)
{
    differs(arg, 0, size, 0);
    return NULL;
}

/* What calls look at stays while another thread needs the memory for something else. */
static void calls(int fd)
{
    char *memory = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), name[] = "copy";
    int copy = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
    char *copied;
    pthread_t thread;

    need(copy >= 0 && pipe(ends) == 0, "open");
    need(pthread_create(&thread, NULL, churn, memory) == 0, "thread");
    for (size_t at = 0, piece = 3 * MIB; at < size; at += piece) {
        piece = size - at < piece ? size - at : piece;
        need(pwrite(copy, memory + at, piece, (off_t)at) == (ssize_t)piece, "pwrite");
    }
    for (size_t at = 0; at < size; at += 512 * PAGE) {
        struct iovec parts[2] = {{memory + at, 8}, {memory + size - at - PAGE, 8}}, back[2];

        back[0] = parts[1], back[1] = parts[0];
        need(writev(ends[1], parts, 2) == 16 && readv(ends[0], back, 2) == 16, "pipe");
        need(writev(ends[1], parts, 2) == 16 && readv(ends[0], back, 2) == 16, "pipe");
    }
    pthread_join(thread, NULL);
    copied = map(copy, PROT_READ, MAP_PRIVATE);
    printf("copied: %zu differ\n", differs(copied, 0, size, 0));
    printf("swapped twice: %zu differ\n", differs(memory, 0, size, 0));
    for (size_t at = 0, piece = 3 * MIB; at < size; at += piece) {
        piece = size - at < piece ? size - at : piece;
        need(pread(copy, memory + at, piece, (off_t)at) == (ssize_t)piece, "pread");
    }
    printf("read back: %zu differ\n", differs(memory, 0, size, 0));
    memcpy(memory + size / 2, copied + size / 2, MIB);
    printf("mlock: %d %d\n", mlock(memory, 2 * PAGE), munlock(memory, 2 * PAGE));
    munmap(copied, size);
    munmap(memory, size);
    unlink(name);
}

int main(int argc, char **argv)
{
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);

    size = strtoul(argc > 1 ? argv[1] : "40", NULL, 10) * MIB;
    setvbuf(stdout, NULL, _IONBF, 0);
    need(fd >= 0, "open");
    fill(fd);
    scans(fd);
    stores(fd);
    private_stores(fd);
    calls(fd);
    close(fd);
    return 0;
}
