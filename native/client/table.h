/*
 * table.h - the mounts of the server, as the df_mount that native/core knows. See core/table.h.
 */
#ifndef DF_CLIENT_TABLE_H
#define DF_CLIENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "channel/layout.h"
#include "core/mount.h"

/* Reads the server's table when it has changed. */
void dfi_table_refresh(const struct df_segment *segment);

/* Around fork: no copy is under way. */
void dfi_table_lock(void);
void dfi_table_unlock(void);

/* Another number whenever the copy of the server's table is another; 0: there is none. */
uint32_t dfi_table_version(void);

/* Places of the table that may have a mount: from 0 to this one. */
int dfi_table_places(void);

/* The mountpoint at such a place; NULL: none is there. */
const char *dfi_table_point(int i);

/* The mount of that id, or NULL. */
struct df_mount *dfi_table_mount(int32_t id);

/* Whether an absolute path, `len` long, leads to no mount for certain, real symlinks aside: it
 * begins with a name that no mountpoint begins with, wherever it goes up to as well. */
bool dfi_table_is_foreign(const char *path, size_t len);

/* Whether a name, `len` long, is the last of a mountpoint's path. */
bool dfi_table_is_last(const char *name, size_t len);

#endif
