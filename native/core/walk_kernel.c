/*
 * walk_kernel.c - what a walk through real directories asks the kernel, through libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/walk.h"

ssize_t df_walk_link(const char *path, char target[PATH_MAX])
{
    int saved = errno;
    ssize_t size = readlink(path, target, PATH_MAX - 1);

    if (size < 0)
        size = -errno;
    errno = saved;
    return size;
}

int df_walk_real_entry(int dirfd, const char *path, int flags)
{
    int saved = errno, ret = 0;
    struct stat st;

    if (fstatat(dirfd, path, &st, flags) < 0)
        ret = -errno;
    errno = saved;
    return ret;
}

ssize_t df_walk_directory_name(int dirfd, char out[PATH_MAX])
{
    char link[sizeof("/proc/self/fd/-2147483648")];
    int saved = errno;
    ssize_t len;

    if (dirfd == AT_FDCWD) {
        len = syscall(SYS_getcwd, out, PATH_MAX) - 1;
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
        len = readlink(link, out, PATH_MAX - 1);
    }
    errno = saved;
    if (len <= 0 || len >= PATH_MAX || out[0] != '/')
        return -1;
    return len == 1 ? 0 : len;
}
