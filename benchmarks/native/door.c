/*
 * door.c - the fillings of the table.
 */
#include "door.h"

#include <directfuse.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

static int kernel_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return openat(dirfd, path, flags, mode); /* variadic in libc */
}

static ssize_t kernel_getdents(int fd, void *buf, size_t size)
{
    return getdents64(fd, buf, size);
}

const struct door door_kernel = {
    .name = "kernel",
    .openat = kernel_openat,
    .close = close,
    .fstat = fstat,
    .fstatat = fstatat,
    .mkdirat = mkdirat,
    .unlinkat = unlinkat,
    .renameat = renameat,
    .pread = pread,
    .pwrite = pwrite,
    .fdatasync = fdatasync,
    .getdents = kernel_getdents,
    .getxattr = getxattr,
    .setxattr = setxattr,
};

const struct door door_inline = {
    .name = "inline",
    .openat = df_openat,
    .close = df_close,
    .fstat = df_fstat,
    .fstatat = df_fstatat,
    .mkdirat = df_mkdirat,
    .unlinkat = df_unlinkat,
    .renameat = df_renameat,
    .pread = df_pread,
    .pwrite = df_pwrite,
    .fdatasync = df_fdatasync,
    .getdents = df_getdents,
    .getxattr = df_getxattr,
    .setxattr = df_setxattr,
};
