/*
 * table.h - which path leads to which mount.
 *
 * Readers see an immutable snapshot, published by one pointer and read inside the gate; mount.c
 * makes a new one for each change and retires the old one.
 */
#ifndef DF_CORE_TABLE_H
#define DF_CORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct df_mount;
struct df_table;

/* A prefix that leads into a mount. */
struct df_table_entry {
    const char *point; /* point_len bytes, then NUL */
    uint32_t point_len;
    int id;
    struct df_mount *mount;
};

/* True if there is any mount; a hint that costs one load. */
bool df_table_any(void);

/*
 * Longest prefix of the canonical absolute path[0..len). Only inside the gate; the entry is valid
 * until the thread leaves. Returns NULL when no mount covers the path.
 */
const struct df_table_entry *df_table_lookup(const char *path, size_t len);

/* True if a relative path that begins with this component, from some real directory, could lead
 * into a mount: the component occurs in a mountpoint, or a mountpoint exists on disk. */
bool df_table_may_begin(const char *component, size_t len);

/* True if a mount lies below the canonical path (not at it). */
bool df_table_below(const char *path, size_t len);

/* ---- for mount.c, under its lock ---- */

/* The table of the listed ones of a list of mounts. Returns NULL with *error = 0 when there are
 * none, with -ENOMEM when there is no memory. */
struct df_table *df_table_make(const struct df_mount *mounts, int *error);

/* One that was not published. */
void df_table_free(struct df_table *table);

/* Readers see it from now on; the former one is retired. */
void df_table_publish(struct df_table *table);

#endif
