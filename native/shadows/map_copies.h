/*
 * map_copies.h - private mappings that are copies of a file, in anonymous memory.
 *
 * To the kernel such memory has no file behind it. What madvise(2) says of a file's memory that it
 * does not say of anonymous one is said here: MADV_DONTNEED would leave zeros where the file's
 * bytes have to be.
 */
#ifndef DF_SHADOWS_MAP_COPIES_H
#define DF_SHADOWS_MAP_COPIES_H

#include "client/files.h"

/* The file that copies are of, for /proc/self/maps. Under the lock of the mappings. */
struct dfi_copied {
    unsigned uses;
    uint64_t handle; /* of a file that is open, for as long as it is; 0: of a copy */
    char name[];     /* that it was opened by, df_segment_name() */
};

/* One of that name, of one use; NULL: no memory. And the end of a use, of NULL as well. */
struct dfi_copied *dfi_copied_new(const char *name);
void dfi_copied_drop(struct dfi_copied *of);

/* [start, end) is one from now on, of what the file of that name has from offset on. 0 or -ENOMEM.
 */
long dfi_copies_add(struct dfi_files *files, uintptr_t start, uintptr_t end, const char *name,
                    uint64_t offset);

/* All are forgotten, with the list. */
void dfi_copies_free(struct dfi_copies *copies);

/* What is there is none any more: it is about to be unmapped, or covered. */
void dfi_copies_cut(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* The same under the lock of the mappings, of a process that has memory of its own. */
void dfi_copies_forget(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* Whether there may be one; and whether there is, in the range. */
bool dfi_copies_any(struct dfi_files *files);
bool dfi_copies_in(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* What was at [from, from + old) is at [to, to + size) now: mremap(2). */
void dfi_copies_move(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to,
                     size_t size);

/* madvise(2) of [start, end), whole pages: its result, or DFI_PASS where it is the kernel's. */
long dfi_copies_advise(struct dfi_files *files, uintptr_t start, uintptr_t end, int advice);

/* Whether the advice has memory dropped, which of a copy would be lost. */
bool dfi_copies_drops(int advice);

#endif
