/*
 * dirty.h - bytes of one file that were written and that its file system has not got yet.
 *
 * They lie in chunks of 1 MiB of the file, of which only what was written has memory. Each page of
 * a chunk keeps one range of bytes; what is outside of it is the file system's. Not locked: the
 * caller's (writeback.c) lock of the file protects it.
 */
#ifndef DF_WRITEBACK_DIRTY_H
#define DF_WRITEBACK_DIRTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DF_DIRTY_PAGE  ((size_t)4096)
#define DF_DIRTY_CHUNK ((size_t)1 << 20)

struct df_dirty_chunk;

struct df_dirty {
    struct df_dirty_chunk **chunks; /* in the order of the file */
    size_t count, room;             /* of chunks */
    size_t pages;                   /* that keep something */
};

/* A run of bytes, one behind the other in the file and in memory. */
struct df_dirty_run {
    char *bytes;
    size_t size; /* bytes; 0: there are no more */
    off_t offset;
};

/* False: a page that the bytes only touch keeps others already, with a gap in between. */
bool df_dirty_fits(const struct df_dirty *dirty, off_t offset, size_t size);

/* How many pages more would be kept. */
size_t df_dirty_new_pages(const struct df_dirty *dirty, off_t offset, size_t size);

/* Keeps the bytes, which fit. False: there is no memory, and nothing has changed. */
bool df_dirty_store(struct df_dirty *dirty, off_t offset, const char *bytes, size_t size);

/* True if all of the range is kept. */
bool df_dirty_covers(const struct df_dirty *dirty, off_t offset, size_t size);

/* Puts what is kept of the range where `bytes` has the rest of it. */
void df_dirty_show(const struct df_dirty *dirty, off_t offset, char *bytes, size_t size);

/* The first run at or behind `offset`, within one chunk. */
struct df_dirty_run df_dirty_next(const struct df_dirty *dirty, off_t offset);

/* Keeps nothing any more; all memory is given back. */
void df_dirty_clear(struct df_dirty *dirty);

#endif
