/*
 * calls_any.c - calls that a mount cannot serve; and descriptors that come from other processes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "syscalls/linger.h"
#include "syscalls/root.h"
#include "syscalls/way.h"

static bool any_descriptor(const struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;

    for (int i = 0; letters[i] != '\0'; i++)
        if (letters[i] == 'f' && dfi_fd_is_ours(frame->args[i]))
            return true;
    return false;
}

/* A path that cannot be read or does not lead into a mount is the kernel's to complain about. Where
 * a link in a mount has led out of it, the leg is what it has led to. */
static bool leads_to_ours(struct dfi_leg *leg)
{
    const char *left;

    if (leg->dirfd >= DF_FD_BASE && (leg->empty || !leg->path))
        return true;
    if (!leg->path || (leg->path[0] == '\0' && leg->dirfd < DF_FD_BASE))
        return false;
    if (df_call_faccessat(leg->dirfd, leg->path, 0, AT_SYMLINK_NOFOLLOW) != DF_NOT_OURS)
        return true;
    if (!(left = df_left_path(0)))
        return leg->dirfd >= DF_FD_BASE;
    strcpy(leg->text, left);
    leg->path = leg->text;
    leg->dirfd = AT_FDCWD;
    leg->changed = true;
    return false;
}

/* The paths that are in the mask are told to the kernel by their names where they began in a mount:
 * for it the working directory is another one. */
static long pass(const struct dfi_way *way, unsigned mask)
{
    const struct dfi_frame *f = way->frame;
    unsigned long args[6];
    bool changed = false;

    memcpy(args, f->args, sizeof(args));
    for (unsigned i = 0; i < way->legs; i++) {
        const struct dfi_leg *leg = &way->leg[i];

        if (!(mask & 1U << i) || !leg->changed || leg->dirfd != AT_FDCWD)
            continue;
        args[leg->name] = (unsigned long)leg->path;
        if (leg->at >= 0)
            args[leg->at] = (unsigned long)AT_FDCWD;
        changed = true;
    }
    if (!changed)
        return DFI_PASS;
    dfi_linger_end(way->record.files);
    return dfi_kernel6(f->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* Of a path that could not be taken: below a root of the process it is not the kernel's. */
static long unread(const struct dfi_way *way, long error)
{
    return dfi_root_of(way->record.files) ? error : DFI_PASS;
}

static long refuse_paths(struct dfi_frame *frame)
{
    struct dfi_way way;
    bool ours = false;
    long ret = dfi_way_begin(&way, frame);

    for (unsigned i = 0; i < way.legs && ret == 0 && !ours; i++)
        ours = leads_to_ours(&way.leg[i]);
    if (ours)
        ret = -dfi_calls[frame->nr].error;
    else
        ret = ret < 0 ? unread(&way, ret) : pass(&way, ~0U);
    return dfi_way_end(&way, ret);
}

long dfi_refuse_ours(struct dfi_frame *frame)
{
    if (any_descriptor(frame))
        return -dfi_calls[frame->nr].error;
    return strrchr(dfi_calls[frame->nr].arguments, 'p') ? refuse_paths(frame) : DFI_PASS;
}

/* The kernel knows nothing of what lies in our mounts: it cannot be seen elsewhere, and nothing can
 * be put there. What else the first path may be (a device, a name) is the kernel's. */
long dfi_do_mount(struct dfi_frame *frame)
{
    bool moves = frame->args[3] & (MS_BIND | MS_MOVE);
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);

    if (ret < 0)
        ret = unread(&way, ret);
    else if (leads_to_ours(&way.leg[1]))
        ret = -EBUSY;
    else if (moves && leads_to_ours(&way.leg[0]))
        ret = -EINVAL;
    else
        ret = pass(&way, moves ? 3 : 2);
    dfi_way_end(&way, ret);
    if (ret == -EINVAL && moves)
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
