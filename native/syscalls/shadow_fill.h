/*
 * shadow_fill.h - bringing bytes of a file of a mount into its data file (shadow_map.c).
 */
#ifndef DF_SYSCALLS_SHADOW_FILL_H
#define DF_SYSCALLS_SHADOW_FILL_H

#include "syscalls/files.h"

struct dfi_filling {
    struct df_trip trip;
    uint64_t handle;
    long data;    /* descriptor */
    char *buffer; /* a piece */
};

/* 0 or -ENOMEM; then ended all the same. `data` stays the caller's. */
long dfi_fill_begin(struct dfi_filling *f, struct dfi_files *files, uint64_t handle, long data);
void dfi_fill_end(struct dfi_filling *f);

/* From `at` to `end`, or to the end of the file; zeros stay a hole. 0 or -errno. */
long dfi_fill_range(struct dfi_filling *f, off_t at, off_t end);

/* The same, over other bytes. */
long dfi_fill_again(struct dfi_filling *f, off_t at, off_t end);

/* All that the file system says is data, of a file of that size. 0 or -errno. */
long dfi_fill_all(struct dfi_filling *f, off_t size);

/* Whether the tmpfs of the data file has so many bytes left: one that is full ends programs that
 * touch what is not there yet, ours too. */
bool dfi_fill_has_room(long data, uint64_t size);

#endif
