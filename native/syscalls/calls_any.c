/*
 * calls_any.c - calls that a mount cannot serve; and descriptors that come from other processes.
 */
#include <fcntl.h>
#include <sys/mount.h>

#include "core/calls.h"
#include "core/fd.h"
#include "syscalls/way.h"

static bool any_descriptor(const struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;

    for (int i = 0; letters[i] != '\0'; i++)
        if (letters[i] == 'f' && dfi_fd_is_ours(frame->args[i]))
            return true;
    return false;
}

/* A path that cannot be read or does not lead into a mount is the kernel's to complain about. */
static bool leads_to_ours(const struct dfi_leg *leg)
{
    if (leg->dirfd >= DF_FD_BASE)
        return true;
    return leg->path && leg->path[0] != '\0' &&
           df_call_faccessat(leg->dirfd, leg->path, 0, AT_SYMLINK_NOFOLLOW) != DF_NOT_OURS;
}

static bool any_path(struct dfi_frame *frame)
{
    struct dfi_way way;
    bool ours = false;

    if (dfi_way_begin(&way, frame) == 0)
        for (unsigned i = 0; i < way.legs && !ours; i++)
            ours = leads_to_ours(&way.leg[i]);
    dfi_way_end(&way, 0);
    return ours;
}

long dfi_refuse_ours(struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;
    bool ours = any_descriptor(frame);

    for (int i = 0; letters[i] != '\0' && !ours; i++)
        if (letters[i] == 'p') {
            ours = any_path(frame);
            break;
        }
    return ours ? -dfi_calls[frame->nr].error : DFI_PASS;
}

/* The kernel knows nothing of what lies in our mounts: it cannot be seen elsewhere, and nothing can
 * be put there. What else the first path may be (a device, a name) is the kernel's. */
long dfi_do_mount(struct dfi_frame *frame)
{
    struct dfi_way way;
    long ret = DFI_PASS;

    if (dfi_way_begin(&way, frame) == 0) {
        if (leads_to_ours(&way.leg[1]))
            ret = -EBUSY;
        else if (frame->args[3] & (MS_BIND | MS_MOVE) && leads_to_ours(&way.leg[0]))
            ret = -EINVAL;
    }
    dfi_way_end(&way, 0);
    if (ret == -EINVAL)
        dfi_note("mount(2): what lies in a mount of the run cannot be bound or moved elsewhere");
    return ret;
}

long dfi_do_pidfd_getfd(struct dfi_frame *frame)
{
    long fd = dfi_kernel(__NR_pidfd_getfd, frame->args[0], frame->args[1], frame->args[2]);

    if (fd >= 0)
        dfi_fd_adopt(dfi_process()->files, (int)fd);
    return fd;
}
