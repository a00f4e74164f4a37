/*
 * rename.h - hiding a file that is open and loses its name.
 */
#ifndef DF_HIGHLEVEL_RENAME_H
#define DF_HIGHLEVEL_RENAME_H

#include "highlevel/walk.h"

/*
 * Renames an open file to .fuse_hidden<hash><count> in its directory, as libfuse does instead of
 * removing it; it goes with the last open file. Under the node's write lock, after
 * df_open_path_begin_hide(), which a failure takes back. -EBUSY when no free
 * name was found, or what the plugin's rename says.
 */
int df_highlevel_hide(struct df_frame *frame, struct df_open_path *node, const char *path,
                      uint32_t len);

#endif
