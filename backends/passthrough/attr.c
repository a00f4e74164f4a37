/*
 * attr.c - attributes of objects: by their open file where there is one, else by name.
 */
#include "passthrough.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

/* libc's own way without faccessat2(2) is for ENOSYS only. Everybody may do everything with a
 * symlink; and it is the mount server that asks, whose ids are no others than its effective ones.
 */
static int access_of_old(int root, const char *relative, int mask)
{
    struct stat st;

    if (fstatat(root, relative, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return 0;
    return passthrough_result(syscall(SYS_faccessat, root, relative, mask));
}

int passthrough_access(const char *path, int mask)
{
    const char *relative = passthrough_relative(path);
    int root = passthrough_here()->root;
    int result =
        passthrough_result(faccessat(root, relative, mask, AT_EACCESS | AT_SYMLINK_NOFOLLOW));

    if (result == -EPERM && passthrough_lacks(SYS_faccessat2))
        return access_of_old(root, relative, mask);
    return result;
}

int passthrough_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    if (fi)
        return passthrough_result(fchmod((int)fi->fh, mode & 07777));
    return passthrough_set_mode(passthrough_here(), path, mode);
}

int passthrough_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    if (fi)
        return passthrough_result(fchown((int)fi->fh, uid, gid));
    return passthrough_result(fchownat(passthrough_here()->root, passthrough_relative(path), uid,
                                       gid, AT_SYMLINK_NOFOLLOW));
}

bool passthrough_strips(const struct passthrough *fs)
{
    return fs->for_others && fuse_get_context()->uid != fs->uid;
}

void passthrough_strip(const struct passthrough *fs, int fd)
{
    struct stat st;

    if (!passthrough_strips(fs) || fstat(fd, &st) < 0)
        return;
    mode_t mode = st.st_mode & ~(mode_t)S_ISUID;
    if (mode & S_IXGRP) /* without it setgid is no privilege */
        mode &= ~(mode_t)S_ISGID;
    if (mode != st.st_mode)
        fchmod(fd, mode & 07777);
}

/* truncate(2) would follow a symlink that has come up since the name was resolved. */
static int truncate_named(const struct passthrough *fs, const char *path, off_t size)
{
    int fd = openat(fs->root, passthrough_relative(path), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    passthrough_strip(fs, fd);
    int result = passthrough_result(ftruncate(fd, size));
    close(fd);
    return result;
}

int passthrough_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    const struct passthrough *fs = passthrough_here();

    if (!fi)
        return truncate_named(fs, path, size);
    passthrough_strip(fs, (int)fi->fh);
    return passthrough_result(ftruncate((int)fi->fh, size));
}

int passthrough_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    if (fi)
        return passthrough_result(futimens((int)fi->fh, times));
    return passthrough_result(utimensat(passthrough_here()->root, passthrough_relative(path), times,
                                        AT_SYMLINK_NOFOLLOW));
}

/* Of the object's own file system: another one may be mounted inside the source. statvfs(3) would
 * follow a symlink, which is asked about by who has it open (O_PATH). */
int passthrough_statfs(const char *path, struct statvfs *out)
{
    int fd = openat(passthrough_here()->root, passthrough_relative(path),
                    O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int result = passthrough_result(fstatvfs(fd, out));
    close(fd);
    return result;
}

/* ---- extended attributes: by the source's descriptor where the kernel can (6.13) ---- */

#ifndef SYS_setxattrat
#define SYS_setxattrat    463
#define SYS_getxattrat    464
#define SYS_listxattrat   465
#define SYS_removexattrat 466
#endif

/* struct xattr_args of linux/xattr.h, which older headers lack. */
struct value {
    uint64_t bytes; /* address */
    uint32_t size;
    uint32_t flags;
};

int passthrough_getxattr(const char *path, const char *name, char *value, size_t size)
{
    const struct passthrough *fs = passthrough_here();
    struct value out = {.bytes = (uintptr_t)value, .size = (uint32_t)size};
    char absolute[PATH_MAX];
    long len = syscall(SYS_getxattrat, fs->root, passthrough_relative(path), AT_SYMLINK_NOFOLLOW,
                       name, &out, sizeof(out));

    if (len < 0 && passthrough_lacks(SYS_getxattrat)) {
        if (!passthrough_absolute(fs, path, absolute))
            return -ENAMETOOLONG;
        len = lgetxattr(absolute, name, value, size);
    }
    return len < 0 ? -errno : (int)len;
}

int passthrough_setxattr(const char *path, const char *name, const char *value, size_t size,
                         int flags)
{
    const struct passthrough *fs = passthrough_here();
    struct value in = {.bytes = (uintptr_t)value, .size = (uint32_t)size, .flags = (uint32_t)flags};
    char absolute[PATH_MAX];
    long result = syscall(SYS_setxattrat, fs->root, passthrough_relative(path), AT_SYMLINK_NOFOLLOW,
                          name, &in, sizeof(in));

    if (result < 0 && passthrough_lacks(SYS_setxattrat)) {
        if (!passthrough_absolute(fs, path, absolute))
            return -ENAMETOOLONG;
        result = lsetxattr(absolute, name, value, size, flags);
    }
    return passthrough_result(result);
}

int passthrough_listxattr(const char *path, char *list, size_t size)
{
    const struct passthrough *fs = passthrough_here();
    char absolute[PATH_MAX];
    long len = syscall(SYS_listxattrat, fs->root, passthrough_relative(path), AT_SYMLINK_NOFOLLOW,
                       list, size);

    if (len < 0 && passthrough_lacks(SYS_listxattrat)) {
        if (!passthrough_absolute(fs, path, absolute))
            return -ENAMETOOLONG;
        len = llistxattr(absolute, list, size);
    }
    return len < 0 ? -errno : (int)len;
}

int passthrough_removexattr(const char *path, const char *name)
{
    const struct passthrough *fs = passthrough_here();
    char absolute[PATH_MAX];
    long result =
        syscall(SYS_removexattrat, fs->root, passthrough_relative(path), AT_SYMLINK_NOFOLLOW, name);

    if (result < 0 && passthrough_lacks(SYS_removexattrat)) {
        if (!passthrough_absolute(fs, path, absolute))
            return -ENAMETOOLONG;
        result = lremovexattr(absolute, name);
    }
    return passthrough_result(result);
}
