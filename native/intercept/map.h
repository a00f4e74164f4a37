/*
 * map.h - shared mappings of files of mounts: which memory shows which file, so that what programs
 * change there finds its way back.
 *
 * The mapping itself is the kernel's, of the file's shadow file: coherent between the programs of a
 * job. It is a use of the file: the open file description lives until munmap(2). Written back by
 * msync, munmap, exec and the end of the process, comparing with what the mount has, so that what
 * nobody changed is not written.
 */
#ifndef DF_INTERCEPT_MAP_H
#define DF_INTERCEPT_MAP_H

#include "intercept/files.h"

/* Memory [start, end) shows the file from offset on. */
struct dfi_mapping {
    uintptr_t start, end;
    uint64_t handle;
    off_t offset;
};

struct dfi_maps {
    size_t count, room;
    struct dfi_mapping list[];
};

void dfi_maps_lock(struct dfi_files *files);
void dfi_maps_unlock(struct dfi_files *files);

/* Takes over one use of the file. 0 or -ENOMEM. */
long dfi_maps_add(struct dfi_files *files, const struct dfi_mapping *mapping);

/* The range shows nothing of ours any more (it is about to be unmapped, or covered): written back
 * first. 0 or the first error. */
long dfi_maps_cut(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* What was at [from, from + old) is at [to, to + size) now: mremap(2). */
void dfi_maps_move(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to, size_t size);

/* Writes back what shows in the range. 0 or the first error. */
long dfi_maps_write_back(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* All of it. */
void dfi_maps_sync(struct dfi_files *files);

void dfi_maps_free(struct dfi_maps *maps);

#endif
