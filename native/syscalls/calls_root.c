/*
 * calls_root.c - chroot(2): into a mount, and out of it again.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/fd.h"
#include "ways/name.h"
#include "ways/root.h"

/* In the user namespace of the process, as it is now. */
static bool may_change_root(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return dfi_kernel(__NR_capget, &header, data) == 0 &&
           data[CAP_TO_INDEX(CAP_SYS_CHROOT)].effective & CAP_TO_MASK(CAP_SYS_CHROOT);
}

/* Opens the directory: DFI_FD_FOREIGN. 0, DF_NOT_OURS or -errno, as chroot(2) finds them. */
static long open_there(struct dfi_way *way)
{
    const struct dfi_leg *leg = &way->leg[0];
    long ret = dfi_way_open(way, leg, O_PATH | O_DIRECTORY);

    if (ret < 0)
        return ret;
    ret = df_call_faccessat(DF_FD_BASE + DFI_FD_FOREIGN, "", X_OK, AT_EMPTY_PATH | AT_EACCESS);
    if (ret < 0)
        dfi_way_shut(way);
    return ret;
}

/* The name it was found by, from which the present one is learnt. */
static bool keep_name(struct dfi_way *way)
{
    char *name = dfi_name_room(way->record.files, way->record.foreign);

    if (name && !dfi_way_absolute(way, &way->leg[0], name))
        name[0] = '\0';
    return name;
}

/* To what is open there, whose reference is the root's from then on. */
static long change_root(struct dfi_way *way)
{
    long ret = may_change_root() ? 0 : -EPERM;

    if (ret == 0 && (!keep_name(way) || !dfi_root_set(way->record.files, way->record.foreign)))
        ret = -ENOMEM;
    if (ret < 0)
        dfi_way_shut(way);
    return ret;
}

long dfi_do_chroot(struct dfi_frame *frame)
{
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);

    while (dfi_way_next(&way, &ret))
        ret = open_there(&way);
    if (ret == 0 && way.ours)
        ret = change_root(&way);
    else if (ret == 0) /* the kernel has done it */
        dfi_root_set(way.record.files, 0);
    return dfi_way_end(&way, ret);
}
