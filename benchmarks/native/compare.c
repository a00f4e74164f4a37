/*
 * compare.c - df-bench: times the same operations on several routes, in turn, and prints JSON.
 *
 *     df-bench [--rounds N] [--sample-us N] [--mount 'PLUGIN' ARG... --]... SITE...
 *     SITE: NAME=DOOR:DIRECTORY, DOOR kernel or inline; DIRECTORY is empty and belongs to us
 *
 *     df-bench --mount memfs /bench -- tmpfs=kernel:/dev/shm/b inline=inline:/bench
 *
 * Machines are busy and their clocks drift, so routes take turns in every round, and what is
 * reported of all samples is the median and the 10th percentile, in ns an operation.
 */
#include <directfuse.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workload.h"

enum { SITES_MAX = 8, MOUNTS_MAX = 4 };

struct route {
    char *name;
    const struct door *door;
    char *root;
    struct site site;
    uint64_t count;  /* operations in one sample of the running workload */
    double *samples; /* ns an operation, one for each round */
};

struct bench {
    int rounds;
    double sample_ns;
    int mounts[MOUNTS_MAX];
    int mount_count;
    struct route routes[SITES_MAX];
    int route_count;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int fail(const char *what, const char *which)
{
    fprintf(stderr, "df-bench: %s: %s: %s\n", which, what, strerror(errno));
    return -1;
}

/* ---- measuring ---- */

/* One sample: ns an operation, or a negative number after a message. */
static double sample(struct route *route, const struct workload *workload, uint64_t count)
{
    double start = now_ns();
    if (workload->run(&route->site, count) != 0) {
        fail(workload->name, route->name);
        return -1;
    }
    return (now_ns() - start) / (double)count;
}

/* How many operations fill one sample; warms caches on the way. */
static int calibrate(struct route *route, const struct workload *workload, double sample_ns)
{
    uint64_t count = 1;
    for (;;) {
        double each = sample(route, workload, count);
        if (each < 0) {
            return -1;
        }
        if (each * (double)count >= sample_ns / 4) {
            double wanted = sample_ns / each;
            route->count = wanted < 1 ? 1 : (uint64_t)wanted;
            return 0;
        }
        count *= 4;
    }
}

static int measure(struct bench *bench, const struct workload *workload)
{
    for (int r = 0; r < bench->route_count; r++) {
        if (calibrate(&bench->routes[r], workload, bench->sample_ns) != 0) {
            return -1;
        }
    }
    for (int round = 0; round < bench->rounds; round++) {
        for (int turn = 0; turn < bench->route_count; turn++) {
            struct route *route = &bench->routes[(turn + round) % bench->route_count];
            route->samples[round] = sample(route, workload, route->count);
            if (route->samples[round] < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_workload(struct bench *bench, const struct workload *workload, bool last)
{
    printf("  {\"op\": \"%s\", \"ns\": {", workload->name);
    for (int r = 0; r < bench->route_count; r++) {
        struct route *route = &bench->routes[r];
        qsort(route->samples, bench->rounds, sizeof(double), ascending);
        printf("%s\"%s\": {\"median\": %.2f, \"p10\": %.2f}", r == 0 ? "" : ", ", route->name,
               route->samples[bench->rounds / 2], route->samples[bench->rounds / 10]);
    }
    printf("}}%s\n", last ? "" : ",");
    fflush(stdout);
}

static int run(struct bench *bench)
{
    printf("[\n");
    for (int w = 0; w < workload_count; w++) {
        if (measure(bench, &workloads[w]) != 0) {
            return -1;
        }
        print_workload(bench, &workloads[w], w == workload_count - 1);
    }
    printf("]\n");
    return 0;
}

/* ---- the command line ---- */

static int parse_site(struct bench *bench, char *word)
{
    char *door = strchr(word, '=');
    char *root = door == NULL ? NULL : strchr(door, ':');
    if (root == NULL || bench->route_count == SITES_MAX) {
        fprintf(stderr, "df-bench: %s: wanted NAME=DOOR:DIRECTORY, %d at most\n", word, SITES_MAX);
        return -1;
    }
    *door++ = '\0';
    *root++ = '\0';
    bool is_inline = strcmp(door, "inline") == 0;
    if (!is_inline && strcmp(door, "kernel") != 0) {
        fprintf(stderr, "df-bench: %s: a door is kernel or inline\n", door);
        return -1;
    }
    bench->routes[bench->route_count++] =
        (struct route){.name = word, .door = is_inline ? &door_inline : &door_kernel, .root = root};
    return 0;
}

/* Mounts the command line at argv, which ends with "--"; returns how many words it took. */
static int mount_inline(struct bench *bench, char **argv)
{
    int count = 0;
    while (argv[count] != NULL && strcmp(argv[count], "--") != 0) {
        count++;
    }
    if (count == 0 || argv[count] == NULL || bench->mount_count == MOUNTS_MAX) {
        fprintf(stderr, "df-bench: --mount PLUGIN ARG... -- (%d at most)\n", MOUNTS_MAX);
        return -1;
    }
    argv[count] = NULL;
    char why[1024] = "";
    int id = df_mount(NULL, count, argv, 0, why, sizeof(why));
    if (id < 0) {
        fprintf(stderr, "df-bench: %s: %s: %s\n", argv[0], strerror(errno), why);
        return -1;
    }
    bench->mounts[bench->mount_count++] = id;
    return count + 1;
}

static int parse(struct bench *bench, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            bench->rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--sample-us") == 0 && i + 1 < argc) {
            bench->sample_ns = atof(argv[++i]) * 1e3;
        } else if (strcmp(argv[i], "--mount") == 0) {
            int used = mount_inline(bench, argv + i + 1);
            if (used < 0) {
                return -1;
            }
            i += used;
        } else if (parse_site(bench, argv[i]) != 0) {
            return -1;
        }
    }
    if (bench->route_count == 0 || bench->rounds < 1 || bench->sample_ns <= 0) {
        fprintf(stderr, "df-bench: nothing to do: see the first comment of compare.c\n");
        return -1;
    }
    return 0;
}

static int prepare(struct bench *bench)
{
    for (int r = 0; r < bench->route_count; r++) {
        struct route *route = &bench->routes[r];
        route->samples = calloc(bench->rounds, sizeof(double));
        if (route->samples == NULL || site_prepare(&route->site, route->door, route->root) != 0) {
            return fail("making files", route->root);
        }
    }
    return 0;
}

static int release(struct bench *bench)
{
    int result = 0;
    for (int r = 0; r < bench->route_count; r++) {
        if (bench->routes[r].site.door != NULL) {
            site_release(&bench->routes[r].site);
        }
        free(bench->routes[r].samples);
    }
    for (int m = 0; m < bench->mount_count; m++) {
        if (df_unmount(bench->mounts[m], 0) != 0) {
            result = fail("unmount", "inline");
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    struct bench bench = {.rounds = 15, .sample_ns = 1e6};
    int result = parse(&bench, argc, argv);
    if (result == 0) {
        result = prepare(&bench);
    }
    if (result == 0) {
        result = run(&bench);
    }
    return release(&bench) != 0 || result != 0;
}
