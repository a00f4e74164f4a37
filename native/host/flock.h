/*
 * flock.h - locks of fcntl(2) between the core and a plugin that keeps them: struct flock is what
 * libfuse's operations take and answer with.
 */
#ifndef DF_HOST_FLOCK_H
#define DF_HOST_FLOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include "core/ops.h"

/* What is asked for. The process is named to set a lock only, as by fuse_setlk() in
 * fs/fuse/file.c. */
static inline struct flock df_flock_of(const struct df_lock *lock, pid_t pid)
{
    return (struct flock){
        .l_type = lock->type,
        .l_whence = SEEK_SET,
        .l_start = lock->start,
        .l_len = lock->end == INT64_MAX ? 0 : lock->end - lock->start + 1,
        .l_pid = lock->test || lock->type == F_UNLCK ? 0 : pid,
    };
}

/* Takes the answer to F_GETLK. 0; -EIO when it makes no sense, as by convert_fuse_file_lock(). Who
 * asks for an OFD lock is told of no process. */
static inline int df_flock_take(struct df_lock *lock, const struct flock *found)
{
    off_t end = INT64_MAX;

    if (found->l_type != F_UNLCK && found->l_type != F_RDLCK && found->l_type != F_WRLCK)
        return -EIO;
    lock->type = found->l_type;
    if (found->l_type == F_UNLCK)
        return 0;
    if (found->l_start < 0 || found->l_len < 0 ||
        (found->l_len > 0 && __builtin_add_overflow(found->l_start, found->l_len - 1, &end)))
        return -EIO;
    lock->start = found->l_start;
    lock->end = end;
    if (lock->pid != -1)
        lock->pid = found->l_pid;
    return 0;
}

#endif
