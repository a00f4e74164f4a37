/*
 * node.c - FIFOs: a name in a mount, a real FIFO in the shadow directory.
 */
#include "syscalls/node.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/calls.h"
#include "syscalls/linger.h"

void dfi_node_name(const struct dfi_files *files, const struct stat *st,
                   char name[DFI_SHADOW_NAME_MAX])
{
    dfi_shadow_name(files, 's', st->st_dev, st->st_ino, name);
}

static int wanted_access(int flags)
{
    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        return R_OK;
    case O_WRONLY:
        return W_OK;
    default:
        return R_OK | W_OK;
    }
}

int dfi_node_open(struct dfi_way *way, int flags)
{
    const struct dfi_leg *leg = &way->leg[0];
    char name[DFI_SHADOW_NAME_MAX];
    struct stat st;
    int ret = df_call_fstatat(leg->dirfd, leg->path, &st, 0);

    if (ret < 0 || !S_ISFIFO(st.st_mode))
        return ret < 0 ? ret : -ENXIO;
    if ((ret = df_call_faccessat(leg->dirfd, leg->path, wanted_access(flags), AT_EACCESS)) < 0)
        return ret;
    dfi_node_name(way->record.files, &st, name);
    if (dfi_kernel(__NR_mknod, name, S_IFIFO | 0666, 0) == 0)
        dfi_kernel(__NR_chmod, name, 0666);
    dfi_linger_end(way->record.files);
    return (int)dfi_kernel_wait(__NR_open, name, flags & ~(O_CREAT | O_EXCL | O_TRUNC), 0);
}
