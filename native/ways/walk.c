/*
 * walk.c - what a walk through real directories asks the kernel, without libc: core/walk_kernel.c
 * for intercepted programs.
 */
#include "core/walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "client/files.h"
#include "intercept/proc_link.h"
#include "ways/cwd.h"

/* A link to a directory whose name is ours alone: that of a process's working directory, say. */
static size_t shown(char *name, size_t len)
{
    return dfi_cwd_shown(dfi_process()->files, name, len);
}

ssize_t df_walk_link(const char *path, char target[PATH_MAX])
{
    long size = dfi_kernel(__NR_readlink, path, target, PATH_MAX - 1);

    return size < 0 ? size : (ssize_t)shown(target, (size_t)size);
}

int df_walk_real_entry(int dirfd, const char *path, int flags)
{
    struct stat st;

    return (int)dfi_kernel(__NR_newfstatat, dirfd, path, &st, flags);
}

ssize_t df_walk_directory_name(int dirfd, char out[PATH_MAX])
{
    char link[DFI_PROC_LINK_MAX];
    long len;

    if (dirfd == AT_FDCWD) {
        len = dfi_kernel(__NR_getcwd, out, PATH_MAX) - 1;
    } else {
        dfi_proc_link(dirfd, link);
        len = dfi_kernel(__NR_readlink, link, out, PATH_MAX - 1);
    }
    if (len <= 0 || len >= PATH_MAX || out[0] != '/')
        return -1;
    len = (long)shown(out, (size_t)len);
    return len == 1 ? 0 : len;
}
