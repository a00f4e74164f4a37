/*
 * names.c - objects by their names: looking at them, making, moving and removing them.
 */
#include "passthrough.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Arguments that Linux refuses by EINVAL, if it gets to see them. */
bool passthrough_lacks(long number)
{
    int error = errno;
    bool lacks = error == ENOSYS;

    if (error == EPERM)
        lacks = syscall(number, -1, NULL, -1, -1, 0, 0) < 0 && errno == EPERM;
    errno = error;
    return lacks;
}

bool passthrough_absolute(const struct passthrough *fs, const char *path, char out[PATH_MAX])
{
    size_t proc = strlen(fs->proc), len = strlen(path);

    if (proc + len + 2 > PATH_MAX)
        return false;
    memcpy(out, fs->proc, proc);
    memcpy(out + proc, path, len + 1); /* begins with a slash */
    if (len == 1)
        memcpy(out + proc, "/.", 3); /* the directory, not the link to it */
    return true;
}

/* ---- whose, and with what mode ---- */

/*
 * Where our own umask is the caller's - in the caller's own process it is - the mode goes on as it
 * is, and the backing file system applies umask or default ACL, whichever it has. Elsewhere the
 * caller's umask is applied here.
 */
mode_t passthrough_mode(const struct passthrough *fs, mode_t mode)
{
    mode_t mask = fuse_get_context()->umask;
    return mask == fs->umask ? mode : mode & ~mask;
}

int passthrough_set_mode(const struct passthrough *fs, const char *path, mode_t mode)
{
    const char *relative = passthrough_relative(path);
    long result = syscall(SYS_fchmodat2, fs->root, relative, mode & 07777, AT_SYMLINK_NOFOLLOW);

    if (result < 0 && passthrough_lacks(SYS_fchmodat2))
        result = fchmodat(fs->root, relative, mode & 07777, 0);
    return passthrough_result(result);
}

/* The group stays where a setgid directory has given its own; root's files have root's else. */
static int give(const struct passthrough *fs, const char *path, mode_t mode)
{
    const struct fuse_context *context = fuse_get_context();
    const char *relative = passthrough_relative(path);
    struct stat st;

    if (fstatat(fs->root, relative, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    gid_t gid = st.st_gid == fs->gid ? context->gid : st.st_gid;
    if (st.st_uid == context->uid && st.st_gid == gid)
        return 0;
    if (fchownat(fs->root, relative, context->uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (mode & (S_ISUID | S_ISGID) && !S_ISLNK(st.st_mode)) /* chown has taken them */
        return passthrough_set_mode(fs, path, st.st_mode);
    return 0;
}

int passthrough_adopt(const struct passthrough *fs, const char *path, mode_t mode)
{
    const struct fuse_context *context = fuse_get_context();
    int result = 0;

    if (!S_ISLNK(mode) && context->umask != fs->umask) {
        mode_t wanted = mode & 07777 & ~context->umask;
        if (wanted & fs->umask) /* ours has taken bits that the caller's leaves */
            result = passthrough_set_mode(fs, path, wanted);
    }
    if (result == 0 && fs->for_others && (context->uid != fs->uid || context->gid != fs->gid))
        result = give(fs, path, mode);
    return result;
}

/* What was made but could not be given away must not stay root's. */
static int adopt_or_remove(const struct passthrough *fs, const char *path, mode_t mode, int flags)
{
    int result = passthrough_adopt(fs, path, mode);

    if (result)
        unlinkat(fs->root, passthrough_relative(path), flags);
    return result;
}

/* ---- the operations ---- */

int passthrough_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    if (fi)
        return sys_fstat((int)fi->fh, st);
    return sys_fstatat(passthrough_here()->root, passthrough_relative(path), st,
                       AT_SYMLINK_NOFOLLOW);
}

int passthrough_readlink(const char *path, char *buf, size_t size)
{
    ssize_t len = readlinkat(passthrough_here()->root, passthrough_relative(path), buf, size - 1);

    if (len < 0)
        return -errno;
    buf[len] = '\0';
    return 0;
}

int passthrough_mknod(const char *path, mode_t mode, dev_t rdev)
{
    const struct passthrough *fs = passthrough_here();

    if (mknodat(fs->root, passthrough_relative(path), passthrough_mode(fs, mode), rdev) < 0)
        return -errno;
    return adopt_or_remove(fs, path, mode, 0);
}

int passthrough_mkdir(const char *path, mode_t mode)
{
    const struct passthrough *fs = passthrough_here();

    if (mkdirat(fs->root, passthrough_relative(path), passthrough_mode(fs, mode)) < 0)
        return -errno;
    return adopt_or_remove(fs, path, mode, AT_REMOVEDIR);
}

int passthrough_symlink(const char *target, const char *path)
{
    const struct passthrough *fs = passthrough_here();

    if (symlinkat(target, fs->root, passthrough_relative(path)) < 0)
        return -errno;
    return adopt_or_remove(fs, path, S_IFLNK, 0);
}

int passthrough_link(const char *from, const char *to)
{
    int root = passthrough_here()->root;

    return passthrough_result(
        linkat(root, passthrough_relative(from), root, passthrough_relative(to), 0));
}

int passthrough_unlink(const char *path)
{
    return sys_unlinkat(passthrough_here()->root, passthrough_relative(path), 0);
}

int passthrough_rmdir(const char *path)
{
    return passthrough_result(
        unlinkat(passthrough_here()->root, passthrough_relative(path), AT_REMOVEDIR));
}

int passthrough_rename(const char *from, const char *to, unsigned flags)
{
    int root = passthrough_here()->root;

    return passthrough_result(
        renameat2(root, passthrough_relative(from), root, passthrough_relative(to), flags));
}
