/*
 * site.h - what the workloads of one thread work on: files made for the purpose, or found in a file
 * system that is there already.
 */
#ifndef BENCH_SITE_H
#define BENCH_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "door.h"

struct site {
    const struct door *door;
    char *deep2; /* root/a/file: 4 KiB */
    char *deep4; /* root/a/b/c/file */
    char *large; /* root/large: SITE_LARGE bytes */
    char *data;  /* root/data: SITE_DATA bytes */
    char *crowd; /* root/crowd: a directory of SITE_CROWD files */
    char *fresh; /* root/a/fresh, root/a/other: made and removed; NULL when found */
    char *other;
    char *storm;     /* root/storm: SITE_STORM directories for many names; NULL when found */
    char *real;      /* where the bytes of `data` are on disk, if that is known */
    int fd;          /* `data`, open for reading, and writing unless found */
    off_t data_size; /* bytes */
    int crowd_size;  /* entries */
    char *buf;       /* SITE_BUFFER bytes, aligned for O_DIRECT */
    bool found;      /* nothing is written */
};

enum {
    SITE_DATA = 8 << 20,
    SITE_BUFFER = 1 << 20,
    SITE_LARGE = 100 << 10,
    SITE_SMALL = 4 << 10,
    SITE_CROWD = 1000,
    SITE_STORM = 16,
};

struct site_plan {
    const struct door *door;
    const char *root;
    const char *real; /* the directory on disk that `root` shows; NULL: not known */
    bool direct;      /* `data` is opened with O_DIRECT: no page cache answers */
    bool scribble;    /* what is found may be overwritten, but nothing is made */
};

/* Builds the tree in the existing directory `root`. 0, or -1 with errno. */
int site_make(struct site *site, const struct site_plan *plan);

/* Looks around below `root`, at most a few thousand entries: the first file, the deepest, the
 * largest, the fullest directory. 0, or -1 with errno (ENOENT: there is no file). */
int site_find(struct site *site, const struct site_plan *plan);

/* Closes what is open and frees memory; what was made stays for its owner to remove. */
void site_release(struct site *site);

#endif
