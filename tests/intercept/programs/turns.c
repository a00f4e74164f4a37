/*
 * turns.c - mapped files where there is memory for a part of them, in steps that several processes
 * take one after the other: argv[1] says which. Prints what came of it.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  ((size_t)4096)
#define MIB   ((size_t)1 << 20)
#define CHUNK (MIB / 2) /* what is brought at a time */

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static unsigned char byte_of(size_t at)
{
    return (unsigned char)(at / CHUNK * 7 + at / PAGE + 1) | 1;
}

/* Every page of [from, to) is told from others. */
static int file_with(const char *name, size_t size, size_t from, size_t to)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    char page[PAGE];

    need(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "file");
    for (size_t at = from; at < to; at += PAGE) {
        memset(page, byte_of(at), PAGE);
        need(pwrite(fd, page, PAGE, (off_t)at) == (ssize_t)PAGE, "pwrite");
    }
    return fd;
}

static volatile unsigned char *map(int fd, size_t size, int prot)
{
    void *memory = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

    need(memory != MAP_FAILED, "mmap");
    return memory;
}

/* ---- steps ---- */

/* What another process waits for; who waits for one that has ended goes on too. */
struct gate {
    int ends[2];
};

static struct gate gate(void)
{
    struct gate g;

    need(pipe(g.ends) == 0, "pipe");
    return g;
}

static void let(const struct gate *g)
{
    need(write(g->ends[1], "", 1) == 1, "write");
}

/* The only process that waits here, for another that has kept the other end. */
static int await(struct gate *g)
{
    char byte;

    if (g->ends[1] >= 0)
        close(g->ends[1]);
    g->ends[1] = -1;
    return read(g->ends[0], &byte, 1) == 1;
}

static void tell(const char *who, pid_t pid)
{
    int status;

    need(waitpid(pid, &status, 0) == pid, "waitpid");
    printf("%s: exit %d, signal %d\n", who, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* ---- a scan that follows another ----
 * What one process has brought another has for nothing. It sleeps when a third one begins. */

static void follow(void)
{
    const size_t size = 72 * MIB;
    volatile unsigned char *m = map(file_with("f", size, 0, size), size, PROT_READ);
    struct gate next = gate(), done = gate(), begin = gate();
    size_t differ = 0;
    pid_t leader, third;

    if ((leader = fork()) == 0) {
        for (size_t at = 0; await(&next) && at < size; at += CHUNK) {
            differ += m[at] != byte_of(at);
            let(&done);
        }
        _exit(differ != 0);
    }
    if ((third = fork()) == 0) {
        close(next.ends[1]);
        close(done.ends[1]);
        await(&begin);
        for (size_t at = size; (at -= CHUNK) > 0;)
            differ += m[at] != byte_of(at);
        _exit(differ != 0);
    }
    for (size_t at = 0; at < 62 * MIB; at += CHUNK) {
        let(&next);
        if (!await(&done))
            break;
        differ += m[at] != byte_of(at);
    }
    close(next.ends[1]);
    tell("leader", leader);
    let(&begin);
    tell("third", third);
    printf("%zu differ\n", differ);
}

/* ---- memory of holes ----
 * Two processes touch a byte in each of many chunks, and then store into all of each. */

#define MANY ((size_t)120)

static void store(volatile unsigned char *m, size_t step, unsigned char value)
{
    for (size_t at = 0; at < MANY * CHUNK; at += step)
        m[at] = value;
}

static size_t count_other(const volatile unsigned char *m, unsigned char value)
{
    size_t count = 0;

    for (size_t at = 0; at < MANY * CHUNK; at += PAGE)
        count += m[at] != value;
    return count;
}

static void holes(void)
{
    const size_t size = 256 * MIB, behind = 128 * MIB;
    volatile unsigned char *m = map(file_with("f", size, 0, 0), size, PROT_READ | PROT_WRITE);
    struct gate touched = gate(), both = gate();
    pid_t child;

    if ((child = fork()) == 0) {
        store(m, CHUNK, 1);
        let(&touched);
        await(&both);
        store(m, PAGE, 2);
        _exit(count_other(m, 2) != 0);
    }
    await(&touched);
    store(m + behind, CHUNK, 1);
    let(&both);
    tell("child", child);
    store(m + behind, PAGE, 3);
    printf("%zu and %zu differ\n", count_other(m, 2), count_other(m + behind, 3));
}

/* ---- who is killed while it brings something ----
 * deadly.c kills it, in each chunk another process. */

static void killed(void)
{
    const size_t chunks = 128;
    int fd = open("f", O_RDONLY), status, ended = 0, differ = 0;
    volatile unsigned char *m = map(fd, chunks * CHUNK, PROT_READ);
    pid_t child;

    for (size_t i = 0; i < chunks; i++) {
        if ((child = fork()) == 0)
            _exit(m[i * CHUNK]);
        need(waitpid(child, &status, 0) == child, "waitpid");
        ended += !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
    }
    for (size_t i = 0; i < chunks; i++)
        differ += m[i * CHUNK] != i + 1;
    printf("%d not killed, %d differ\n", ended, differ);
}

/* ---- a fork while a thread reads ----
 * The child has a copy of every descriptor; deadly.c says when. */

static void *slow_read(void *arg)
{
    static char page[PAGE];
    int fd = *(int *)arg;

    need(pread(fd, page, PAGE, (off_t)(CHUNK + PAGE)) == (ssize_t)PAGE, "pread");
    return NULL;
}

static void forked(void)
{
    int fd = open("f", O_RDONLY);
    volatile unsigned char *m = map(fd, 128 * CHUNK, PROT_READ);
    struct gate end = gate();
    pthread_t thread;
    pid_t child;

    need(pthread_create(&thread, NULL, slow_read, &fd) == 0, "thread");
    mkdir("wait", 0700);
    if ((child = fork()) == 0) {
        await(&end);
        _exit(0);
    }
    mkdir("end", 0700);
    pthread_join(thread, NULL);
    printf("touched: %d\n", m[0]);
    close(end.ends[1]);
    tell("child", child);
}

/* ---- no descriptor is left ---- */

static void use_up(rlim_t hard)
{
    struct rlimit limit = {64, hard};

    need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

static void full(void)
{
    const size_t size = 24 * MIB, at = 8 * CHUNK;
    int large = file_with("large", size, 0, size), little = file_with("little", MIB, 0, MIB);
    volatile unsigned char *m = map(large, size, PROT_READ | PROT_WRITE);
    volatile unsigned char *n = map(little, MIB, PROT_READ | PROT_WRITE);
    char byte = 0;

    n[5] = 9;
    use_up(4096);
    printf("little: %zd", pread(little, &byte, 1, 5));
    printf(" %d %zd %d\n", byte, pwrite(little, "z", 1, 6), n[6]);
    printf("large: %zd", pread(large, &byte, 1, (off_t)at));
    printf(" %d %zd %d\n", byte, pwrite(large, "z", 1, (off_t)at), m[at]);
    m[at + CHUNK] = 3;
    printf("msync: %d %d\n", msync((void *)m, size, MS_SYNC), msync((void *)n, MIB, MS_SYNC));
    printf("%zd", pread(large, &byte, 1, (off_t)(at + CHUNK)));
    printf(" %d\n", byte);
}

/* Nor may there be more. */
static void fuller(void)
{
    const size_t size = 24 * MIB;
    volatile unsigned char *m = map(file_with("large", size, 0, 0), size, PROT_READ);

    use_up(64);
    printf("%d\n", m[CHUNK]);
}

/* ---- a child of vfork that is killed during a call ---- */

static volatile pid_t victim;

static void *kill_it(void *arg)
{
    (void)arg;
    while (victim == 0)
        usleep(1000);
    need(kill(victim, SIGKILL) == 0, "kill");
    return NULL;
}

static void lent(void)
{
    const size_t size = 96 * MIB;
    volatile unsigned char *m = map(file_with("f", size, 0, size), size, PROT_READ | PROT_WRITE);
    struct gate never = gate();
    size_t differ = 0;
    pthread_t thread;
    pid_t child;

    for (int i = 0; i < 4; i++) {
        victim = 0;
        need(pthread_create(&thread, NULL, kill_it, NULL) == 0, "thread");
        if ((child = vfork()) == 0) {
            victim = getpid();
            _exit((int)read(never.ends[0], (void *)m, 1));
        }
        pthread_join(thread, NULL);
        tell("child", child);
    }
    for (size_t at = 0; at < size; at += CHUNK)
        differ += m[at] != byte_of(at);
    printf("%zu differ\n", differ);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*take)(void);
    } steps[] = {{"follow", follow}, {"holes", holes}, {"killed", killed}, {"forked", forked},
                 {"lent", lent},     {"full", full},   {"fuller", fuller}};

    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; argc > 1 && i < sizeof(steps) / sizeof(steps[0]); i++)
        if (strcmp(argv[1], steps[i].name) == 0) {
            steps[i].take();
            return 0;
        }
    return 2;
}
