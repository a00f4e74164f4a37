/*
 * calls_any.c - calls that a mount cannot serve; and descriptors that come from other processes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "shadows/linger.h"
#include "shadows/placeholder.h"
#include "ways/root.h"
#include "ways/way.h"

#define NR_OPEN_TREE_ATTR 467 /* which headers of Linux before 6.17 do not have */
#define NR_FILE_GETATTR   468
#define NR_FILE_SETATTR   469
#ifndef FSPICK_EMPTY_PATH /* nor those of libc before 2.36: */
#define FSPICK_EMPTY_PATH       0x08
#define MOVE_MOUNT_F_EMPTY_PATH 0x04
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#endif

static bool any_descriptor(const struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;

    for (int i = 0; letters[i] != '\0'; i++)
        if (letters[i] == 'f' && dfi_fd_is_ours(frame->args[i]))
            return true;
    return false;
}

/* Whether an empty path is the directory itself: each call has the flag in a place of its own. */
static bool takes_empty(const struct dfi_frame *frame, const struct dfi_leg *leg)
{
    const unsigned long *a = frame->args;

    switch (frame->nr) {
    case __NR_name_to_handle_at:
    case NR_FILE_GETATTR:
    case NR_FILE_SETATTR:
        return a[4] & AT_EMPTY_PATH;
    case __NR_open_tree:
    case NR_OPEN_TREE_ATTR:
    case __NR_mount_setattr:
        return a[2] & AT_EMPTY_PATH;
    case __NR_fspick:
        return a[2] & FSPICK_EMPTY_PATH;
    case __NR_move_mount:
        return a[4] & (leg->at == 0 ? MOVE_MOUNT_F_EMPTY_PATH : MOVE_MOUNT_T_EMPTY_PATH);
    default:
        return false;
    }
}

/* Calls that take a directory have flags that say whether a final link is followed, each its own:
 * those that are refused do not look. The others follow it. */
static int path_flags(const struct dfi_frame *frame, const struct dfi_leg *leg)
{
    bool stays = leg->at >= 0 || (frame->nr == __NR_umount2 && frame->args[1] & UMOUNT_NOFOLLOW);

    return (stays ? AT_SYMLINK_NOFOLLOW : 0) | (takes_empty(frame, leg) ? AT_EMPTY_PATH : 0);
}

/* 1: it leads to what is in a mount; or the error if there is nothing. 0: a path that cannot be
 * read or does not lead into a mount is the kernel's to complain about. Where a link in a mount has
 * led out of it, the leg is what it has led to. */
static int leads_to_ours(const struct dfi_frame *frame, struct dfi_leg *leg)
{
    const char *left;
    int ret;

    if (leg->dirfd >= DF_FD_BASE && (leg->empty || !leg->path))
        return 1;
    if (!leg->path || (leg->path[0] == '\0' && leg->dirfd < DF_FD_BASE))
        return 0;
    ret = df_call_faccessat(leg->dirfd, leg->path, F_OK, path_flags(frame, leg));
    if (ret != DF_NOT_OURS)
        return ret < 0 ? ret : 1;
    if (!(left = df_left_path(0)))
        return leg->dirfd >= DF_FD_BASE;
    strcpy(leg->text, left);
    leg->path = leg->text;
    leg->dirfd = AT_FDCWD;
    leg->changed = true;
    return 0;
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

/* Of a path that could not be taken: one that could not be read is the kernel's, but below a root
 * of the process. */
static long unread(const struct dfi_way *way, long error)
{
    return !way->refused || dfi_root_of(way->record.files) ? error : DFI_PASS;
}

/* What the kernel finds before it looks for a path, which it is not to get at: EFAULT, or what is
 * wrong with other arguments, that there is nothing to do, or that the caller may not. */
static long ask_without_path(const struct dfi_way *way)
{
    unsigned long args[6];

    memcpy(args, way->frame->args, sizeof(args));
    args[way->leg[0].name] = DFI_USER_END;
    return dfi_kernel6(way->frame->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

static long refuse(const struct dfi_way *way, long found)
{
    long ret = ask_without_path(way);

    if (ret != -EFAULT)
        return ret;
    return found > 0 ? -dfi_calls[way->frame->nr].error : found;
}

static long refuse_paths(struct dfi_frame *frame)
{
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);

    if (ret < 0)
        return dfi_way_end(&way, unread(&way, ret));
    for (unsigned i = 0; i < way.legs && ret == 0; i++)
        ret = leads_to_ours(frame, &way.leg[i]);
    ret = ret != 0 ? refuse(&way, ret) : pass(&way, ~0U);
    return dfi_way_end(&way, ret);
}

/* Not beside dfi_pass(): gcc would make it a part of dfi_handle(), and each call would take longer.
 */
long dfi_pass_fd(struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;

    for (int i = 0; letters[i] != '\0'; i++)
        if (letters[i] == 'f' && dfi_other_fd(frame->args[i]) != DFI_PASS)
            return -EBADF;
    return DFI_PASS;
}

long dfi_refuse_ours(struct dfi_frame *frame)
{
    if (any_descriptor(frame))
        return -dfi_calls[frame->nr].error;
    if (dfi_pass_fd(frame) != DFI_PASS)
        return -EBADF;
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
    else if ((ret = leads_to_ours(frame, &way.leg[1])) != 0)
        ret = ret > 0 ? -EBUSY : ret;
    else if (moves && (ret = leads_to_ours(frame, &way.leg[0])) != 0)
        ret = ret > 0 ? -EINVAL : ret;
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
        dfi_placeholder_adopt(dfi_process()->files, (int)fd);
    return fd;
}
