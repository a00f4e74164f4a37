/*
 * proc_maps_private.h - what the two files of proc_maps.h share.
 */
#ifndef DF_SHOWN_PROC_MAPS_PRIVATE_H
#define DF_SHOWN_PROC_MAPS_PRIVATE_H

#include <limits.h>

#include "shadows/map_copies.h"
#include "shown/proc_maps.h"

/* Memory [start, end) shows a file of a mount. */
struct dfi_shows {
    uintptr_t start, end;
    uint64_t offset;
    int prot; /* what the program wants, and the kernel may not know; -1: as the kernel says */
    uint64_t handle; /* of the open file; 0: it is a copy */
    struct dfi_copied *of;
};

/* As it is in a line. */
struct dfi_area {
    uintptr_t start, end;
    char rights[4]; /* "r-xp" */
    uint64_t offset;
    const struct dfi_copied *of; /* NULL: the rest of the line is the kernel's */
};

struct dfi_maps_job {
    struct dfi_shows *list;
    size_t count;
    struct dfi_copied *program; /* NULL: it is the kernel's file, and known to it */
    char program_id[40];        /* "device inode " of what it lies in, as a line has them */
    bool is_smaps;              /* lines that tell of one area follow, so none is cut */
    int to;                     /* memfd */
    long error;
    struct dfi_area last; /* not written yet: the next one may go on with it. end 0: none */
    /* The file that was told of last. */
    const struct dfi_copied *named;
    dev_t dev;
    uint64_t ino;
    char name[PATH_MAX + sizeof(" (deleted)")];
};

/* ---- proc_maps_shows.c ---- */

/* What the lists of mappings have at one moment: threads change them. False: no memory. */
bool dfi_shows_take(struct dfi_maps_job *job, struct dfi_files *files);
void dfi_shows_drop(struct dfi_maps_job *job, struct dfi_files *files);

/* The first of them that ends behind the address, or NULL. */
const struct dfi_shows *dfi_shows_next(const struct dfi_maps_job *job, uintptr_t at);

/* Sets name, dev and ino of the job to those of the file. */
void dfi_shows_name(struct dfi_maps_job *job, const struct dfi_copied *of);

#endif
