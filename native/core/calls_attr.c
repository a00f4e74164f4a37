/*
 * calls_attr.c - stat, statx, access, chmod, chown, utimensat, truncate, statvfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/calls.h"
#include "core/check.h"
#include "core/route.h"
#include "core/use.h"

/* How the AT_* flags of a call say that its path is meant. */
static unsigned route_flags(int at_flags)
{
    return ((at_flags & AT_SYMLINK_NOFOLLOW) ? DF_ROUTE_NOFOLLOW : 0) |
           ((at_flags & AT_EMPTY_PATH) ? DF_ROUTE_EMPTY : 0);
}

/* ---- stat ---------------------------------------------------------------------------------- */

#define STAT_FLAGS (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE)

int df_call_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    const int error = df_check_flags(flags, STAT_FLAGS);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, route_flags(flags));

    while (df_way_next(&way, &ret)) {
        ret = error;
        if (DF_LIKELY(ret == 0))
            ret = way.fs->ops->getattr(way.fs, &way.call, &way.leg.where, st);
    }
    if (DF_LIKELY(ret == 0))
        st->st_dev = way.leg.mount->dev;
    return (int)df_check_words(error, df_way_end(&way, ret));
}

int df_call_fstat(int fd, struct stat *st)
{
    struct df_where where = {.name = ""};
    struct df_use use;
    ssize_t ret = df_use_begin_any(&use, fd);

    if (ret < 0)
        return (int)ret;
    where.base = use.file; /* df_use_itself(), with no struct to copy: the hottest of its callers */
    ret = df_call_result(&use.call, use.fs->ops->getattr(use.fs, &use.call, &where, st));
    if (DF_LIKELY(ret == 0))
        st->st_dev = use.call.mount->dev;
    return (int)df_use_end(&use, ret);
}

static struct statx_timestamp statx_time(struct timespec time)
{
    return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec};
}

static void fill_statx(struct statx *stx, const struct df_statx *from)
{
    const struct stat *st = &from->st;

    memset(stx, 0, sizeof(*stx));
    stx->stx_mask = from->mask;
    stx->stx_blksize = (uint32_t)st->st_blksize;
    stx->stx_nlink = (uint32_t)st->st_nlink;
    stx->stx_uid = st->st_uid;
    stx->stx_gid = st->st_gid;
    stx->stx_mode = (uint16_t)st->st_mode;
    stx->stx_ino = st->st_ino;
    stx->stx_size = (uint64_t)st->st_size;
    stx->stx_blocks = (uint64_t)st->st_blocks;
    stx->stx_atime = statx_time(st->st_atim);
    stx->stx_mtime = statx_time(st->st_mtim);
    stx->stx_ctime = statx_time(st->st_ctim);
    stx->stx_rdev_major = major(st->st_rdev);
    stx->stx_rdev_minor = minor(st->st_rdev);
    stx->stx_dev_major = major(st->st_dev);
    stx->stx_dev_minor = minor(st->st_dev);
    if (from->mask & STATX_BTIME)
        stx->stx_btime = statx_time(from->btime);
}

/* do_statx() of the kernel. */
static int check_statx(int flags, unsigned mask)
{
    if ((mask & STATX__RESERVED) || (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE ||
        (flags & ~STAT_FLAGS))
        return -EINVAL;
    return 0;
}

/* As fuse_update_get_attr() of the kernel: STATX is for the time of birth, and what a file system
 * does not know is asked for once. */
static ssize_t statx_there(struct df_way *way, unsigned mask, struct df_statx *out)
{
    struct df_mount *mount = way->leg.mount;
    ssize_t ret;

    if ((mask & STATX_BTIME) && !atomic_load_explicit(&mount->plain_stat, memory_order_relaxed)) {
        ret = way->fs->ops->statx(way->fs, &way->call, &way->leg.where, out);
        ret = df_call_result(&way->call, ret);
        if (ret != DF_PLAIN_STAT)
            return ret;
        atomic_store_explicit(&mount->plain_stat, true, memory_order_relaxed);
    }
    out->mask = STATX_BASIC_STATS;
    return way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &out->st);
}

/* Whether a directory is the root of the way's mount. The root's number stays what it is: it is
 * asked for once. */
static bool is_root(struct df_way *way, const struct stat *found)
{
    const struct df_where where = {.name = "/", .len = 1};
    struct df_mount *mount = way->leg.mount;
    ino_t root = atomic_load_explicit(&mount->root, memory_order_relaxed);
    struct stat st;

    if (!S_ISDIR(found->st_mode))
        return false;
    if (root == 0) {
        if (df_call_result(&way->call, way->fs->ops->getattr(way->fs, &way->call, &where, &st)) < 0)
            return false;
        root = st.st_ino;
        atomic_store_explicit(&mount->root, root, memory_order_relaxed);
    }
    return found->st_ino == root;
}

int df_call_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
    const int error = check_statx(flags, mask);
    struct df_way way;
    struct df_statx found;
    ssize_t ret = df_way_begin(&way, dirfd, path, route_flags(flags));

    while (df_way_next(&way, &ret)) {
        ret = error;
        if (ret == 0)
            ret = statx_there(&way, mask, &found);
    }
    if (ret == 0) {
        found.st.st_dev = way.leg.mount->dev;
        fill_statx(stx, &found);
        stx->stx_attributes_mask = STATX_ATTR_MOUNT_ROOT;
        if (is_root(&way, &found.st))
            stx->stx_attributes = STATX_ATTR_MOUNT_ROOT;
    }
    return (int)df_check_words(error, df_way_end(&way, ret));
}

/* ---- access -------------------------------------------------------------------------------- */

/* Without AT_EACCESS the question is about the real ids: access(2). */
static const struct df_caller *real_caller(const struct df_caller *caller, struct df_caller *real)
{
    if (DF_LIKELY(df_caller_is_real(caller)))
        return caller;
    *real = *caller;
    real->uid = caller->real_uid;
    real->gid = caller->real_gid;
    real->capable = caller->real_uid == 0;
    real->overrides_own = false;
    return real;
}

/* Permitted, but the mount is read-only: EROFS, for what would be written to it. */
static ssize_t check_write_access(struct df_way *way)
{
    struct stat st;
    ssize_t ret = way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &st);

    ret = df_call_result(&way->call, ret);
    if (ret < 0)
        return ret;
    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) ? -EROFS : 0;
}

static ssize_t access_there(struct df_way *way, int mode, int flags)
{
    struct df_caller real;
    ssize_t ret;

    if (!(flags & AT_EACCESS))
        way->call.caller = real_caller(way->call.caller, &real);
    ret = way->fs->ops->access(way->fs, &way->call, &way->leg.where, mode);
    ret = df_call_result(&way->call, ret); /* `real` lives until then */
    if (ret == 0 && (mode & W_OK) && df_check_read_only(way->leg.mount))
        ret = check_write_access(way);
    return ret;
}

/* do_faccessat() of the kernel. */
static int check_access(int mode, int flags)
{
    if (mode & ~(R_OK | W_OK | X_OK))
        return -EINVAL;
    return df_check_flags(flags, AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

int df_call_faccessat(int dirfd, const char *path, int mode, int flags)
{
    const int error = check_access(mode, flags);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, route_flags(flags));

    while (df_way_next(&way, &ret))
        ret = error ? error : access_there(&way, mode, flags);
    return (int)df_check_words(error, df_way_end(&way, ret));
}

/* ---- setting attributes -------------------------------------------------------------------- */

/* chown_common() of the kernel: of neither id, too, it takes the setuid and setgid bits of a file.
 */
static ssize_t chown_of_neither(struct df_fs *fs, struct df_call *call,
                                const struct df_where *where)
{
    struct df_setattr set = {.valid = DF_SET_MODE};
    struct stat st;
    ssize_t ret = df_call_result(call, fs->ops->getattr(fs, call, where, &st));

    if (ret < 0 || S_ISDIR(st.st_mode) || df_check_strip(st.st_mode) == st.st_mode)
        return ret;
    set.mode = df_check_strip(st.st_mode & 07777);
    return df_call_result(call, fs->ops->setattr(fs, call, where, &set, NULL));
}

/* By path. What Linux finds before EROFS is that the path leads nowhere. */
static ssize_t set_there(struct df_way *way, const struct df_setattr *set)
{
    struct stat st;

    if (DF_UNLIKELY(df_check_read_only(way->leg.mount))) {
        ssize_t ret = way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &st);

        ret = df_call_result(&way->call, ret);
        return ret < 0 ? ret : -EROFS;
    }
    if (set->valid == 0)
        return chown_of_neither(way->fs, &way->call, &way->leg.where);
    return df_call_result(&way->call,
                          way->fs->ops->setattr(way->fs, &way->call, &way->leg.where, set, NULL));
}

/* By descriptor. */
static ssize_t set_itself(struct df_use *use, const struct df_setattr *set)
{
    struct df_where where = df_use_itself(use);
    ssize_t ret;

    if (df_check_read_only(use->call.mount))
        return -EROFS;
    if (set->valid == 0)
        return chown_of_neither(use->fs, &use->call, &where);
    ret = use->fs->ops->setattr(use->fs, &use->call, &where, set, NULL);
    return df_call_result(&use->call, ret);
}

#define SET_FLAGS (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

static int set_by_path(int dirfd, const char *path, int flags, const struct df_setattr *set)
{
    const int error = df_check_flags(flags, SET_FLAGS);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, route_flags(flags));

    while (df_way_next(&way, &ret))
        ret = error ? error : set_there(&way, set);
    return (int)df_check_words(error, df_way_end(&way, ret));
}

/* `error`: what is wrong with `set`, once there is such a descriptor. */
static int set_by_fd(int fd, const struct df_setattr *set, int error)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    return (int)df_use_end(&use, error ? error : set_itself(&use, set));
}

/* ---- chmod --------------------------------------------------------------------------------- */

/* A symlink has no mode of its own: EOPNOTSUPP, as Linux's file systems answer fchmodat2(2). */
static ssize_t chmod_there(struct df_way *way, const struct df_setattr *set, int flags)
{
    struct stat st;
    ssize_t ret;

    if (flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) { /* or it may be open: O_PATH */
        ret = way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &st);
        ret = df_call_result(&way->call, ret);
        if (ret < 0)
            return ret;
        if (S_ISLNK(st.st_mode))
            return df_check_read_only(way->leg.mount) ? -EROFS : -EOPNOTSUPP;
    }
    return set_there(way, set);
}

int df_call_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    struct df_setattr set = {.valid = DF_SET_MODE, .mode = mode & 07777};
    const int error = df_check_flags(flags, SET_FLAGS);
    struct df_way way;
    ssize_t ret = df_way_begin(&way, dirfd, path, route_flags(flags));

    while (df_way_next(&way, &ret))
        ret = error ? error : chmod_there(&way, &set, flags);
    return (int)df_check_words(error, df_way_end(&way, ret));
}

int df_call_fchmod(int fd, mode_t mode)
{
    struct df_setattr set = {.valid = DF_SET_MODE, .mode = mode & 07777};

    return set_by_fd(fd, &set, 0);
}

/* ---- chown --------------------------------------------------------------------------------- */

static struct df_setattr owner(uid_t uid, gid_t gid)
{
    return (struct df_setattr){
        .valid = (uid != (uid_t)-1 ? DF_SET_UID : 0) | (gid != (gid_t)-1 ? DF_SET_GID : 0),
        .uid = uid,
        .gid = gid,
    };
}

int df_call_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
    struct df_setattr set = owner(uid, gid);

    return set_by_path(dirfd, path, flags, &set);
}

int df_call_fchown(int fd, uid_t uid, gid_t gid)
{
    struct df_setattr set = owner(uid, gid);

    return set_by_fd(fd, &set, 0);
}

/* ---- times --------------------------------------------------------------------------------- */

static bool valid_time(const struct timespec *time)
{
    return time->tv_nsec == UTIME_NOW || time->tv_nsec == UTIME_OMIT ||
           (time->tv_nsec >= 0 && time->tv_nsec < 1000000000);
}

/* NULL: now. */
static int times_of(const struct timespec times[2], struct df_setattr *set)
{
    static const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    if (!times)
        times = now;
    if (!valid_time(&times[0]) || !valid_time(&times[1]))
        return -EINVAL;
    *set = (struct df_setattr){.atime = times[0], .mtime = times[1]};
    if (times[0].tv_nsec != UTIME_OMIT)
        set->valid |= DF_SET_ATIME | (times[0].tv_nsec == UTIME_NOW ? DF_SET_ATIME_NOW : 0);
    if (times[1].tv_nsec != UTIME_OMIT)
        set->valid |= DF_SET_MTIME | (times[1].tv_nsec == UTIME_NOW ? DF_SET_MTIME_NOW : 0);
    return 0;
}

/* Of times that are none: vfs_utimes() of the kernel sees them when the file is found, before it
 * says EROFS. */
static int refuse_times(int dirfd, const char *path, int flags)
{
    struct stat st;
    int ret = df_call_fstatat(dirfd, path, &st, flags & SET_FLAGS);

    return (int)df_check_words(df_check_flags(flags, SET_FLAGS), ret < 0 ? ret : -EINVAL);
}

/* Two UTIME_OMIT change nothing and Linux does not even look at the path: utimensat(2). */
int df_call_utimensat(int dirfd, const char *path, const struct timespec *times, int flags)
{
    struct df_setattr set;
    int ret = times_of(times, &set);

    if (!path && !df_fd_ours(dirfd))
        return DF_NOT_OURS;
    if (ret == 0 && set.valid == 0)
        return 0;
    if (!path)
        return flags ? -EINVAL : df_call_futimens(dirfd, times);
    return ret < 0 ? refuse_times(dirfd, path, flags) : set_by_path(dirfd, path, flags, &set);
}

int df_call_futimens(int fd, const struct timespec *times)
{
    struct df_setattr set;
    int ret;

    if (!df_fd_ours(fd))
        return DF_NOT_OURS;
    ret = times_of(times, &set);
    return ret == 0 && set.valid == 0 ? 0 : set_by_fd(fd, &set, ret);
}

/* ---- truncate ------------------------------------------------------------------------------ */

/* As check_growth() of calls_file.c, behind the right to write; what no regular file is, is refused
 * by setattr. */
static ssize_t check_growth(struct df_way *way, off_t size)
{
    const struct df_where *where = &way->leg.where;
    struct stat st;
    ssize_t ret;

    if (DF_LIKELY(size <= way->call.caller->size_limit))
        return 0;
    ret = df_call_result(&way->call, way->fs->ops->getattr(way->fs, &way->call, where, &st));
    if (ret < 0 || !S_ISREG(st.st_mode) || size <= st.st_size)
        return ret;
    ret = df_call_result(&way->call, way->fs->ops->access(way->fs, &way->call, where, W_OK));
    return ret < 0 ? ret : df_caller_too_large();
}

/* vfs_truncate(): EISDIR and EINVAL stand before EROFS, and RLIMIT_FSIZE behind it. */
static ssize_t truncate_there(struct df_way *way, const struct df_setattr *set)
{
    struct stat st;
    ssize_t ret;

    if (!df_check_read_only(way->leg.mount)) {
        ret = check_growth(way, set->size);
        return ret < 0 ? ret : set_there(way, set);
    }
    ret = way->fs->ops->getattr(way->fs, &way->call, &way->leg.where, &st);
    ret = df_call_result(&way->call, ret);
    if (ret < 0)
        return ret;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? -EROFS : -EINVAL;
}

int df_call_truncate(const char *path, off_t size)
{
    struct df_setattr set = {.valid = DF_SET_SIZE, .size = size};
    const int error = size < 0 ? -EINVAL : 0;
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, 0);

    while (df_way_next(&way, &ret))
        ret = error ? error : truncate_there(&way, &set);
    return (int)df_check_words(error, df_way_end(&way, ret));
}

/* ---- statvfs ------------------------------------------------------------------------------- */

/* Of the flags, the identifier and the files of others, FUSE's messages have none. */
static void complete_statvfs(struct statvfs *out, const struct df_mount *mount)
{
    out->f_flag = ST_NOSUID | ST_NODEV | ST_RELATIME | (df_check_read_only(mount) ? ST_RDONLY : 0);
    if (out->f_frsize == 0) /* statfs(2) has it, FUSE servers often leave it out */
        out->f_frsize = out->f_bsize;
    out->f_favail = out->f_ffree;
    out->f_fsid = mount->dev;
}

int df_call_statvfs(const char *path, struct statvfs *out)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, 0);

    while (df_way_next(&way, &ret))
        ret = way.fs->ops->statfs(way.fs, &way.call, &way.leg.where, out);
    if (ret == 0)
        complete_statvfs(out, way.leg.mount);
    return (int)df_way_end(&way, ret);
}

int df_call_fstatvfs(int fd, struct statvfs *out)
{
    struct df_where where;
    struct df_use use;
    ssize_t ret = df_use_begin_any(&use, fd);

    if (ret < 0)
        return (int)ret;
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, use.fs->ops->statfs(use.fs, &use.call, &where, out));
    if (ret == 0)
        complete_statvfs(out, use.call.mount);
    return (int)df_use_end(&use, ret);
}
