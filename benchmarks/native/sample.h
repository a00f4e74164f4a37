/*
 * sample.h - one sample: a workload in several lanes at the same time, threads or processes.
 */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "workload.h"

enum { LANES_MAX = 16 };

struct sample {
    double ns; /* wall time an operation of one lane, from the first's begin to the last's end */
    double cpu_ns;   /* an operation, of the threads that made the calls */
    double switches; /* an operation: how often they went to sleep or were sent there */
};

/* Runs `count` operations in each lane, on a site of its own. One lane is the calling thread; more
 * are threads, or forked processes. 0, or an errno. */
int sample_take(const struct workload *workload, struct site *sites, int lanes, bool processes,
                uint64_t count, struct sample *out);

#endif
