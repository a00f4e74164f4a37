/*
 * door.h - one table of POSIX functions, filled by the kernel's or by ours, so that one loop times
 * both and no branch tells them apart.
 */
#ifndef BENCH_DOOR_H
#define BENCH_DOOR_H

#include <sys/stat.h>
#include <sys/types.h>

struct door {
    const char *name;
    int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
    int (*close)(int fd);
    int (*fstat)(int fd, struct stat *st);
    int (*fstatat)(int dirfd, const char *path, struct stat *st, int flags);
    int (*mkdirat)(int dirfd, const char *path, mode_t mode);
    int (*unlinkat)(int dirfd, const char *path, int flags);
    int (*renameat)(int from_dirfd, const char *from, int to_dirfd, const char *to);
    ssize_t (*pread)(int fd, void *buf, size_t size, off_t offset);
    ssize_t (*pwrite)(int fd, const void *buf, size_t size, off_t offset);
    int (*fdatasync)(int fd);
    ssize_t (*getdents)(int fd, void *buf, size_t size); /* linux_dirent64 records */
    ssize_t (*getxattr)(const char *path, const char *name, void *value, size_t size);
    int (*setxattr)(const char *path, const char *name, const void *value, size_t size, int flags);
};

extern const struct door door_kernel; /* libc */
extern const struct door door_inline; /* directfuse.h */

#endif
