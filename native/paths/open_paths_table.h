/*
 * open_paths_table.h - what open_paths.c, open_paths_rename.c and open_paths_kept.c share of the
 * table's inside.
 */
#ifndef DF_PATHS_OPEN_PATHS_TABLE_H
#define DF_PATHS_OPEN_PATHS_TABLE_H

#include "paths/open_paths.h"

static inline struct df_open_paths_shard *df_open_paths_shard(struct df_open_paths *table,
                                                              struct df_path_hash key)
{
    return &table->shards[key.high % DF_OPEN_PATHS_SHARDS];
}

/* Under the shard's lock: puts a node into the chain of its key; takes it out. */
void df_open_paths_chain(struct df_open_paths_shard *shard, struct df_open_path *node,
                         struct df_path_hash key);
void df_open_paths_unchain(struct df_open_paths_shard *shard, struct df_open_path *node);

/* Under the shard's lock, for a node in use also the write lock: sets path and key. */
void df_open_path_set(struct df_open_path *node, const char *path, uint32_t len,
                      struct df_path_hash key);

/* The node of a path with one more reference, made when there is none; NULL: -ENOMEM. */
struct df_open_path *df_open_paths_get(struct df_open_paths *table, const char *path, uint32_t len,
                                       struct df_path_hash key);

/* The node of a path with one more reference; NULL: there is none. */
struct df_open_path *df_open_paths_find(struct df_open_paths *table, const char *path, uint32_t len,
                                        struct df_path_hash key);

/* Write-locks a node: waits, or if nobody has it. */
void df_open_path_write(struct df_open_path *node);
bool df_open_path_try_write(struct df_open_path *node);
void df_open_path_end_write(struct df_open_path *node);

/* The path is being renamed, or is below one that is. */
bool df_open_paths_in_rename(struct df_open_paths *table, const char *path, uint32_t len);

/* Under the write lock or the shard's: lists the node when its number is not that of its path. */
void df_open_paths_place_ino(struct df_open_paths *table, struct df_open_path *node, ino_t number);

#endif
