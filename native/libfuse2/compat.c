/*
 * compat.c - entry points of FUSE 1.x to 2.5, which know a mount by its descriptor, take options as
 * one string and have no user data. Programs built against them long ago still bind the names
 * without a version, or of version 2.2 and 2.5; those built with later headers and an older
 * FUSE_USE_VERSION bind the *_compat ones.
 */
#include <stdlib.h>
#include <string.h>

#include "libfuse2/abi2.h"

/* Bytes of struct fuse_operations of 2.1, whose size the caller does not tell. */
enum { SIZE_21 = offsetof(struct fuse2_operations, opendir) };

/* ---- fuse_mount, fuse_unmount -------------------------------------------------------------------
 */

int fuse2_mount_25(const char *mountpoint, struct fuse_args *args)
{
    struct fuse2_chan *chan = df2_chan_new(mountpoint, args);
    return chan ? chan->fd : -1;
}
EXPORT(fuse2_mount_25, "fuse_mount@FUSE_2.5");
EXPORT_ALSO(fuse2_mount_25, fuse2_mount_compat25, "fuse_mount_compat25@@FUSE_2.6");

int fuse2_mount_22(const char *mountpoint, const char *options)
{
    struct fuse_args args;
    int fd = df2_arguments_of(options, &args) == 0 ? fuse2_mount_25(mountpoint, &args) : -1;
    fuse_opt_free_args(&args);
    return fd;
}
EXPORT(fuse2_mount_22, "fuse_mount@FUSE_2.2");
EXPORT_ALSO(fuse2_mount_22, fuse2_mount_compat22, "fuse_mount_compat22@@FUSE_2.5");

/* Arguments of fusermount: libfuse ignores them too. */
int fuse2_mount_compat1(const char *mountpoint, const char *args[])
{
    (void)args;
    return fuse2_mount_22(mountpoint, NULL);
}
EXPORT(fuse2_mount_compat1, "fuse_mount_compat1@@FUSE_2.2");

void fuse2_unmount_22(const char *mountpoint)
{
    if (mountpoint)
        df2_chan_end(mountpoint);
}
EXPORT(fuse2_unmount_22, "fuse_unmount@FUSE_2.2");
EXPORT_ALSO(fuse2_unmount_22, fuse2_unmount_compat22, "fuse_unmount_compat22@@FUSE_2.6");

/* ---- fuse_new
 * ------------------------------------------------------------------------------------ */

struct fuse2 *fuse2_new_25(int fd, struct fuse_args *args, const void *op, size_t op_size)
{
    return df2_new(df2_chan_of_fd(fd), args, op, op_size, NULL, FUSE_25);
}
EXPORT(fuse2_new_25, "fuse_new@FUSE_2.5");
EXPORT_ALSO(fuse2_new_25, fuse2_new_compat25, "fuse_new_compat25@@FUSE_2.6");

static struct fuse2 *new_with_options(int fd, const char *options, const void *op, size_t op_size,
                                      enum fuse2_generation generation)
{
    struct fuse_args args;
    struct fuse2 *f = NULL;
    if (df2_arguments_of(options, &args) == 0)
        f = df2_new(df2_chan_of_fd(fd), &args, op, op_size, NULL, generation);
    fuse_opt_free_args(&args);
    return f;
}

struct fuse2 *fuse2_new_22(int fd, const char *options, const void *op, size_t op_size)
{
    return new_with_options(fd, options, op, op_size, FUSE_22);
}
EXPORT(fuse2_new_22, "fuse_new@FUSE_2.2");
EXPORT_ALSO(fuse2_new_22, fuse2_new_compat22, "fuse_new_compat22@@FUSE_2.5");

struct fuse2 *fuse2_new_21(int fd, const char *options, const void *op)
{
    return new_with_options(fd, options, op, SIZE_21, FUSE_21);
}
EXPORT(fuse2_new_21, "fuse_new@");
EXPORT_ALSO(fuse2_new_21, fuse2_new_compat2, "fuse_new_compat2@@FUSE_2.2");

/* ---- fuse_setup, fuse_teardown
 * ------------------------------------------------------------------- */

static struct fuse2 *setup(int argc, char *argv[], const void *op, size_t op_size,
                           char **mountpoint, int *multithreaded, int *fd,
                           enum fuse2_generation generation)
{
    struct fuse2_chan *chan;
    struct fuse2 *f =
        df2_setup(argc, argv, op, op_size, mountpoint, multithreaded, &chan, NULL, generation);
    if (f && fd)
        *fd = chan->fd;
    return f;
}

struct fuse2 *fuse2_setup_25(int argc, char *argv[], const void *op, size_t op_size,
                             char **mountpoint, int *multithreaded, int *fd)
{
    return setup(argc, argv, op, op_size, mountpoint, multithreaded, fd, FUSE_25);
}
EXPORT(fuse2_setup_25, "fuse_setup@FUSE_2.5");
EXPORT_ALSO(fuse2_setup_25, fuse2_setup_compat25, "fuse_setup_compat25@@FUSE_2.6");

struct fuse2 *fuse2_setup_22(int argc, char *argv[], const void *op, size_t op_size,
                             char **mountpoint, int *multithreaded, int *fd)
{
    return setup(argc, argv, op, op_size, mountpoint, multithreaded, fd, FUSE_22);
}
EXPORT(fuse2_setup_22, "fuse_setup@FUSE_2.2");
EXPORT_ALSO(fuse2_setup_22, fuse2_setup_compat22, "fuse_setup_compat22@@FUSE_2.5");

struct fuse2 *fuse2_setup_21(int argc, char *argv[], const void *op, char **mountpoint,
                             int *multithreaded, int *fd)
{
    return setup(argc, argv, op, SIZE_21, mountpoint, multithreaded, fd, FUSE_21);
}
EXPORT(fuse2_setup_21, "__fuse_setup@");
EXPORT_ALSO(fuse2_setup_21, fuse2_setup_compat2, "fuse_setup_compat2@@FUSE_2.2");

void fuse2_teardown_22(struct fuse2 *f, int fd, char *mountpoint)
{
    (void)fd;
    fuse2_teardown(f, mountpoint);
}
EXPORT(fuse2_teardown_22, "fuse_teardown@FUSE_2.2");
EXPORT_ALSO(fuse2_teardown_22, fuse2_teardown_compat22, "fuse_teardown_compat22@@FUSE_2.6");

/* ---- fuse_main
 * ----------------------------------------------------------------------------------- */

int fuse2_main_real_25(int argc, char *argv[], const void *op, size_t op_size)
{
    return df2_main(argc, argv, op, op_size, NULL, FUSE_25);
}
EXPORT(fuse2_main_real_25, "fuse_main_real@FUSE_2.5");
EXPORT_ALSO(fuse2_main_real_25, fuse2_main_real_compat25, "fuse_main_real_compat25@@FUSE_2.6");

int fuse2_main_real_22(int argc, char *argv[], const void *op, size_t op_size)
{
    return df2_main(argc, argv, op, op_size, NULL, FUSE_22);
}
EXPORT(fuse2_main_real_22, "fuse_main_real@FUSE_2.2");
EXPORT_ALSO(fuse2_main_real_22, fuse2_main_real_compat22, "fuse_main_real_compat22@@FUSE_2.5");

int fuse2_main_21(int argc, char *argv[], const void *op)
{
    return df2_main(argc, argv, op, SIZE_21, NULL, FUSE_21);
}
EXPORT(fuse2_main_21, "fuse_main@");
EXPORT_ALSO(fuse2_main_21, fuse2_main_compat2, "fuse_main_compat2@@FUSE_2.2");

/* A macro since 2.2. The name stayed, for programs that look for the library by it. */
int fuse2_main(void)
{
    fuse_log(FUSE_LOG_ERR, "fuse_main(): this function does not exist\n");
    return -1;
}
EXPORT(fuse2_main, "fuse_main@@FUSE_2.2");

/* ---- 1.x
 * ----------------------------------------------------------------------------------------- */

/* Without setxattr and what came after it, and without flush: its last two are one place further
 * up. */
static struct fuse2_operations operations_1x(const void *op)
{
    struct fuse2_operations to = {0};
    void *const *old = (void *const *)((const char *)op + offsetof(struct fuse2_operations, flush));
    memcpy(&to, op, offsetof(struct fuse2_operations, flush));
    memcpy(&to.release, &old[0], sizeof(to.release));
    memcpy(&to.fsync, &old[1], sizeof(to.fsync));
    return to;
}

struct fuse2 *fuse2_new_compat1(int fd, int flags, const void *op)
{
    enum { DEBUG = 1 << 1 }; /* the only flag there was */
    struct fuse2_operations ops = operations_1x(op);
    return new_with_options(fd, flags & DEBUG ? "debug" : NULL, &ops, sizeof(ops), FUSE_1X);
}
EXPORT(fuse2_new_compat1, "fuse_new_compat1@@FUSE_2.2");

void fuse2_main_compat1(int argc, char *argv[], const void *op)
{
    struct fuse2_operations ops = operations_1x(op);
    df2_main(argc, argv, &ops, sizeof(ops), NULL, FUSE_1X);
}
EXPORT(fuse2_main_compat1, "fuse_main_compat1@@FUSE_2.2");
