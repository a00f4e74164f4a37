/*
 * cuse.c - character devices in user space. A device is a node of the kernel's, opened through the
 * kernel: there is nothing to serve inside a process, and every entry point says so.
 */
#include <errno.h>
#include <stddef.h>

#include "libfuse/abi.h"

static void refuse(void)
{
    fuse_log(FUSE_LOG_ERR,
             "cuse: a character device needs the kernel: link the program to libfuse3 "
             "and run it by itself\n");
    errno = ENOSYS;
}

struct fuse_session *cuse_lowlevel_new(struct fuse_args *args, const struct cuse_info *ci,
                                       const struct cuse_lowlevel_ops *clop, void *userdata)
{
    (void)args;
    (void)ci;
    (void)clop;
    (void)userdata;
    refuse();
    return NULL;
}

struct fuse_session *cuse_lowlevel_setup(int argc, char *argv[], const struct cuse_info *ci,
                                         const struct cuse_lowlevel_ops *clop, int *multithreaded,
                                         void *userdata)
{
    (void)argc;
    (void)argv;
    (void)ci;
    (void)clop;
    (void)multithreaded;
    (void)userdata;
    refuse();
    return NULL;
}

void cuse_lowlevel_teardown(struct fuse_session *se)
{
    (void)se; /* there can be none */
}

int cuse_lowlevel_main(int argc, char *argv[], const struct cuse_info *ci,
                       const struct cuse_lowlevel_ops *clop, void *userdata)
{
    (void)argc;
    (void)argv;
    (void)ci;
    (void)clop;
    (void)userdata;
    refuse();
    return 1;
}
