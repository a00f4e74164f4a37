/*
 * workload.h - the operations that are timed, each a loop over one door.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdint.h>

#include "door.h"

/* One tree on one route, prepared once and used by every workload. */
struct site {
    const struct door *door;
    char *deep2; /* root/a/file */
    char *deep4; /* root/a/b/c/file */
    char *fresh; /* root/a/fresh: made and removed */
    char *crowd; /* root/crowd: a directory of 1000 files */
    int fd;      /* root/data, open for reading and writing */
    char *buf;   /* SITE_BLOCK bytes */
};

enum { SITE_DATA = 8 << 20, SITE_BLOCK = 1 << 20, SITE_CROWD = 1000 };

struct workload {
    const char *name;
    int (*run)(struct site *site, uint64_t count); /* 0, or -1 with errno */
};

extern const struct workload workloads[];
extern const int workload_count;

/* Builds the tree below the existing directory `root`. 0, or -1 with errno. */
int site_prepare(struct site *site, const struct door *door, const char *root);

/* Closes what is open and frees memory; the tree stays for its owner to remove. */
void site_release(struct site *site);

#endif
