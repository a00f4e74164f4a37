/*
 * held.h - the chunks of mapped files that this process holds: those that its memory shows, or has
 * shown (channel/held.h). Under the lock of the mappings; entries change under the lock of their
 * file's chunks too.
 */
#ifndef DF_SHADOWS_HELD_H
#define DF_SHADOWS_HELD_H

#include "channel/held.h"
#include "client/files.h"

/* The process holds the chunk from now on. False: there is no room to say so. */
bool dfi_held_add(struct dfi_files *files, uint64_t ino, uint64_t key);

/* One that it holds. */
void dfi_held_remove(struct dfi_files *files, struct df_held *held);

bool dfi_held_by_others(const struct dfi_files *files, uint64_t ino, uint64_t key);

/* Each that it holds, the oldest first: the i-th of dfi_held_count(), or NULL for a gap. */
uint32_t dfi_held_count(const struct dfi_files *files);
struct df_held *dfi_held_at(const struct dfi_files *files, uint32_t i);

/* It holds as many as one process may. */
bool dfi_held_full(const struct dfi_files *files);

/* After execve: what the program before held. */
void dfi_held_forget(struct dfi_files *files);

/* Of a child that has a copy of our memory, none of which is accessible. */
void dfi_held_born(struct dfi_files *files);

#endif
