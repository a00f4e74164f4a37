/*
 * shadow_chunks.h - the data file of a large file of a mount, brought and given up by chunks of
 * DF_HELD_CHUNK bytes.
 *
 * A file beside the data has a byte for each chunk. Between dfi_chunks_begin() and dfi_chunks_end()
 * its lock (flock(2)) is held: no chunk comes or goes, and nobody else reads or writes the file, in
 * its data file or on the mount, by a call. In lock order it is behind that of the mappings; at
 * most one file's is held.
 *
 * A chunk that is not there nobody can touch: the mount alone has its bytes. One that is there may
 * be touched by those who hold it (held.h); what they store in shared memory only the data file has
 * until they write it back, which they do before they let go of it.
 */
#ifndef DF_SHADOWS_SHADOW_CHUNKS_H
#define DF_SHADOWS_SHADOW_CHUNKS_H

#include "shadows/held.h"
#include "shadows/shadow.h"

struct dfi_chunks {
    struct dfi_files *files;
    int mount;
    uint64_t ino;
    long list; /* descriptor of the bytes, and of the lock; -1: nothing was begun */
    long data; /* descriptor */
};

/* 0 or -errno; then nothing is to be ended. */
long dfi_chunks_begin(struct dfi_chunks *c, struct dfi_files *files, int mount, uint64_t ino);
void dfi_chunks_end(struct dfi_chunks *c);

/* The chunk is there, and held by us: under the lock of the mappings. `handle` reads the file.
 * 0; -ENOSPC: there is no room that leaves `spare` bytes of it, also for one that is there already,
 * as long as `spare` is not 0; -errno. */
long dfi_chunks_hold(struct dfi_chunks *c, uint64_t handle, uint64_t chunk, uint64_t spare);

/* It is given up, unless somebody holds it. */
void dfi_chunks_drop(struct dfi_chunks *c, uint64_t chunk);

/* Every chunk that nobody holds is given up, and what was left of those that are not there. Whether
 * that has made room. */
bool dfi_chunks_sweep(struct dfi_chunks *c);

/* Of [offset, offset + size) how much, from its start, is alike: there, or not there. */
size_t dfi_chunks_run(const struct dfi_chunks *c, off_t offset, size_t size, bool *there);

#endif
