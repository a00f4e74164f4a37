/*
 * dispatch.c - df-dispatch: what a call costs above the file system's own function. Its file system
 * answers at once, so the time of a df_* call is the way there: door, gate, route, descriptors.
 *
 *     df-dispatch [ROUNDS]
 *
 * Prints the 10th percentile of alternating rounds in ns: the bare op by pointer, the same op
 * through the C door from one thread, from two threads at the same time on files of their own, and
 * from two processes, forked, which share nothing: what those lose to each other is the machine's,
 * whose two CPUs may be two halves of one core, or busy elsewhere.
 */
#include <directfuse.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/call.h"
#include "core/file.h"
#include "core/mount.h"
#include "core/ops.h"

/* COUNT: a sample shorter than a time slice, so that on a busy machine some run undisturbed. */
enum { ROUNDS = 301, COUNT = 5000 };

static const char path[] = "/directfuse-dispatch/directory/file";

/* ---- a file system that does nothing ---- */

static int null_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    (void)fs, (void)call, (void)where;
    st->st_mode = S_IFREG | 0600;
    return 0;
}

static int null_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                     struct df_file *file, int flags, mode_t mode)
{
    (void)fs, (void)call, (void)where, (void)flags, (void)mode;
    file->kind = DF_KIND_REGULAR;
    file->traits = DF_FILE_NOFLUSH;
    return 0;
}

static ssize_t null_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         const struct iovec *iov, int iovcnt, off_t offset)
{
    (void)fs, (void)call, (void)file, (void)iovcnt, (void)offset;
    return (ssize_t)iov[0].iov_len;
}

static ssize_t null_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t *offset)
{
    (void)fs, (void)call, (void)file, (void)iovcnt, (void)offset;
    return (ssize_t)iov[0].iov_len;
}

static int null_flush(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner)
{
    (void)fs, (void)call, (void)file, (void)owner;
    return 0;
}

static void null_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    (void)fs, (void)call, (void)file;
}

static void null_destroy(struct df_fs *fs)
{
    (void)fs;
}

/* No df_ops_complete(): these are all the ops that the calls below reach. */
static const struct df_ops null_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = null_getattr,
    .open = null_open,
    .flush = null_flush,
    .release = null_release,
    .read = null_read,
    .write = null_write,
    .destroy = null_destroy,
};

static struct df_fs null_fs = {.ops = &null_ops};

/* ---- what is timed: each returns ns an operation, or exits ---- */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "df-dispatch: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static double bare_pread(void)
{
    struct df_fs *volatile fs = &null_fs; /* volatile: the compiler must not see through it */
    struct df_file file = {0};
    char byte;
    struct iovec iov = {&byte, 1};
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        struct df_fs *here = fs;
        must(here->ops->read(here, NULL, &file, &iov, 1, 0) == 1, "read");
    }
    return (now_ns() - start) / COUNT;
}

static double bare_pwrite(void)
{
    struct df_fs *volatile fs = &null_fs;
    struct df_file file = {0};
    char byte = 0;
    struct iovec iov = {&byte, 1};
    off_t offset = 0;
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        struct df_fs *here = fs;
        must(here->ops->write(here, NULL, &file, &iov, 1, &offset) == 1, "write");
    }
    return (now_ns() - start) / COUNT;
}

static double bare_stat(void)
{
    struct df_fs *volatile fs = &null_fs;
    struct stat st;
    struct df_where where = {.name = "/directory/file", .len = 15};
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        struct df_fs *here = fs;
        must(here->ops->getattr(here, NULL, &where, &st) == 0, "getattr");
    }
    return (now_ns() - start) / COUNT;
}

static double bare_open(void)
{
    struct df_fs *volatile fs = &null_fs;
    struct df_file file = {0};
    struct df_where where = {.name = "/directory/file", .len = 15};
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        struct df_fs *here = fs;
        must(here->ops->open(here, NULL, &where, &file, O_RDONLY, 0) == 0, "open");
        here->ops->release(here, NULL, &file);
    }
    return (now_ns() - start) / COUNT;
}

static double door_pread(void)
{
    int fd = df_open(path, O_RDONLY, 0);
    must(fd >= 0, "df_open");
    char byte;
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        must(df_pread(fd, &byte, 1, 0) == 1, "df_pread");
    }
    double ns = (now_ns() - start) / COUNT;
    df_close(fd);
    return ns;
}

static double door_pwrite(void)
{
    int fd = df_open(path, O_RDWR, 0);
    must(fd >= 0, "df_open");
    char byte = 0;
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        must(df_pwrite(fd, &byte, 1, 0) == 1, "df_pwrite");
    }
    double ns = (now_ns() - start) / COUNT;
    df_close(fd);
    return ns;
}

static double door_stat(void)
{
    struct stat st;
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        must(df_stat(path, &st) == 0, "df_stat");
    }
    return (now_ns() - start) / COUNT;
}

static double door_open(void)
{
    double start = now_ns();
    for (int i = 0; i < COUNT; i++) {
        int fd = df_open(path, O_RDONLY | O_CLOEXEC, 0);
        must(fd >= 0 && df_close(fd) == 0, "df_open");
    }
    return (now_ns() - start) / COUNT;
}

static const struct {
    const char *name;
    double (*bare)(void);
    double (*door)(void);
} rows[] = {
    {"pread", bare_pread, door_pread},
    {"pwrite", bare_pwrite, door_pwrite},
    {"stat, depth 2", bare_stat, door_stat},
    {"open+close", bare_open, door_open},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- rounds ---- */

struct worker {
    pthread_t thread;
    pid_t process;
    _Atomic int *arrived; /* of the two */
    double (*run)(void);
    double begun, ended; /* ns */
    double ns;           /* an operation */
};

/* Waits for the other one awake: to be woken takes longer than a sample. */
static void meet(_Atomic int *arrived)
{
    atomic_fetch_add(arrived, 1);
    for (int looks = 1; atomic_load(arrived) < 2; looks++) {
        if (looks % 1000 == 0)
            sched_yield(); /* it may need this CPU */
    }
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    worker->run(); /* a process begins with pages that are not its own yet */
    meet(worker->arrived);
    worker->begun = now_ns();
    worker->ns = worker->run();
    worker->ended = now_ns();
    return NULL;
}

/* Whether they ran at the same time for most of it; on a busy machine one may wait for a CPU. */
static bool overlapped(const struct worker *a, const struct worker *b)
{
    double begun = a->begun > b->begun ? a->begun : b->begun;
    double ended = a->ended < b->ended ? a->ended : b->ended;
    double longest = a->ended - a->begun;
    if (b->ended - b->begun > longest)
        longest = b->ended - b->begun;
    return ended - begun > 0.8 * longest;
}

static void start_thread(struct worker *worker)
{
    must(pthread_create(&worker->thread, NULL, work, worker) == 0, "pthread_create");
}

static void join_thread(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
}

static void start_process(struct worker *worker)
{
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        work(worker);
        _exit(0);
    }
    worker->process = child; /* the child sees this memory, too */
}

static void join_process(struct worker *worker)
{
    must(waitpid(worker->process, NULL, 0) == worker->process, "waitpid");
}

struct pair {
    _Atomic int arrived;
    struct worker workers[2];
};

/* The slower of two that run at the same time; INFINITY if they did not. */
static double together(double (*run)(void), void (*start)(struct worker *),
                       void (*join)(struct worker *))
{
    static struct pair *pair; /* shared with forked processes */
    if (!pair)
        pair = mmap(NULL, sizeof(*pair), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(pair != MAP_FAILED, "mmap");
    atomic_store(&pair->arrived, 0);
    for (int i = 0; i < 2; i++) {
        pair->workers[i] = (struct worker){.arrived = &pair->arrived, .run = run};
        start(&pair->workers[i]);
    }
    for (int i = 0; i < 2; i++)
        join(&pair->workers[i]);
    if (!overlapped(&pair->workers[0], &pair->workers[1]))
        return INFINITY;
    double first = pair->workers[0].ns, second = pair->workers[1].ns;
    return first > second ? first : second;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 10th percentile of the finite samples; NAN if these are too few to say anything. */
static double p10(double *samples, int count)
{
    int finite = 0;
    qsort(samples, count, sizeof(*samples), ascending);
    while (finite < count && isfinite(samples[finite]))
        finite++;
    return finite > count / 10 ? samples[finite / 10] : NAN;
}

enum { BARE, DOOR, THREADS, PROCESSES, KINDS };

static void report(int rounds)
{
    double *samples = calloc((size_t)rounds * ROWS * KINDS, sizeof(*samples));
    must(samples != NULL, "calloc");
    for (int round = 0; round < rounds; round++) {
        for (int row = 0; row < ROWS; row++) {
            double *mine = samples + (size_t)row * KINDS * rounds + round;
            mine[BARE * rounds] = rows[row].bare();
            mine[DOOR * rounds] = rows[row].door();
            mine[THREADS * rounds] = together(rows[row].door, start_thread, join_thread);
            mine[PROCESSES * rounds] = together(rows[row].door, start_process, join_process);
        }
    }
    printf("operation\top alone\tthrough the door\tabove\ttwo threads\ttwo processes\n");
    for (int row = 0; row < ROWS; row++) {
        double *mine = samples + (size_t)row * KINDS * rounds;
        double bare = p10(mine, rounds), door = p10(mine + DOOR * rounds, rounds);
        printf("%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", rows[row].name, bare, door, door - bare,
               p10(mine + THREADS * rounds, rounds), p10(mine + PROCESSES * rounds, rounds));
    }
    free(samples);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    if (rounds < 1) {
        fprintf(stderr, "usage: df-dispatch [ROUNDS]\n");
        return 2;
    }
    struct df_mount *mount;
    struct df_mount_spec spec = {.point = "/directfuse-dispatch"};
    errno = -df_mount_attach(&spec, &null_fs, &mount);
    must(errno == 0, "df_mount_attach");
    report(rounds);
    errno = -df_mount_detach(mount->id, 0);
    must(errno == 0, "df_mount_detach");
    return 0;
}
