/*
 * ramfs.h - a file system in memory written straight against core/ops.h, for tests of the core and
 * of what uses it. Directories, files, symlinks, hard links; one lock.
 */
#ifndef DF_TESTS_RAMFS_H
#define DF_TESTS_RAMFS_H

#include <stdatomic.h>

#include "core/ops.h"

/* What a test sees of the inside; may be NULL. Outlives the file system. */
struct ramfs_probe {
    _Atomic int opened;
    _Atomic int flushed;
    _Atomic int released;
    _Atomic int destroyed;
    _Atomic int borrowed; /* loans now out */
    _Atomic int nodes;    /* objects alive */
    int (*written)(void); /* called at the end of each write, if any: 0, or its error */
};

/* NULL: no memory. Attach it with df_mount_attach(); it frees itself in destroy. */
struct df_fs *ramfs_new(struct ramfs_probe *probe);

#endif
