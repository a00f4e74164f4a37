/*
 * calls_name.c - entries of directories: mkdirat, mknodat, unlinkat, renameat2, linkat, symlinkat,
 * readlinkat.
 *
 * A host sees only plain names to make, remove or move: what POSIX says of ".", "..", a mountpoint
 * and a trailing slash is answered here, after a look whether the way there exists, as Linux does
 * (filename_create(), do_unlinkat(), do_renameat2()).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/calls.h"
#include "core/check.h"
#include "core/route.h"
#include "core/table.h"
#include "core/use.h"
#include "core/walk.h"

/* ---- making -------------------------------------------------------------------------------- */

/* 0: the new name exists; 1: it does not, but its directory does; or the error of the way. */
static ssize_t look_at_new(struct df_fs *fs, struct df_call *call, const struct df_leg *leg)
{
    struct stat st;

    if (leg->last != DF_LAST_NAME)
        return df_check_walked(fs, call, &leg->where);
    return df_check_entry(fs, call, &leg->where, false, &st);
}

/* 0: the host may make the entry. */
static ssize_t check_new(struct df_way *way, bool directory)
{
    bool odd = way->leg.last != DF_LAST_NAME || (way->leg.slash && !directory);
    ssize_t ret;

    if (DF_LIKELY(!odd && !df_check_read_only(way->leg.mount)))
        return 0;
    ret = look_at_new(way->fs, &way->call, &way->leg);
    if (ret <= 0)
        return ret < 0 ? ret : -EEXIST;
    return odd ? -ENOENT : -EROFS;
}

int df_call_mkdirat(int dirfd, const char *path, mode_t mode)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, DF_ROUTE_PARENT);

    while (df_way_next(&way, &ret))
        if ((ret = check_new(&way, true)) == 0)
            ret = way.fs->ops->mkdir(way.fs, &way.call, &way.leg.where, mode & 01777);
    return (int)df_way_end(&way, ret);
}

/* Before any name is looked at: may_mknod(). Before that, glibc says EINVAL of a device that has
 * more than the 32 bits of mknod(2), whatever is to be made. */
static int check_node(mode_t mode, dev_t rdev)
{
    if (rdev != (unsigned)rdev)
        return -EINVAL;
    switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        return 0;
    case S_IFDIR:
        return -EPERM;
    default:
        return -EINVAL;
    }
}

/* After that the name is looked at, and only then who asks: vfs_mknod(). */
static ssize_t refuse_device(struct df_way *way)
{
    ssize_t ret = look_at_new(way->fs, &way->call, &way->leg);

    return ret < 0 ? ret : ret == 0 ? -EEXIST : -EPERM;
}

/* All devices but the one that hides a name in an overlay: it leads to none (WHITEOUT_DEV). */
static bool is_privileged(mode_t mode, dev_t rdev)
{
    return S_ISBLK(mode) || (S_ISCHR(mode) && rdev != 0);
}

static ssize_t mknod_there(struct df_way *way, mode_t mode, dev_t rdev)
{
    ssize_t ret = check_new(way, false);

    if (ret < 0)
        return ret;
    if (is_privileged(mode, rdev) && !way->call.caller->capable)
        return refuse_device(way);
    if ((mode & S_IFMT) == 0)
        mode |= S_IFREG;
    mode = df_check_new_mode(way->fs, &way->call, &way->leg.where, mode & (S_IFMT | 07777));
    return way->fs->ops->mknod(way->fs, &way->call, &way->leg.where, mode, rdev);
}

int df_call_mknodat(int dirfd, const char *path, mode_t mode, dev_t rdev)
{
    struct df_way way;
    ssize_t ret = check_node(mode, rdev);

    if (ret < 0)
        return (int)ret;
    ret = df_way_begin(&way, dirfd, path, DF_ROUTE_PARENT);
    while (df_way_next(&way, &ret))
        ret = mknod_there(&way, mode, rdev);
    return (int)df_way_end(&way, ret);
}

/* Before the new name is looked at: do_symlinkat(). */
static int check_target(const char *target)
{
    if (!target)
        return -EFAULT;
    if (target[0] == '\0')
        return -ENOENT;
    return strnlen(target, PATH_MAX) == PATH_MAX ? -ENAMETOOLONG : 0;
}

int df_call_symlinkat(const char *target, int dirfd, const char *path)
{
    struct df_way way;
    ssize_t ret = check_target(target);

    if (ret < 0)
        return (int)ret;
    ret = df_way_begin(&way, dirfd, path, DF_ROUTE_PARENT);
    while (df_way_next(&way, &ret))
        if ((ret = check_new(&way, false)) == 0)
            ret = way.fs->ops->symlink(way.fs, &way.call, target, &way.leg.where);
    return (int)df_way_end(&way, ret);
}

/* ---- removing ------------------------------------------------------------------------------ */

/* EROFS comes before the question whether the entry exists: do_unlinkat(). */
static ssize_t check_read_only(struct df_way *way)
{
    ssize_t ret;

    if (DF_LIKELY(!df_check_read_only(way->leg.mount)))
        return 0;
    ret = df_check_parent(way->fs, &way->call, &way->leg.where);
    return ret < 0 ? ret : -EROFS;
}

static ssize_t rmdir_there(struct df_way *way)
{
    static const int refusal[] = {
        [DF_LAST_DOT] = -EINVAL, [DF_LAST_DOTDOT] = -ENOTEMPTY, [DF_LAST_ROOT] = -EBUSY};
    ssize_t ret;

    if (way->leg.last != DF_LAST_NAME) {
        ret = df_check_walked(way->fs, &way->call, &way->leg.where);
        return ret < 0 ? ret : refusal[way->leg.last];
    }
    ret = check_read_only(way);
    return ret < 0 ? ret : way->fs->ops->rmdir(way->fs, &way->call, &way->leg.where);
}

/* A mountpoint: of a file system whose root may be a file. */
static ssize_t unlink_root(struct df_way *way)
{
    struct stat st;
    ssize_t ret = df_check_entry(way->fs, &way->call, &way->leg.where, false, &st);

    if (ret != 0)
        return ret < 0 ? ret : -ENOENT;
    return S_ISDIR(st.st_mode) ? -EISDIR : way->leg.slash ? -ENOTDIR : -EBUSY;
}

static ssize_t unlink_there(struct df_way *way)
{
    struct stat st;
    ssize_t ret;

    if (way->leg.last == DF_LAST_ROOT)
        return unlink_root(way);
    if (way->leg.last != DF_LAST_NAME) {
        ret = df_check_walked(way->fs, &way->call, &way->leg.where);
        return ret < 0 ? ret : -EISDIR;
    }
    ret = check_read_only(way);
    if (ret < 0)
        return ret;
    if (DF_LIKELY(!way->leg.slash))
        return way->fs->ops->unlink(way->fs, &way->call, &way->leg.where);
    ret = df_check_entry(way->fs, &way->call, &way->leg.where, false, &st);
    if (ret != 0)
        return ret < 0 ? ret : -ENOENT;
    return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTDIR;
}

int df_call_unlinkat(int dirfd, const char *path, int flags)
{
    const int error = df_check_flags(flags, AT_REMOVEDIR);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, DF_ROUTE_PARENT);

    while (df_way_next(&way, &ret)) {
        if ((ret = error) == 0)
            ret = flags & AT_REMOVEDIR ? rmdir_there(&way) : unlink_there(&way);
    }
    return (int)df_check_words(error, df_way_end(&way, ret));
}

/* ---- renaming ------------------------------------------------------------------------------ */

/* A directory that has a mountpoint below it would take the mount along; it stays where it is. */
static bool carries_mount(const struct df_leg *leg)
{
    char path[2 * PATH_MAX];

    if (leg->where.base || leg->mount->point_len + leg->where.len >= sizeof(path))
        return false;
    memcpy(path, leg->mount->point, leg->mount->point_len);
    memcpy(path + leg->mount->point_len, leg->where.name, leg->where.len);
    return df_table_below(path, leg->mount->point_len + leg->where.len);
}

/* The way to a name is its directory; that to "." or ".." is itself. A root may be a file. */
static ssize_t check_leg(struct df_way_pair *way, const struct df_leg *leg)
{
    struct stat st;

    if (leg->last == DF_LAST_NAME)
        return df_check_parent(way->fs, &way->call, &leg->where);
    if (leg->last == DF_LAST_ROOT && !leg->slash)
        return df_check_entry(way->fs, &way->call, &leg->where, false, &st);
    return df_check_walked(way->fs, &way->call, &leg->where);
}

static ssize_t check_legs(struct df_way_pair *way)
{
    ssize_t ret = check_leg(way, &way->from);

    if (ret < 0)
        return ret;
    df_call_begin_second(&way->call);
    return df_call_end_second(&way->call, check_leg(way, &way->to));
}

/* Neither side may be ".", ".." or a mountpoint; after the ways there have been walked. */
static ssize_t check_last(struct df_way_pair *way, unsigned flags)
{
    ssize_t ret;

    if (DF_LIKELY(way->from.last == DF_LAST_NAME && way->to.last == DF_LAST_NAME &&
                  !df_check_read_only(way->from.mount)))
        return 0;
    if ((ret = check_legs(way)) < 0)
        return ret;
    if (way->from.last != DF_LAST_NAME)
        return -EBUSY;
    if (way->to.last != DF_LAST_NAME)
        return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    return -EROFS;
}

/* The second name, after the ways to both have been walked: 0, or what stands before a slash. */
static ssize_t check_second(struct df_way_pair *way, unsigned flags, bool *directory)
{
    struct stat st;
    ssize_t ret;

    df_call_begin_second(&way->call);
    ret = df_check_entry(way->fs, &way->call, &way->to.where, false, &st);
    ret = df_call_end_second(&way->call, ret);
    if (ret < 0)
        return ret;
    *directory = ret == 0 && S_ISDIR(st.st_mode);
    if (ret == 0)
        return flags & RENAME_NOREPLACE ? -EEXIST : 0;
    return flags & RENAME_EXCHANGE ? -ENOENT : 0;
}

/* Whether the last component is longer than most file systems take, who say so when they are asked
 * for it. */
static bool is_long(const struct df_leg *leg)
{
    const char *name = leg->where.name;
    size_t before = leg->where.len;

    if (DF_LIKELY(before <= NAME_MAX))
        return false;
    while (before > 0 && name[before - 1] != '/')
        before--;
    return leg->where.len - before > NAME_MAX;
}

/* A trailing slash on either side asks for a directory. That, and what is wrong with a name itself,
 * comes after both ways, and the second name after the first: do_renameat2(). */
static ssize_t check_names(struct df_way_pair *way, unsigned flags)
{
    bool slash = way->from.slash || way->to.slash, first, second;
    struct stat st;
    ssize_t ret;

    if (DF_LIKELY(!slash && !is_long(&way->from) && !is_long(&way->to)))
        return 0;
    if ((ret = check_legs(way)) < 0)
        return ret;
    ret = df_check_entry(way->fs, &way->call, &way->from.where, false, &st);
    if (ret != 0)
        return ret < 0 ? ret : -ENOENT;
    first = S_ISDIR(st.st_mode);
    if ((ret = check_second(way, flags, &second)) < 0)
        return ret;
    if (flags & RENAME_EXCHANGE)
        return (way->from.slash && !first) || (way->to.slash && !second) ? -ENOTDIR : 0;
    return first || !slash ? 0 : -ENOTDIR;
}

/* do_renameat2(). */
static int check_rename(unsigned flags)
{
    if (flags & RENAME_EXCHANGE)
        return flags == RENAME_EXCHANGE ? 0 : -EINVAL;
    return df_check_flags((int)flags, RENAME_NOREPLACE | RENAME_WHITEOUT);
}

static ssize_t rename_there(struct df_way_pair *way, unsigned flags)
{
    ssize_t ret;

    if ((ret = check_last(way, flags)) < 0 || (ret = check_names(way, flags)) < 0)
        return ret;
    if (carries_mount(&way->from) || carries_mount(&way->to))
        return df_gate_refuse(DF_NR_renameat2, -EBUSY);
    return way->fs->ops->rename(way->fs, &way->call, &way->from.where, &way->to.where, flags);
}

/* The path of a leg that is real, and what it starts from. */
static const char *real_path(int *dirfd, const char *path)
{
    const char *left = df_left_path(0);

    if (left)
        *dirfd = AT_FDCWD;
    return left ? left : path;
}

/* The two lead to no one file system (EXDEV), or one of them nowhere; neither was walked yet. */
static bool is_astray(const struct df_way_pair *way, ssize_t ret)
{
    return ret < 0 && ret != DF_NOT_OURS && way->thread && !way->fs;
}

/* The kernel finds nothing where one of two paths leads that is its own: a real symlink on it may
 * lead to the mount of the other (route.h). True: the call is to be made again, then
 * df_retry_end(). */
static bool may_meet(ssize_t looked)
{
    const struct df_thread *thread = df_gate_thread();

    return looked < 0 && thread && !thread->follow_real_links && df_retry_begin((int)-looked);
}

/* The directory of a path, for EXDEV: before that a mountpoint of ours is EBUSY. */
static ssize_t look_at_parent(int dirfd, const char *path)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, DF_ROUTE_PARENT);

    while (df_way_next(&way, &ret))
        ret = way.leg.last == DF_LAST_ROOT ? -EBUSY
                                           : df_check_parent(way.fs, &way.call, &way.leg.where);
    ret = df_way_end(&way, ret);
    if (ret != DF_NOT_OURS)
        return ret;
    path = real_path(&dirfd, path);
    return df_walk_real_parent(dirfd, path);
}

int df_call_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
                      unsigned flags)
{
    const int error = check_rename(flags);
    struct df_way_pair way;
    ssize_t ret =
        df_way_pair_begin(&way, from_dirfd, from, DF_ROUTE_PARENT, to_dirfd, to, DF_ROUTE_PARENT);
    ssize_t looked;
    bool astray;

    do {
        while (df_way_pair_next(&way, &ret))
            ret = error ? error : rename_there(&way, flags);
    } while (df_way_pair_settle(&way, &ret));
    astray = is_astray(&way, ret);
    ret = df_check_words(error, df_way_pair_end(&way, ret));
    if (error || !astray)
        return (int)ret;
    if ((looked = look_at_parent(from_dirfd, from)) == 0)
        looked = look_at_parent(to_dirfd, to);
    if (may_meet(looked)) {
        looked = df_call_renameat2(from_dirfd, from, to_dirfd, to, flags);
        df_retry_end();
        return (int)looked;
    }
    return (int)(looked < 0 ? looked : ret);
}

/* ---- linking ------------------------------------------------------------------------------- */

/* The new name, as check_new() for a way of two. */
static ssize_t check_link(struct df_way_pair *way)
{
    bool odd = way->to.last != DF_LAST_NAME || way->to.slash;
    struct stat st;
    ssize_t ret;

    if (DF_LIKELY(!odd && !df_check_read_only(way->to.mount)))
        return 0;
    ret = way->fs->ops->getattr(way->fs, &way->call, &way->from.where, &st);
    if ((ret = df_call_result(&way->call, ret)) < 0)
        return ret;
    df_call_begin_second(&way->call);
    ret = df_call_end_second(&way->call, look_at_new(way->fs, &way->call, &way->to));
    if (ret < 0)
        return ret;
    if (ret == 0)
        return -EEXIST;
    return odd ? -ENOENT : -EROFS;
}

static ssize_t link_there(struct df_way_pair *way)
{
    ssize_t ret = check_link(way);

    if (ret < 0)
        return ret;
    return way->fs->ops->link(way->fs, &way->call, &way->from.where, &way->to.where);
}

static ssize_t look_at_old(int dirfd, const char *path, int flags)
{
    struct stat st;
    ssize_t ret = df_call_fstatat(dirfd, path, &st, flags);

    if (ret != DF_NOT_OURS)
        return ret;
    path = real_path(&dirfd, path);
    return df_walk_real_entry(dirfd, path, flags);
}

/* A slash behind the name would have a link there followed, and a file refused: filename_create().
 */
static ssize_t look_at_real_new(int dirfd, const char *path)
{
    char name[PATH_MAX];
    size_t len;
    ssize_t ret;

    path = real_path(&dirfd, path);
    len = strnlen(path, PATH_MAX);
    if (len == PATH_MAX)
        return -ENAMETOOLONG;
    while (len > 1 && path[len - 1] == '/')
        len--;
    *(char *)mempcpy(name, path, len) = '\0';
    if (df_walk_real_entry(dirfd, name, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    ret = df_walk_real_parent(dirfd, name);
    return ret == 0 && path[len] == '/' ? -ENOENT : ret;
}

/* What Linux finds before EXDEV, and before a new name that leads nowhere: no old file, or a new
 * name that is taken. */
static ssize_t look_at_link(int from_dirfd, const char *from, int to_dirfd, const char *to,
                            int flags)
{
    struct df_way way;
    struct stat st;
    ssize_t ret = look_at_old(from_dirfd, from,
                              (flags & AT_EMPTY_PATH) |
                                  (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW));

    if (ret < 0)
        return ret;
    ret = df_way_begin(&way, to_dirfd, to, DF_ROUTE_PARENT);
    while (df_way_next(&way, &ret))
        if ((ret = df_check_entry(way.fs, &way.call, &way.leg.where, false, &st)) >= 0)
            ret = ret == 0 ? -EEXIST : way.leg.slash ? -ENOENT : 0;
    ret = df_way_end(&way, ret);
    return ret == DF_NOT_OURS ? look_at_real_new(to_dirfd, to) : ret;
}

int df_call_linkat(int from_dirfd, const char *from, int to_dirfd, const char *to, int flags)
{
    const int error = df_check_flags(flags, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH);
    unsigned from_flags = (flags & AT_SYMLINK_FOLLOW ? 0 : DF_ROUTE_NOFOLLOW) |
                          (flags & AT_EMPTY_PATH ? DF_ROUTE_EMPTY : 0);
    struct df_way_pair way;
    ssize_t ret =
        df_way_pair_begin(&way, from_dirfd, from, from_flags, to_dirfd, to, DF_ROUTE_PARENT);
    ssize_t looked;
    bool astray;

    do {
        while (df_way_pair_next(&way, &ret))
            ret = error ? error : link_there(&way);
    } while (df_way_pair_settle(&way, &ret));
    astray = is_astray(&way, ret);
    ret = df_check_words(error, df_way_pair_end(&way, ret));
    if (!error && astray && (looked = look_at_link(from_dirfd, from, to_dirfd, to, flags)) < 0)
        ret = looked;
    if (!error && astray && may_meet(looked)) {
        ret = df_call_linkat(from_dirfd, from, to_dirfd, to, flags);
        df_retry_end();
    }
    return ret == -ENOSYS ? -EPERM : (int)ret; /* link(2): there are none; Linux since 6.15 */
}

/* ---- readlink ------------------------------------------------------------------------------ */

ssize_t df_call_readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
    const int error =
        size == 0 || size > INT32_MAX ? -EINVAL : 0; /* the system call takes an int */
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, DF_ROUTE_NOFOLLOW | DF_ROUTE_EMPTY);

    while (df_way_next(&way, &ret)) {
        if ((ret = error) == 0)
            ret = way.fs->ops->readlink(way.fs, &way.call, &way.leg.where, buf, size);
    }
    ret = df_check_words(error, df_way_end(&way, ret));
    return ret == -EINVAL && !error && path[0] == '\0' ? -ENOENT : ret; /* do_readlinkat() */
}
