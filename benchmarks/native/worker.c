/*
 * worker.c - df-bench: one route of a benchmark. It makes (or finds) its files, then times what it
 * is told to, a sample at a time, so that the routes of several processes can take turns.
 *
 *     df-bench [OPTION...] [--mount LIBRARY ARG0 ARG... --]... DOOR:DIRECTORY
 *     df-bench --list
 *     df-bench --distance
 *
 * DOOR is kernel or inline. Each lane has a directory of its own in DIRECTORY, which is empty and
 * belongs to us.
 *
 *     --lanes N    threads or processes at the same time, at most; one by default
 *     --find       nothing is made, and only what reads is timed
 *     --scribble   with --find: what is found may be overwritten
 *     --direct     the file of data is opened with O_DIRECT
 *     --real DIR   the directory on disk that DIRECTORY shows
 *     --server     what --mount names lives in a mount server, not here
 *
 * Standard input has orders, standard output a line of JSON for each, the first of which says that
 * all is ready:
 *
 *     LANES COUNT WORKLOAD      -> {"ns": 35.1, "cpu_ns": 35.0, "switches": 0}
 *
 * LANES is a number of threads, or of processes with a `p` behind it. At the end of input comes
 * what mounts made here have counted.
 */
#include <directfuse.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "distance.h"
#include "sample.h"

enum { MOUNTS_MAX = 4, OPS_MAX = 64 };

struct worker {
    int mounts[MOUNTS_MAX];
    int mount_count;
    unsigned mount_flags;
    int wanted; /* lanes */
    int lanes;  /* sites that were prepared */
    bool finds;
    struct site_plan plan;
    struct site sites[LANES_MAX];
};

static int fail(const char *what, const char *which)
{
    fprintf(stderr, "df-bench: %s: %s: %s\n", which, what, strerror(errno));
    return -1;
}

static void answer_sample(struct worker *worker, const struct workload *workload, int lanes,
                          bool processes, uint64_t count)
{
    struct sample sample;
    int error = sample_take(workload, worker->sites, lanes, processes, count, &sample);

    if (error)
        printf("{\"error\": \"%s\"}\n", strerror(error));
    else
        printf("{\"ns\": %.3f, \"cpu_ns\": %.3f, \"switches\": %.6f}\n", sample.ns, sample.cpu_ns,
               sample.switches);
}

/* Whether what was found has no such piece. One of a page is what there is, of a smaller file. */
static bool is_beyond(const struct worker *worker, const struct workload *workload)
{
    return worker->finds && !worker->plan.scribble && workload->size > SITE_SMALL &&
           (off_t)workload->size > worker->sites[0].data_size;
}

/* ---- orders
 * ---------------------------------------------------------------------------------------- */

static void obey(struct worker *worker, char *line)
{
    const struct workload *workload = NULL;
    char *at;

    line[strcspn(line, "\n")] = '\0';
    long lanes = strtol(line, &at, 10);
    bool processes = *at == 'p';
    unsigned long long count = strtoull(at + processes, &at, 10);
    if (*at == ' ')
        workload = workload_find(at + 1);
    if (!workload || lanes < 1 || lanes > worker->lanes || count < 1)
        printf("{\"error\": \"not understood\"}\n");
    else if (workload->writes && worker->finds && !worker->plan.scribble)
        printf("{\"error\": \"writes, and nothing is to be written\"}\n");
    else if (is_beyond(worker, workload))
        printf("{\"error\": \"no file is so large\"}\n");
    else
        answer_sample(worker, workload, (int)lanes, processes, count);
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

    printf("{\"ready\": true, \"pid\": %d, \"data_size\": %lld, \"crowd_size\": %d", (int)getpid(),
           (long long)site->data_size, site->crowd_size);
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
    uint64_t calls = 0, trips = 0, hits = 0;

    for (int m = 0; m < worker->mount_count; m++) {
        struct df_op_stats ops[OPS_MAX];
        struct df_trip_stats shared;
        int count = df_stats(worker->mounts[m], ops, OPS_MAX);
        for (int i = 0; i < count && i < OPS_MAX; i++)
            calls += ops[i].calls;
        if (df_trip_stats(worker->mounts[m], &shared) == 0) {
            trips += shared.trips;
            hits += shared.hits;
        }
    }
    printf("{\"calls\": %llu, \"trips\": %llu, \"hits\": %llu}\n", (unsigned long long)calls,
           (unsigned long long)trips, (unsigned long long)hits);
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
    int id = df_mount(argv[0], count - 1, argv + 1, worker->mount_flags, why, sizeof(why));
    if (id < 0) {
        fprintf(stderr, "df-bench: %s: %s: %s\n", argv[1], strerror(errno), why);
        return -1;
    }
    worker->mounts[worker->mount_count++] = id;
    return count + 1;
}

/* A directory of its own for each lane. */
static int prepare_one(struct worker *worker, int i)
{
    struct site_plan plan = worker->plan;
    char *root = NULL, *real = NULL;
    int result = -1;

    if (worker->finds)
        return site_find(&worker->sites[i], &plan);
    if (asprintf(&root, "%s/%d", plan.root, i) >= 0 &&
        (!plan.real || asprintf(&real, "%s/%d", plan.real, i) >= 0) &&
        plan.door->mkdirat(AT_FDCWD, root, 0700) == 0) {
        plan.root = root;
        plan.real = real;
        result = site_make(&worker->sites[i], &plan);
    }
    free(root);
    free(real);
    return result;
}

static int prepare(struct worker *worker, char *word)
{
    static const struct door *const doors[] = {&door_kernel, &door_inline};
    struct site_plan *plan = &worker->plan;
    char *directory = strchr(word, ':');

    for (size_t i = 0; directory && i < sizeof(doors) / sizeof(doors[0]); i++)
        if (strlen(doors[i]->name) == (size_t)(directory - word) &&
            strncmp(word, doors[i]->name, (size_t)(directory - word)) == 0)
            plan->door = doors[i];
    if (!plan->door) {
        fprintf(stderr, "df-bench: %s: wanted kernel: or inline:DIRECTORY\n", word);
        return -1;
    }
    plan->root = directory + 1;
    while (worker->lanes < worker->wanted) {
        int i = worker->lanes++; /* to be released, whatever became of it */
        if (prepare_one(worker, i) != 0)
            return fail(worker->finds ? "no files found" : "making files", plan->root);
    }
    return 0;
}

/* One option; how many words it took, 0: it is none. */
static int option(struct worker *worker, char **argv)
{
    if (strcmp(argv[0], "--lanes") == 0 && argv[1]) {
        worker->wanted = atoi(argv[1]);
        return 2;
    }
    if (strcmp(argv[0], "--real") == 0 && argv[1]) {
        worker->plan.real = argv[1];
        return 2;
    }
    if (strcmp(argv[0], "--find") == 0)
        return worker->finds = true;
    if (strcmp(argv[0], "--scribble") == 0)
        return worker->plan.scribble = true;
    if (strcmp(argv[0], "--direct") == 0)
        return worker->plan.direct = true;
    if (strcmp(argv[0], "--server") == 0)
        return (worker->mount_flags |= DF_MOUNT_SERVER) != 0;
    return 0;
}

static int start(struct worker *worker, char **argv)
{
    int used = 0;

    worker->wanted = 1;
    for (argv++; *argv; argv += used) {
        used =
            strcmp(*argv, "--mount") == 0 ? mount_inline(worker, argv + 1) : option(worker, argv);
        if (used < 0)
            return -1;
        if (strcmp(*argv, "--mount") == 0)
            used++;
        if (used == 0)
            break;
    }
    if (*argv && !argv[1] && worker->wanted >= 1 && worker->wanted <= LANES_MAX)
        return prepare(worker, *argv);
    fprintf(stderr, "df-bench: see the first comment of worker.c\n");
    return -1;
}

static int release(struct worker *worker)
{
    int result = 0;

    for (int i = 0; i < worker->lanes; i++)
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
    if (argc == 2 && strcmp(argv[1], "--distance") == 0) {
        printf("%.0f\n", distance_ns());
        return 0;
    }
    int result = start(&worker, argv);
    if (result == 0) {
        print_ready(&worker);
        while (fgets(line, sizeof(line), stdin))
            obey(&worker, line);
        print_counts(&worker);
    }
    return release(&worker) != 0 || result != 0;
}
