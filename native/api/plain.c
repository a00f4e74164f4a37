/*
 * plain.c - the calls without dirfd, and other short forms of those in api.c.
 */
#include "directfuse.h"

#include <errno.h>

int df_open(const char *path, int flags, mode_t mode)
{
    return df_openat(AT_FDCWD, path, flags, mode);
}

int df_creat(const char *path, mode_t mode)
{
    return df_openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* The same number twice changes nothing, but must be open: dup(2). */
int df_dup2(int fd, int newfd)
{
    if (fd == newfd)
        return df_fcntl(fd, F_GETFD, 0) < 0 ? -1 : fd;
    return df_dup3(fd, newfd, 0);
}

int df_stat(const char *path, struct stat *st)
{
    return df_fstatat(AT_FDCWD, path, st, 0);
}

int df_lstat(const char *path, struct stat *st)
{
    return df_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int df_access(const char *path, int mode)
{
    return df_faccessat(AT_FDCWD, path, mode, 0);
}

int df_chmod(const char *path, mode_t mode)
{
    return df_fchmodat(AT_FDCWD, path, mode, 0);
}

int df_chown(const char *path, uid_t uid, gid_t gid)
{
    return df_fchownat(AT_FDCWD, path, uid, gid, 0);
}

int df_lchown(const char *path, uid_t uid, gid_t gid)
{
    return df_fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int df_mkdir(const char *path, mode_t mode)
{
    return df_mkdirat(AT_FDCWD, path, mode);
}

int df_mknod(const char *path, mode_t mode, dev_t rdev)
{
    return df_mknodat(AT_FDCWD, path, mode, rdev);
}

int df_unlink(const char *path)
{
    return df_unlinkat(AT_FDCWD, path, 0);
}

int df_rmdir(const char *path)
{
    return df_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int df_rename(const char *from, const char *to)
{
    return df_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int df_renameat(int from_dirfd, const char *from, int to_dirfd, const char *to)
{
    return df_renameat2(from_dirfd, from, to_dirfd, to, 0);
}

int df_link(const char *from, const char *to)
{
    return df_linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int df_symlink(const char *target, const char *path)
{
    return df_symlinkat(target, AT_FDCWD, path);
}

ssize_t df_readlink(const char *path, char *buf, size_t size)
{
    return df_readlinkat(AT_FDCWD, path, buf, size);
}
