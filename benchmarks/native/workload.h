/*
 * workload.h - the operations that are timed, each a loop over one door.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "site.h"

struct workload;
typedef int workload_run(const struct workload *self, struct site *site, uint64_t count);

/* Each function does `count` operations and returns 0, or -1 with errno. */
struct workload {
    const char *name;
    workload_run *run;
    workload_run *before, *after; /* the same count, not timed; or NULL */
    size_t size;                  /* bytes of one piece, of those that move data */
    size_t within;                /* of the first bytes of the file only; 0: of all */
    bool scattered;               /* offsets in an order that no readahead guesses */
    bool writes;                  /* needs a site that was made */
};

extern const struct workload workloads[];
extern const int workload_count;

/* NULL: there is none of that name. */
const struct workload *workload_find(const char *name);

/* storm.c: what parallel programs do to metadata, as mdtest measures it. */
workload_run storm_make, storm_stat, storm_remove, storm_mkdir, storm_rmdir;

#endif
