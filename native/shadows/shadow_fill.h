/*
 * shadow_fill.h - bringing bytes of a file of a mount into its data file (shadow_map.c).
 */
#ifndef DF_SHADOWS_SHADOW_FILL_H
#define DF_SHADOWS_SHADOW_FILL_H

#include "client/files.h"

/* Bytes read at a time; a piece of zeros stays a hole of the data file. */
#define DFI_FILL_PIECE ((size_t)256 << 10)

struct dfi_filling {
    struct df_trip trip;
    uint64_t handle;
    long data;    /* descriptor; < 0: memory is filled */
    char *memory; /* new, for the file's bytes from here on: */
    off_t from;
    char *buffer; /* a piece; for memory: NULL, it goes there itself */
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

/* A new file gets the file's bytes, all of them, of which there are so many. 0 or -errno: -EFBIG,
 * for a program with an RLIMIT_FSIZE. */
long dfi_fill_file(struct dfi_files *files, uint64_t handle, long fd, off_t size);

/* Fills new memory with what the file has from `at` to `end`. How many bytes, fewer only at its end
 * or before an error; or -errno, if that is the first. */
long dfi_fill_memory(struct dfi_files *files, uint64_t handle, char *memory, off_t at, off_t end);

/* Whether the tmpfs of the data file has so many bytes left: one that is full ends programs that
 * touch what is not there yet, ours too. */
bool dfi_fill_has_room(long data, uint64_t size);

#endif
