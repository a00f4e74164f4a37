/*
 * worker.c - df-bench: one route of a benchmark. It makes (or finds) its files, then times what it
 * is told to, a sample at a time, so that the routes of several processes can take turns.
 *
 *     df-bench [--threads N] [--find] [--mount LIBRARY ARG0 ARG... --]... DOOR:DIRECTORY
 *     df-bench --list
 *
 * DOOR is kernel, direct (the kernel's, files opened with O_DIRECT) or inline. Each thread has a
 * directory of its own in DIRECTORY, which is empty and belongs to us; with --find nothing is made
 * and only what reads is timed. Standard input has orders, standard output a line of JSON for each,
 * the first of which says that all is ready:
 *
 *     THREADS COUNT WORKLOAD      -> {"ns": 35.1, "cpu_ns": 35.0, "switches": 0}
 *
 * ns is wall time an operation of one thread, cpu_ns and switches are this process's, an operation
 * of all threads. At the end of input comes what mounts made here have counted.
 */
#include <directfuse.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "workload.h"

enum { THREADS_MAX = 16, MOUNTS_MAX = 4, OPS_MAX = 64 };

struct worker {
    int mounts[MOUNTS_MAX];
    int mount_count;
    int threads; /* sites that were prepared */
    bool finds;
    struct site sites[THREADS_MAX];
};

static int fail(const char *what, const char *which)
{
    fprintf(stderr, "df-bench: %s: %s: %s\n", which, what, strerror(errno));
    return -1;
}

/* ---- one sample
 * ----------------------------------------------------------------------------------- */

struct lane {
    pthread_t thread;
    pthread_barrier_t *start;
    const struct workload *workload;
    struct site *site;
    uint64_t count;
    int error;
    double end_ns;
};

struct usage {
    double cpu_ns;
    long switches;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct usage usage_now(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (struct usage){
        .cpu_ns = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
                  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3,
        .switches = used.ru_nvcsw + used.ru_nivcsw,
    };
}

static void run_lane(struct lane *lane)
{
    lane->error = lane->workload->run(lane->workload, lane->site, lane->count) != 0 ? errno : 0;
    lane->end_ns = now_ns();
}

static void *lane_thread(void *argument)
{
    struct lane *lane = argument;

    pthread_barrier_wait(lane->start);
    run_lane(lane);
    return NULL;
}

/* More than one thread: they start together, the sample ends with the last. */
static double run_threads(struct lane *lanes, int threads)
{
    pthread_barrier_t start;
    double end = 0;

    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        lanes[i].start = &start;
        if (pthread_create(&lanes[i].thread, NULL, lane_thread, &lanes[i]) != 0)
            abort(); /* the barrier could never be left */
    }
    double begin = now_ns();
    pthread_barrier_wait(&start);
    for (int i = 0; i < threads; i++) {
        pthread_join(lanes[i].thread, NULL);
        end = lanes[i].end_ns > end ? lanes[i].end_ns : end;
    }
    pthread_barrier_destroy(&start);
    return end - begin;
}

static void sample(struct worker *worker, const struct workload *workload, int threads,
                   uint64_t count)
{
    struct lane lanes[THREADS_MAX] = {0};
    double spent;

    for (int i = 0; i < threads; i++)
        lanes[i] = (struct lane){.workload = workload, .site = &worker->sites[i], .count = count};
    struct usage before = usage_now();
    if (threads == 1) {
        double begin = now_ns();
        run_lane(&lanes[0]);
        spent = lanes[0].end_ns - begin;
    } else {
        spent = run_threads(lanes, threads);
    }
    struct usage after = usage_now();
    double each = (double)count, all = each * threads;
    for (int i = 0; i < threads; i++) {
        if (lanes[i].error) {
            printf("{\"error\": \"%s\"}\n", strerror(lanes[i].error));
            return;
        }
    }
    printf("{\"ns\": %.3f, \"cpu_ns\": %.3f, \"switches\": %.6f}\n", spent / each,
           (after.cpu_ns - before.cpu_ns) / all, (double)(after.switches - before.switches) / all);
}

/* ---- orders
 * ---------------------------------------------------------------------------------------- */

static void obey(struct worker *worker, char *line)
{
    unsigned long long count;
    int threads, used = 0;

    line[strcspn(line, "\n")] = '\0';
    const struct workload *workload = NULL;
    if (sscanf(line, "%d %llu %n", &threads, &count, &used) == 2 && used > 0)
        workload = workload_find(line + used);
    if (!workload || threads < 1 || threads > worker->threads || count < 1)
        printf("{\"error\": \"not understood\"}\n");
    else if (workload->writes && worker->finds)
        printf("{\"error\": \"writes, and nothing is to be written\"}\n");
    else
        sample(worker, workload, threads, count);
    fflush(stdout);
}

static void print_path(const char *name, const char *path)
{
    printf(", \"%s\": \"", name);
    for (const char *at = path; *at; at++)
        printf(*at == '"' || *at == '\\' || (unsigned char)*at < 32 ? "?" : "%c", *at);
    printf("\"");
}

static void print_ready(const struct worker *worker)
{
    const struct site *site = &worker->sites[0];

    printf("{\"ready\": true, \"data_size\": %lld", (long long)site->data_size);
    print_path("shallow", site->deep2);
    print_path("deep", site->deep4);
    print_path("data", site->data);
    print_path("crowd", site->crowd);
    printf("}\n");
    fflush(stdout);
}

/* What the mounts have served: the proof that this route was used. */
static void print_counts(const struct worker *worker)
{
    uint64_t calls = 0;

    for (int m = 0; m < worker->mount_count; m++) {
        struct df_op_stats ops[OPS_MAX];
        int count = df_stats(worker->mounts[m], ops, OPS_MAX);
        for (int i = 0; i < count && i < OPS_MAX; i++)
            calls += ops[i].calls;
    }
    printf("{\"calls\": %llu}\n", (unsigned long long)calls);
    fflush(stdout);
}

static void print_list(void)
{
    for (int i = 0; i < workload_count; i++)
        printf("%s\t%s\n", workloads[i].writes ? "writes" : "reads", workloads[i].name);
}

/* ---- the command line
 * ------------------------------------------------------------------------------- */

/* Mounts LIBRARY ARG0 ARG..., which ends with "--"; returns how many words that took. */
static int mount_inline(struct worker *worker, char **argv)
{
    int count = 0;

    while (argv[count] && strcmp(argv[count], "--") != 0)
        count++;
    if (count < 2 || !argv[count] || worker->mount_count == MOUNTS_MAX) {
        fprintf(stderr, "df-bench: --mount LIBRARY ARG0 ARG... -- (%d at most)\n", MOUNTS_MAX);
        return -1;
    }
    argv[count] = NULL;
    char why[4096] = "";
    int id = df_mount(argv[0], count - 1, argv + 1, 0, why, sizeof(why));
    if (id < 0) {
        fprintf(stderr, "df-bench: %s: %s: %s\n", argv[1], strerror(errno), why);
        return -1;
    }
    worker->mounts[worker->mount_count++] = id;
    return count + 1;
}

static int prepare_one(struct worker *worker, int i, const struct door *door, const char *directory)
{
    char *root;

    if (worker->finds)
        return site_find(&worker->sites[i], door, directory);
    if (asprintf(&root, "%s/%d", directory, i) < 0)
        return -1;
    int result = door->mkdirat(AT_FDCWD, root, 0700);
    if (result == 0)
        result = site_make(&worker->sites[i], door, root);
    free(root);
    return result;
}

static int prepare(struct worker *worker, int threads, char *word)
{
    static const struct door *const doors[] = {&door_kernel, &door_direct, &door_inline};
    char *directory = strchr(word, ':');
    const struct door *door = NULL;

    for (size_t i = 0; directory && i < sizeof(doors) / sizeof(doors[0]); i++)
        if (strlen(doors[i]->name) == (size_t)(directory - word) &&
            strncmp(word, doors[i]->name, (size_t)(directory - word)) == 0)
            door = doors[i];
    if (!door) {
        fprintf(stderr, "df-bench: %s: wanted kernel:, direct: or inline:DIRECTORY\n", word);
        return -1;
    }
    for (; worker->threads < threads; worker->threads++) {
        if (prepare_one(worker, worker->threads, door, directory + 1) != 0) {
            worker->threads++; /* to be released */
            return fail(worker->finds ? "no files found" : "making files", directory + 1);
        }
    }
    return 0;
}

static int start(struct worker *worker, int argc, char **argv)
{
    int threads = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--find") == 0) {
            worker->finds = true;
        } else if (strcmp(argv[i], "--mount") == 0) {
            int used = mount_inline(worker, argv + i + 1);
            if (used < 0)
                return -1;
            i += used;
        } else if (threads < 1 || threads > THREADS_MAX || i + 1 < argc) {
            break;
        } else {
            return prepare(worker, threads, argv[i]);
        }
    }
    fprintf(stderr, "df-bench: see the first comment of worker.c\n");
    return -1;
}

static int release(struct worker *worker)
{
    int result = 0;

    for (int i = 0; i < worker->threads; i++)
        site_release(&worker->sites[i]);
    for (int m = 0; m < worker->mount_count; m++) {
        if (df_unmount(worker->mounts[m], 0) != 0)
            result = fail("unmount", "inline");
    }
    return result;
}

int main(int argc, char **argv)
{
    static struct worker worker;
    char line[256];

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        print_list();
        return 0;
    }
    int result = start(&worker, argc, argv);
    if (result == 0) {
        print_ready(&worker);
        while (fgets(line, sizeof(line), stdin))
            obey(&worker, line);
        print_counts(&worker);
    }
    return release(&worker) != 0 || result != 0;
}
