/*
 * module.h - a module of the -o modules= stack that renames: every path that passes down, and what
 * comes back up (names of entries, targets of links), goes through a few functions of the module.
 * module.c has the operations once for all such modules.
 */
#ifndef DF_LIBFUSE_MODULE_H
#define DF_LIBFUSE_MODULE_H

#include "libfuse/abi.h"

/* The start of each module's own struct. Functions return 0 or -errno; results are on the heap and
 * the caller's. Missing functions but `path` and `free` leave the name as it is. */
struct df_layer {
    struct fuse_fs *next; /* the layer below; set by df_layer_push() */

    /* A path of this layer as the layer below knows it. Never called with NULL. */
    int (*path)(struct df_layer *layer, const char *path, char **below);
    /* The name of an entry of the layer below as this layer shows it. */
    int (*entry)(struct df_layer *layer, const char *name, char **above);
    /* The target of a link to be made. */
    int (*new_link)(struct df_layer *layer, const char *target, char **below);
    /* The target of the link at `path` (as the layer below knows it), in place. */
    int (*read_link)(struct df_layer *layer, const char *path, char *target, size_t size);
    void (*free)(struct df_layer *layer);
};

/* Makes the layer on top of `below`. It owns `layer` from then on; on failure the caller does. */
struct fuse_fs *df_layer_push(struct df_layer *layer, struct fuse_fs *below);

/* The modules. Each parses and removes its own options and puts itself on top of `below`; NULL
 * after logging. */
struct fuse_fs *df_module_subdir(struct fuse_args *args, struct fuse_fs *below);
struct fuse_fs *df_module_iconv(struct fuse_args *args, struct fuse_fs *below);

#endif
