/*
 * calls_fcntl.c - fcntl: duplicates, flags, record locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/flock.h"
#include "core/lock.h"
#include "core/use.h"

/* What F_SETFL changes: fcntl(2). Not O_ASYNC: no file system has files that send signals. */
#define SETTABLE (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)

/* ---- duplicates and flags ------------------------------------------------------------------ */

static int duplicate(struct df_use *use, long least, bool cloexec)
{
    int fd;

    if (least < 0 || least >= (long)DF_FD_BASE + DF_FD_MAX)
        return -EINVAL;
    if (!df_file_hold(use->file)) /* closed meanwhile */
        return -EBADF;
    if (least > DF_FD_BASE)
        fd = df_fd_install_from(use->file, (int)least, cloexec);
    else if ((fd = df_fd_reserve(use->thread)) >= 0)
        df_fd_install(fd, use->file, cloexec);
    if (fd < 0)
        df_file_put(use->thread, use->file);
    return fd;
}

/* O_NOATIME is for the owner: fcntl(2), EPERM. */
static int check_noatime(struct df_use *use, int flags)
{
    const struct df_caller *caller = use->call.caller;
    struct df_where where = df_use_itself(use);
    struct stat st;
    ssize_t ret;

    if (!(flags & ~df_use_flags(use) & O_NOATIME) || caller->capable)
        return 0;
    ret = df_call_result(&use->call, use->fs->ops->getattr(use->fs, &use->call, &where, &st));
    if (ret < 0)
        return (int)ret;
    return st.st_uid == caller->uid ? 0 : -EPERM;
}

static int set_flags(struct df_use *use, int flags)
{
    int ret = check_noatime(use, flags);
    int old = df_use_flags(use);

    if (ret < 0)
        return ret;
    if (flags & O_DIRECT && use->file->kind == DF_KIND_DIRECTORY) /* as at open(2) */
        return -EINVAL;
    while (!atomic_compare_exchange_weak(&use->file->flags, &old,
                                         (old & ~SETTABLE) | (flags & SETTABLE)))
        ;
    if (use->file->far)
        use->file->far->tell(use->file);
    return 0;
}

/* ---- record locks -------------------------------------------------------------------------- */

static ssize_t lock_base(struct df_use *use, int whence, off_t *base)
{
    struct df_where where = df_use_itself(use);
    struct stat st;
    ssize_t ret;

    switch (whence) {
    case SEEK_SET:
        *base = 0;
        return 0;
    case SEEK_CUR:
        df_file_lock_position(use->file);
        *base = use->file->position;
        df_file_unlock_position(use->file);
        return 0;
    case SEEK_END:
        ret = df_call_result(&use->call, use->fs->ops->getattr(use->fs, &use->call, &where, &st));
        *base = ret < 0 ? 0 : st.st_size;
        return ret;
    default:
        return -EINVAL;
    }
}

static ssize_t take_lock(struct df_use *use, const struct flock *f, struct df_lock *lock)
{
    off_t base;
    ssize_t ret = lock_base(use, f->l_whence, &base);

    return ret < 0 ? ret : df_flock_take(f, base, lock, df_use_readable(use), df_use_writable(use));
}

static ssize_t lock_range(struct df_use *use, struct df_lock *lock)
{
    ssize_t ret = use->fs->ops->lock(use->fs, &use->call, use->file, lock);

    ret = df_call_result(&use->call, ret);
    return ret == DF_NOT_OURS ? df_lock_range(&use->call, use->file, lock) : ret;
}

static bool is_closed(struct df_use *use, int fd)
{
    struct df_file *now = df_fd_get(use->thread, fd);

    if (now)
        df_file_put(use->thread, now);
    return now != use->file;
}

/* Whoever has closed the descriptor meanwhile, and with that unlocked, did so before this lock was
 * there, which nobody else would take away: fcntl_setlk() of Linux. */
static int undo(struct df_use *use, struct df_lock *lock)
{
    lock->type = F_UNLCK;
    lock->wait = false;
    lock_range(use, lock);
    return -EBADF;
}

static int record_lock(struct df_use *use, int fd, int command, struct flock *f)
{
    bool ofd = command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    struct df_lock lock = {
        .test = command == F_GETLK || command == F_OFD_GETLK,
        .wait = command == F_SETLKW || command == F_OFD_SETLKW,
        .owner = ofd ? df_lock_file_owner(use->file) : use->call.caller->lock_owner,
        .pid = ofd ? -1 : use->call.caller->pid,
    };
    ssize_t ret;

    if (!f)
        return -EFAULT;
    lock.type = f->l_type;
    if ((ret = take_lock(use, f, &lock)) < 0)
        return (int)ret;
    ret = lock_range(use, &lock);
    if (ret == 0 && lock.test)
        df_flock_show(f, &lock);
    else if (ret == 0 && lock.type != F_UNLCK && !ofd && is_closed(use, fd))
        ret = undo(use, &lock);
    return (int)ret;
}

/* ---- fcntl --------------------------------------------------------------------------------- */

/* The commands an O_PATH descriptor takes: open(2). */
static bool is_for_any(int command)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_GETFD ||
           command == F_SETFD || command == F_GETFL;
}

static int run(struct df_use *use, int fd, int command, long arg)
{
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return duplicate(use, arg, command == F_DUPFD_CLOEXEC);
    case F_GETFD:
        return df_fd_cloexec(fd);
    case F_SETFD:
        return df_fd_set_cloexec(fd, arg & FD_CLOEXEC);
    case F_GETFL:
        return df_use_flags(use);
    case F_SETFL:
        return set_flags(use, (int)arg);
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return record_lock(use, fd, command, (struct flock *)arg);
    default:
        return df_gate_refuse(DF_NR_fcntl, -EINVAL);
    }
}

int df_call_fcntl(int fd, int command, long arg)
{
    struct df_use use;
    int ret = is_for_any(command) ? df_use_begin_any(&use, fd) : df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    return (int)df_use_end(&use, run(&use, fd, command, arg));
}
