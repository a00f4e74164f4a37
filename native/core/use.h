/*
 * use.h - the frame of a call by descriptor.
 *
 *     struct df_use use;
 *     ssize_t ret = df_use_begin(&use, fd);
 *     if (ret < 0)
 *         return ret;
 *     ret = use.fs->ops->fsync(use.fs, &use.call, use.file, false);
 *     return df_use_end(&use, ret);
 */
#ifndef DF_CORE_USE_H
#define DF_CORE_USE_H

#include <errno.h>

#include "core/call.h"
#include "core/caller.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/gate.h"

struct df_use {
    struct df_thread *thread;
    struct df_file *file; /* in use until df_use_end() */
    struct df_fs *fs;
    struct df_call call;
};

/* Slow half of the two below. `any`: files opened with O_PATH too. */
int df_use_enter(struct df_use *use, int fd, bool any);

/* 0, or (nothing to end) DF_NOT_OURS, -EBADF (also for a file opened with O_PATH), -ENOMEM. */
static inline int df_use_begin(struct df_use *use, int fd)
{
    return DF_LIKELY(df_fd_ours(fd)) ? df_use_enter(use, fd, false) : DF_NOT_OURS;
}

/* For the few calls that take an O_PATH descriptor: open(2) lists them. */
static inline int df_use_begin_any(struct df_use *use, int fd)
{
    return DF_LIKELY(df_fd_ours(fd)) ? df_use_enter(use, fd, true) : DF_NOT_OURS;
}

/* Waits for a late result, gives the file back, leaves the gate. Returns the result. */
ssize_t df_use_end(struct df_use *use, ssize_t ret);

static inline int df_use_flags(const struct df_use *use)
{
    return atomic_load_explicit(&use->file->flags, memory_order_relaxed);
}

static inline bool df_use_readable(const struct df_use *use)
{
    int mode = df_use_flags(use) & O_ACCMODE;

    return mode == O_RDONLY || mode == O_RDWR;
}

static inline bool df_use_writable(const struct df_use *use)
{
    int mode = df_use_flags(use) & O_ACCMODE;

    return mode == O_WRONLY || mode == O_RDWR;
}

/* The open file itself, for ops that take a where. */
static inline struct df_where df_use_itself(const struct df_use *use)
{
    return (struct df_where){.base = use->file, .name = ""};
}

#endif
