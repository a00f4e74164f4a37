/*
 * workload.h - the operations that are timed, each a loop over one door.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "site.h"

struct workload {
    const char *name;
    int (*run)(const struct workload *self, struct site *site, uint64_t count); /* 0, -1: errno */
    size_t size;    /* bytes of one piece, of those that move data */
    bool scattered; /* offsets in an order that no readahead guesses */
    bool writes;    /* needs a site that was made */
};

extern const struct workload workloads[];
extern const int workload_count;

/* NULL: there is none of that name. */
const struct workload *workload_find(const char *name);

#endif
