/*
 * names.c - passthrough's operations on names, and on attributes by name or handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "passthrough.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6 */
#endif

int result(int returned)
{
    return returned == -1 ? -errno : 0;
}

/* ---- what was made ---------------------------------------------------------------------- */

/* chmod(2) that does not follow a link; on kernels without fchmodat2 it is never asked to. */
static int change_mode(const char *path, mode_t mode)
{
    int ret = (int)syscall(SYS_fchmodat2, passthrough.root, relative(path), mode,
                           AT_SYMLINK_NOFOLLOW);
    if (ret == -1 && errno == ENOSYS)
        ret = fchmodat(passthrough.root, relative(path), mode, 0);
    return result(ret);
}

/* In a directory with the setgid bit what is made belongs to the directory's group. */
static gid_t group_for(const char *path, gid_t gid)
{
    char parent[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    memcpy(parent, path, length);
    parent[length] = '\0';
    if (fstatat(passthrough.root, relative(parent), &st, AT_SYMLINK_NOFOLLOW) != 0)
        return gid;
    return st.st_mode & S_ISGID ? (gid_t)-1 : gid;
}

static int give_away(const char *path, int fd)
{
    const struct fuse_context *caller = fuse_get_context();
    if (caller->uid == geteuid() && caller->gid == getegid())
        return 0;
    gid_t gid = group_for(path, caller->gid);
    if (fd >= 0)
        return result(fchown(fd, caller->uid, gid));
    return result(
        fchownat(passthrough.root, relative(path), caller->uid, gid, AT_SYMLINK_NOFOLLOW));
}

int settle(const char *path, int fd, mode_t mode)
{
    int error = passthrough.give_files ? give_away(path, fd) : 0;
    if (error || S_ISLNK(mode) || !(mode & passthrough.umask))
        return error;
    return fd >= 0 ? result(fchmod(fd, mode & 07777)) : change_mode(path, mode & 07777);
}

/* ---- attributes ------------------------------------------------------------------------- */

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    if (fi)
        return result(fstat((int)fi->fh, st));
    return result(fstatat(passthrough.root, relative(path), st, AT_SYMLINK_NOFOLLOW));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return fi ? result(fchmod((int)fi->fh, mode)) : change_mode(path, mode);
}

static int do_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    if (fi)
        return result(fchown((int)fi->fh, uid, gid));
    return result(fchownat(passthrough.root, relative(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    if (fi)
        return result(futimens((int)fi->fh, times));
    return result(utimensat(passthrough.root, relative(path), times, AT_SYMLINK_NOFOLLOW));
}

/* For calls that have no *at form. */
static const char *full_path(const char *path, char buffer[PATH_MAX])
{
    int length =
        snprintf(buffer, PATH_MAX, "/proc/self/fd/%d/%s", passthrough.root, relative(path));
    return length < PATH_MAX ? buffer : NULL;
}

#define BY_FULL_PATH(call)                                                                         \
    do {                                                                                           \
        char buffer[PATH_MAX];                                                                     \
        const char *full = full_path(path, buffer);                                                \
        if (!full)                                                                                 \
            return -ENAMETOOLONG;                                                                  \
        ssize_t ret = (call);                                                                      \
        return ret == -1 ? -errno : (int)ret;                                                      \
    } while (0)

static int do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    if (fi)
        return result(ftruncate((int)fi->fh, size));
    BY_FULL_PATH(truncate(full, size));
}

static int do_access(const char *path, int mask)
{
    return result(faccessat(passthrough.root, relative(path), mask, 0));
}

static int do_statfs(const char *path, struct statvfs *out)
{
    (void)path;
    return result(fstatvfs(passthrough.root, out));
}

/* ---- extended attributes ---------------------------------------------------------------- */

static int do_getxattr(const char *path, const char *name, char *value, size_t size)
{
    BY_FULL_PATH(lgetxattr(full, name, value, size));
}

static int do_setxattr(const char *path, const char *name, const char *value, size_t size,
                       int flags)
{
    BY_FULL_PATH(lsetxattr(full, name, value, size, flags));
}

static int do_listxattr(const char *path, char *list, size_t size)
{
    BY_FULL_PATH(llistxattr(full, list, size));
}

static int do_removexattr(const char *path, const char *name)
{
    BY_FULL_PATH(lremovexattr(full, name));
}

/* ---- entries ---------------------------------------------------------------------------- */

static int do_readlink(const char *path, char *target, size_t size)
{
    ssize_t length = readlinkat(passthrough.root, relative(path), target, size - 1);
    if (length == -1)
        return -errno;
    target[length] = '\0';
    return 0;
}

static int do_mknod(const char *path, mode_t mode, dev_t device)
{
    int error = result(mknodat(passthrough.root, relative(path), mode, device));
    return error ? error : settle(path, -1, mode);
}

static int do_mkdir(const char *path, mode_t mode)
{
    int error = result(mkdirat(passthrough.root, relative(path), mode));
    return error ? error : settle(path, -1, mode);
}

static int do_symlink(const char *target, const char *path)
{
    int error = result(symlinkat(target, passthrough.root, relative(path)));
    return error ? error : settle(path, -1, S_IFLNK);
}

static int do_unlink(const char *path)
{
    return result(unlinkat(passthrough.root, relative(path), 0));
}

static int do_rmdir(const char *path)
{
    return result(unlinkat(passthrough.root, relative(path), AT_REMOVEDIR));
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    return result(
        renameat2(passthrough.root, relative(from), passthrough.root, relative(to), flags));
}

static int do_link(const char *from, const char *to)
{
    return result(linkat(passthrough.root, relative(from), passthrough.root, relative(to), 0));
}

void add_name_operations(struct fuse_operations *ops)
{
    ops->getattr = do_getattr;
    ops->chmod = do_chmod;
    ops->chown = do_chown;
    ops->utimens = do_utimens;
    ops->truncate = do_truncate;
    ops->access = do_access;
    ops->statfs = do_statfs;
    ops->getxattr = do_getxattr;
    ops->setxattr = do_setxattr;
    ops->listxattr = do_listxattr;
    ops->removexattr = do_removexattr;
    ops->readlink = do_readlink;
    ops->mknod = do_mknod;
    ops->mkdir = do_mkdir;
    ops->symlink = do_symlink;
    ops->unlink = do_unlink;
    ops->rmdir = do_rmdir;
    ops->rename = do_rename;
    ops->link = do_link;
}
