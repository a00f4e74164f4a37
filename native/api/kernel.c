/*
 * kernel.c - the real calls.
 */
#include "api/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/route.h"
#include "directfuse.h"

/* Sets the first or second (dirfd, path) of a call to where a way through a mount came out. */
static void go_on(int which, int *dirfd, const char **path)
{
    const char *left = df_left_path(which);

    if (DF_LIKELY(!left))
        return;
    *dirfd = AT_FDCWD;
    *path = left;
}

static const char *going_on(const char *path)
{
    const char *left = df_left_path(0);

    return left ? left : path;
}

#define RESULT(expression)                                                                         \
    ({                                                                                             \
        __typeof__(expression) result_ = (expression);                                             \
        result_ < 0 ? (__typeof__(expression))-errno : result_;                                    \
    })

/* ---- opening ------------------------------------------------------------------------------- */

int df_kernel_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    go_on(0, &dirfd, &path);
    return RESULT(openat(dirfd, path, flags, mode));
}

int df_kernel_close(int fd)
{
    return RESULT(close(fd));
}

int df_kernel_dup(int fd)
{
    return RESULT(dup(fd));
}

int df_kernel_dup3(int fd, int newfd, int flags)
{
    return RESULT(dup3(fd, newfd, flags));
}

int df_kernel_fcntl(int fd, int command, long arg)
{
    return RESULT(fcntl(fd, command, arg));
}

/* ---- data ---------------------------------------------------------------------------------- */

ssize_t df_kernel_read(int fd, void *buf, size_t size)
{
    return RESULT(read(fd, buf, size));
}

ssize_t df_kernel_write(int fd, const void *buf, size_t size)
{
    return RESULT(write(fd, buf, size));
}

ssize_t df_kernel_pread(int fd, void *buf, size_t size, off_t offset)
{
    return RESULT(pread(fd, buf, size, offset));
}

ssize_t df_kernel_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    return RESULT(pwrite(fd, buf, size, offset));
}

ssize_t df_kernel_readv(int fd, const struct iovec *iov, int iovcnt)
{
    return RESULT(readv(fd, iov, iovcnt));
}

ssize_t df_kernel_writev(int fd, const struct iovec *iov, int iovcnt)
{
    return RESULT(writev(fd, iov, iovcnt));
}

ssize_t df_kernel_preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    return RESULT(preadv(fd, iov, iovcnt, offset));
}

ssize_t df_kernel_pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    return RESULT(pwritev(fd, iov, iovcnt, offset));
}

/* Those that the core has left: its own are filled already. */
int df_kernel_read_batch(struct df_read *reads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (reads[i].result == DF_NOT_OURS)
            reads[i].result =
                df_kernel_pread(reads[i].fd, reads[i].buf, reads[i].size, reads[i].offset);
    return 0;
}

/* ---- the open file ------------------------------------------------------------------------- */

off_t df_kernel_lseek(int fd, off_t offset, int whence)
{
    return RESULT(lseek(fd, offset, whence));
}

ssize_t df_kernel_copy_file_range(int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t size,
                                  unsigned flags)
{
    return RESULT(copy_file_range(fd_in, off_in, fd_out, off_out, size, flags));
}

int df_kernel_fsync(int fd)
{
    return RESULT(fsync(fd));
}

int df_kernel_fdatasync(int fd)
{
    return RESULT(fdatasync(fd));
}

int df_kernel_ftruncate(int fd, off_t size)
{
    return RESULT(ftruncate(fd, size));
}

int df_kernel_fallocate(int fd, int mode, off_t offset, off_t length)
{
    return RESULT(fallocate(fd, mode, offset, length));
}

int df_kernel_fadvise(int fd, off_t offset, off_t length, int advice)
{
    return -posix_fadvise(fd, offset, length, advice);
}

int df_kernel_ioctl(int fd, unsigned long request, void *arg)
{
    return RESULT(ioctl(fd, request, arg));
}

/* ---- attributes ---------------------------------------------------------------------------- */

int df_kernel_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(fstatat(dirfd, path, st, flags));
}

int df_kernel_fstat(int fd, struct stat *st)
{
    return RESULT(fstat(fd, st));
}

int df_kernel_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
    go_on(0, &dirfd, &path);
    return RESULT(statx(dirfd, path, flags, mask, stx));
}

int df_kernel_faccessat(int dirfd, const char *path, int mode, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(faccessat(dirfd, path, mode, flags));
}

int df_kernel_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(fchmodat(dirfd, path, mode, flags));
}

int df_kernel_fchmod(int fd, mode_t mode)
{
    return RESULT(fchmod(fd, mode));
}

int df_kernel_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(fchownat(dirfd, path, uid, gid, flags));
}

int df_kernel_fchown(int fd, uid_t uid, gid_t gid)
{
    return RESULT(fchown(fd, uid, gid));
}

int df_kernel_utimensat(int dirfd, const char *path, const struct timespec *times, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(utimensat(dirfd, path, times, flags));
}

int df_kernel_futimens(int fd, const struct timespec *times)
{
    return RESULT(futimens(fd, times));
}

int df_kernel_truncate(const char *path, off_t size)
{
    return RESULT(truncate(going_on(path), size));
}

int df_kernel_statvfs(const char *path, struct statvfs *out)
{
    return RESULT(statvfs(going_on(path), out));
}

int df_kernel_fstatvfs(int fd, struct statvfs *out)
{
    return RESULT(fstatvfs(fd, out));
}

/* ---- extended attributes ------------------------------------------------------------------- */

ssize_t df_kernel_getxattr(const char *path, const char *name, void *value, size_t size)
{
    return RESULT(getxattr(going_on(path), name, value, size));
}

ssize_t df_kernel_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    return RESULT(lgetxattr(going_on(path), name, value, size));
}

ssize_t df_kernel_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return RESULT(fgetxattr(fd, name, value, size));
}

int df_kernel_setxattr(const char *path, const char *name, const void *value, size_t size,
                       int flags)
{
    return RESULT(setxattr(going_on(path), name, value, size, flags));
}

int df_kernel_lsetxattr(const char *path, const char *name, const void *value, size_t size,
                        int flags)
{
    return RESULT(lsetxattr(going_on(path), name, value, size, flags));
}

int df_kernel_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return RESULT(fsetxattr(fd, name, value, size, flags));
}

ssize_t df_kernel_listxattr(const char *path, char *list, size_t size)
{
    return RESULT(listxattr(going_on(path), list, size));
}

ssize_t df_kernel_llistxattr(const char *path, char *list, size_t size)
{
    return RESULT(llistxattr(going_on(path), list, size));
}

ssize_t df_kernel_flistxattr(int fd, char *list, size_t size)
{
    return RESULT(flistxattr(fd, list, size));
}

int df_kernel_removexattr(const char *path, const char *name)
{
    return RESULT(removexattr(going_on(path), name));
}

int df_kernel_lremovexattr(const char *path, const char *name)
{
    return RESULT(lremovexattr(going_on(path), name));
}

int df_kernel_fremovexattr(int fd, const char *name)
{
    return RESULT(fremovexattr(fd, name));
}

/* ---- names --------------------------------------------------------------------------------- */

int df_kernel_mkdirat(int dirfd, const char *path, mode_t mode)
{
    go_on(0, &dirfd, &path);
    return RESULT(mkdirat(dirfd, path, mode));
}

int df_kernel_mknodat(int dirfd, const char *path, mode_t mode, dev_t rdev)
{
    go_on(0, &dirfd, &path);
    return RESULT(mknodat(dirfd, path, mode, rdev));
}

int df_kernel_unlinkat(int dirfd, const char *path, int flags)
{
    go_on(0, &dirfd, &path);
    return RESULT(unlinkat(dirfd, path, flags));
}

int df_kernel_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
                        unsigned flags)
{
    go_on(0, &from_dirfd, &from);
    go_on(1, &to_dirfd, &to);
    return RESULT(renameat2(from_dirfd, from, to_dirfd, to, flags));
}

int df_kernel_linkat(int from_dirfd, const char *from, int to_dirfd, const char *to, int flags)
{
    go_on(0, &from_dirfd, &from);
    go_on(1, &to_dirfd, &to);
    return RESULT(linkat(from_dirfd, from, to_dirfd, to, flags));
}

int df_kernel_symlinkat(const char *target, int dirfd, const char *path)
{
    go_on(0, &dirfd, &path);
    return RESULT(symlinkat(target, dirfd, path));
}

ssize_t df_kernel_readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
    go_on(0, &dirfd, &path);
    return RESULT(readlinkat(dirfd, path, buf, size));
}

/* ---- directories, locks, readiness, memory ------------------------------------------------- */

ssize_t df_kernel_getdents(int fd, void *buf, size_t size)
{
    return RESULT(getdents64(fd, buf, size));
}

int df_kernel_flock(int fd, int operation)
{
    return RESULT(flock(fd, operation));
}

int df_kernel_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return RESULT(poll(fds, count, timeout));
}

int df_kernel_mmap(void **address, size_t length, int prot, int flags, int fd, off_t offset)
{
    void *mapped = mmap(*address, length, prot, flags, fd, offset);

    if (mapped == MAP_FAILED)
        return -errno;
    *address = mapped;
    return 0;
}

int df_kernel_msync(void *address, size_t length, int flags)
{
    return RESULT(msync(address, length, flags));
}

int df_kernel_munmap(void *address, size_t length)
{
    return RESULT(munmap(address, length));
}
