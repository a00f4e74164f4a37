/*
 * flock.h - struct flock of fcntl(2), and the df_lock that it means. Freestanding.
 */
#ifndef DF_CORE_FLOCK_H
#define DF_CORE_FLOCK_H

#include <errno.h>
#include <fcntl.h>

#include "core/ops.h"

/* What it covers, when l_whence means `base`: flock_to_posix_lock() of the kernel. 0, -EOVERFLOW,
 * -EINVAL. */
static inline int df_flock_range(const struct flock *f, off_t base, struct df_lock *lock)
{
    if (__builtin_add_overflow(base, f->l_start, &lock->start))
        return -EOVERFLOW;
    if (lock->start < 0)
        return -EINVAL;
    lock->end = INT64_MAX;
    if (f->l_len > 0) {
        if (__builtin_add_overflow(lock->start, f->l_len - 1, &lock->end))
            return -EOVERFLOW;
    } else if (f->l_len < 0) {
        if (lock->start + f->l_len < 0)
            return -EINVAL;
        lock->end = lock->start - 1;
        lock->start += f->l_len;
    }
    return 0;
}

/* The same, if it may be asked for, in Linux' order: fcntl_setlk(), fcntl_getlk(). lock->pid is -1
 * for OFD locks. 0, -EINVAL, -EOVERFLOW, -EBADF. */
static inline int df_flock_take(const struct flock *f, off_t base, struct df_lock *lock,
                                bool readable, bool writable)
{
    bool ofd = lock->pid == -1, reads = f->l_type == F_RDLCK, writes = f->l_type == F_WRLCK;
    int ret;

    if (lock->test && !ofd && !reads && !writes)
        return -EINVAL;
    if ((ret = df_flock_range(f, base, lock)) < 0)
        return ret;
    if (!reads && !writes && f->l_type != F_UNLCK)
        return -EINVAL;
    if (!lock->test && ((reads && !readable) || (writes && !writable)))
        return -EBADF;
    return ofd && f->l_pid != 0 ? -EINVAL : 0;
}

/* The lock that F_GETLK has found in the way; F_UNLCK: none, and nothing but the type changes. */
static inline void df_flock_show(struct flock *f, const struct df_lock *lock)
{
    f->l_type = lock->type;
    if (lock->type == F_UNLCK)
        return;
    f->l_whence = SEEK_SET;
    f->l_start = lock->start;
    f->l_len = lock->end == INT64_MAX ? 0 : lock->end - lock->start + 1;
    f->l_pid = lock->pid;
}

#endif
