/*
 * calls_open.c - openat, close, dup, dup3.
 */
#include <errno.h>
#include <fcntl.h>

#include "core/calls.h"
#include "core/check.h"
#include "core/lock.h"
#include "core/route.h"
#include "core/use.h"

/* ---- openat -------------------------------------------------------------------------------- */

/* What F_GETFL does not show: open(2), "file creation flags". */
#define CREATION_FLAGS (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC)

/* The kernel's, which is among the flags of each file that a 64-bit program opens; libc's is 0. */
#define KERNEL_O_LARGEFILE 0100000

#define TMPFILE            (O_TMPFILE & ~O_DIRECTORY) /* asm-generic/fcntl.h: __O_TMPFILE */
#define SYNC               (O_SYNC & ~O_DSYNC)        /* and __O_SYNC, which is O_DSYNC, too */

/* VALID_OPEN_FLAGS of the kernel: others have no meaning, and F_GETFL does not show them. */
#define KNOWN_FLAGS                                                                                \
    (O_ACCMODE | CREATION_FLAGS | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT |            \
     KERNEL_O_LARGEFILE | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_PATH | TMPFILE)

struct opening {
    int flags; /* of those that check_flags() leaves */
    bool cloexec;
    mode_t mode;
    int fd;               /* reserved; negative: not yet */
    struct df_file *file; /* being opened */
};

/* build_open_flags() of the kernel. The file knows nothing of its descriptor's O_CLOEXEC. */
static int check_flags(int *flags)
{
    if (*flags & O_PATH)
        *flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
    else
        *flags = (*flags & KNOWN_FLAGS) | KERNEL_O_LARGEFILE;
    if (*flags & SYNC)
        *flags |= O_DSYNC;
    if ((*flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
        return -EINVAL;
    if ((*flags & TMPFILE) && (!(*flags & O_DIRECTORY) || (*flags & O_ACCMODE) == O_RDONLY))
        return -EINVAL;
    return 0;
}

static bool nofollow(int flags)
{
    return (flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL | O_PATH)) == (O_CREAT | O_EXCL);
}

static bool writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

/* On a read-only mount: everything Linux finds wrong before EROFS, then EROFS; 0 when the file is
 * there and is only read (O_CREAT has no meaning then). */
static ssize_t check_read_only(struct df_way *way, int *flags)
{
    struct stat st;
    ssize_t ret;

    if (!writes(*flags) && !(*flags & O_CREAT))
        return 0;
    ret = df_check_entry(way->fs, &way->call, &way->leg.where, !nofollow(*flags), &st);
    if (ret != 0)
        return ret < 0 ? ret : (*flags & O_CREAT) ? -EROFS : -ENOENT;
    if ((*flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (writes(*flags) && S_ISREG(st.st_mode))
        return -EROFS;
    *flags &= ~O_CREAT;
    return 0;
}

/* O_CREAT of "name/", ".", ".." or the root of the mount: open(2), EISDIR. A root that is a file is
 * there, and is opened. */
static ssize_t check_creatable(struct df_way *way, int flags)
{
    struct stat st;
    ssize_t ret;

    if (!(flags & O_CREAT) || (way->leg.last == DF_LAST_NAME && !way->leg.slash))
        return 0;
    if (way->leg.last == DF_LAST_NAME) {
        ret = df_check_entry(way->fs, &way->call, &way->leg.where, false, &st);
        return ret < 0 ? ret : -EISDIR; /* a link there is not followed: it may lead in a circle */
    }
    ret = df_check_walked(way->fs, &way->call, &way->leg.where);
    if (ret == -ENOTDIR && way->leg.last == DF_LAST_ROOT)
        return way->leg.slash ? -EISDIR : flags & O_EXCL ? -EEXIST : 0;
    if (ret < 0)
        return ret;
    return flags & O_EXCL && !(way->leg.last == DF_LAST_ROOT && way->leg.slash) ? -EEXIST : -EISDIR;
}

/* As Linux does, the descriptor comes before the file: EMFILE leaves nothing behind. */
static ssize_t prepare(struct df_way *way, struct opening *o, int flags)
{
    if (o->fd < 0 && (o->fd = df_fd_reserve(way->thread)) < 0)
        return o->fd;
    if (o->file) /* the way left the mount it was for */
        df_file_discard(way->thread, o->file);
    o->file = df_file_new(way->thread, way->leg.mount, way->fs, flags & ~CREATION_FLAGS);
    return o->file ? 0 : -ENOMEM;
}

/* do_tmpfile() of the kernel: what the path names comes first, then EROFS. */
static ssize_t make_nameless(struct df_way *way, struct opening *o, int flags)
{
    struct stat st;
    mode_t mode;
    ssize_t ret;

    if (DF_UNLIKELY(df_check_read_only(way->leg.mount))) {
        ret = way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &st);
        ret = df_call_result(&way->call, ret);
        return ret < 0 ? ret : S_ISDIR(st.st_mode) ? -EROFS : -ENOTDIR;
    }
    if ((ret = prepare(way, o, flags)) < 0)
        return ret;
    mode = df_check_nameless_mode(way->fs, &way->call, &way->leg.where, o->mode);
    return way->fs->ops->tmpfile(way->fs, &way->call, &way->leg.where, o->file, flags, mode);
}

static ssize_t open_named(struct df_way *way, struct opening *o, int flags)
{
    mode_t mode = o->mode;
    ssize_t ret;

    if ((ret = check_creatable(way, flags)) < 0)
        return ret;
    if (DF_UNLIKELY(df_check_read_only(way->leg.mount)) && (ret = check_read_only(way, &flags)) < 0)
        return ret;
    if ((ret = prepare(way, o, flags)) < 0)
        return ret;
    if (flags & O_CREAT)
        mode = df_check_new_mode(way->fs, &way->call, &way->leg.where, mode);
    return way->fs->ops->open(way->fs, &way->call, &way->leg.where, o->file, flags, mode);
}

/* do_dentry_open() of the kernel: whether it can be is seen when it is open. No directory can. */
static ssize_t open_direct(struct df_way *way, struct opening *o, int flags)
{
    ssize_t ret = df_call_result(&way->call, open_named(way, o, flags));

    if (ret < 0 || o->file->kind != DF_KIND_DIRECTORY)
        return ret;
    way->fs->ops->release(way->fs, &way->call, o->file);
    return -EINVAL;
}

static ssize_t open_there(struct df_way *way, struct opening *o)
{
    int flags = o->flags;

    if (DF_UNLIKELY(flags & (TMPFILE | O_DIRECT)))
        return flags & TMPFILE ? make_nameless(way, o, flags) : open_direct(way, o, flags);
    return open_named(way, o, flags);
}

/* Gives the reserved number its file, or both back. */
static ssize_t finish(struct df_way *way, struct opening *o, ssize_t ret)
{
    if (DF_LIKELY(ret >= 0)) {
        df_file_opened(o->file);
        df_fd_install(o->fd, o->file, o->cloexec);
        return o->fd;
    }
    if (o->file)
        df_file_discard(way->thread, o->file);
    if (o->fd >= 0)
        df_fd_give_back(way->thread, o->fd);
    return ret;
}

static int open_by(int dirfd, const char *path, unsigned route, int flags, mode_t mode)
{
    struct opening o = {
        .flags = flags, .cloexec = flags & O_CLOEXEC, .mode = mode & 07777, .fd = -1};
    const int error = check_flags(&o.flags);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, route);

    while (df_way_next(&way, &ret))
        ret = error ? error : open_there(&way, &o);
    ret = finish(&way, &o, ret);
    return (int)df_check_words(error, df_way_end(&way, ret));
}

int df_call_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return open_by(dirfd, path, nofollow(flags) ? DF_ROUTE_NOFOLLOW : 0, flags, mode);
}

static bool is_directory(int fd)
{
    struct stat st;

    return df_call_fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What is there is not made: of O_CREAT is left what Linux refuses with it. */
int df_call_open_again(int fd, int flags, mode_t mode)
{
    if (flags & O_CREAT && !(flags & O_PATH)) {
        if (flags & O_DIRECTORY)
            return -EINVAL;
        if (is_directory(fd))
            return -EISDIR;
    }
    return open_by(fd, "", DF_ROUTE_EMPTY, flags & ~O_CREAT, mode);
}

/* ---- close --------------------------------------------------------------------------------- */

/* What every way of closing a descriptor does: flushes, drops the closing owner's POSIX locks and
 * the reference; the file is out of the table already. The flush's error, which is close's. */
static int close_file(struct df_thread *thread, struct df_file *file)
{
    struct df_call call;
    ssize_t ret = 0;

    df_call_start(&call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    if (!(atomic_load_explicit(&file->flags, memory_order_relaxed) & O_PATH)) {
        uint64_t owner = call.caller->lock_owner;

        if (!(file->traits & DF_FILE_NOFLUSH))
            ret = df_call_result(&call, file->fs->ops->flush(file->fs, &call, file, owner));
        df_lock_close(&call, file, owner);
    }
    df_file_put(thread, file);
    return (int)ret;
}

int df_call_close(int fd)
{
    struct df_thread *thread;
    struct df_file *file;
    int ret;

    if (!df_fd_ours(fd))
        return DF_NOT_OURS;
    thread = df_gate_enter(&ret);
    if (!thread)
        return ret;
    file = df_fd_take(thread, fd);
    ret = file ? close_file(thread, file) : -EBADF;
    df_gate_leave(thread);
    return ret;
}

/* ---- dup ----------------------------------------------------------------------------------- */

int df_call_dup(int fd)
{
    struct df_use use;
    int copy, ret = df_use_begin_any(&use, fd);

    if (ret < 0)
        return ret;
    if (!df_file_hold(use.file)) /* closed meanwhile */
        return (int)df_use_end(&use, -EBADF);
    copy = df_fd_reserve(use.thread);
    if (copy >= 0)
        df_fd_install(copy, use.file, false);
    else
        df_file_put(use.thread, use.file);
    return (int)df_use_end(&use, copy);
}

int df_call_dup3(int fd, int newfd, int flags)
{
    struct df_use use;
    struct df_file *old = NULL;
    int ret;

    if (!df_fd_ours(fd) && !df_fd_ours(newfd))
        return DF_NOT_OURS;
    if ((flags & ~O_CLOEXEC) || fd == newfd)
        return -EINVAL;
    if (!df_fd_ours(fd) || !df_fd_ours(newfd))
        return df_gate_refuse(DF_NR_dup3, -EXDEV);
    ret = df_use_begin_any(&use, fd);
    if (ret < 0)
        return ret;
    if (!df_file_hold(use.file)) /* closed meanwhile */
        return (int)df_use_end(&use, -EBADF);
    ret = df_fd_replace(newfd, use.file, flags & O_CLOEXEC, &old);
    if (ret < 0)
        df_file_put(use.thread, use.file);
    else if (old)
        close_file(use.thread, old); /* its error is lost: dup(2) */
    return (int)df_use_end(&use, ret);
}
