/*
 * file.c - what else an open file can do: locks, ioctl, poll.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include "core/ioctl.h"
#include "core/wake.h"
#include "highlevel/handle.h"
#include "host/flock.h"
#include "host/pollhandle.h"

/* ---- locks ---- */

int df_highlevel_lock(struct df_fs *fs, struct df_call *call, struct df_file *file,
                      struct df_lock *lock)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    int command = lock->test ? F_GETLK : lock->wait ? F_SETLKW : F_SETLK;
    struct df_frame frame;
    union df_file_info fi;

    if (!hl->ops.lock || !(hl->want & FUSE_CAP_POSIX_LOCKS) || file->kind != DF_KIND_REGULAR)
        return DF_NOT_OURS;
    df_frame_enter(&frame, hl, call);
    struct flock range = df_flock_of(lock, frame.caller->pid);
    df_handle_info(&frame, file, &fi);
    fi.info.lock_owner = lock->owner;
    const char *path = df_handle_hold(&frame, file);
    int result = df_handle_lost(&frame, path)
                     ? -ENOENT
                     : df_answer_error(hl->ops.lock(path, &fi.info, command, &range));
    df_handle_unhold(&frame, file);
    df_frame_leave(&frame);
    return result == 0 && lock->test ? df_flock_take(lock, &range) : result;
}

/* RELEASE will say that the file may have a lock, and whose: the plugin knows it by its owner. */
int df_highlevel_flock(struct df_fs *fs, struct df_call *call, struct df_file *file, int operation,
                       uint64_t owner)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;
    union df_file_info fi;

    /* On directories Linux keeps them itself: fuse_dir_operations has no flock. */
    if (!hl->ops.flock || !(hl->want & FUSE_CAP_FLOCK_LOCKS) || file->kind != DF_KIND_REGULAR)
        return DF_NOT_OURS;
    atomic_store(&df_handle_of(file)->flock_owner, owner);
    atomic_fetch_or(&df_handle_of(file)->bits, DF_HANDLE_FLOCKED);
    df_frame_enter(&frame, hl, call);
    df_handle_info(&frame, file, &fi);
    fi.info.lock_owner = owner;
    const char *path = df_handle_hold(&frame, file);
    int result = df_handle_lost(&frame, path)
                     ? -ENOENT
                     : df_answer_error(hl->ops.flock(path, &fi.info, operation));
    df_handle_unhold(&frame, file);
    df_frame_leave(&frame);
    return result;
}

/* ---- ioctl ---- */

/* The plugin works on a copy of the argument, of the size and in the directions that the request
 * encodes. */
static int ioctl_copy(struct df_frame *frame, struct df_file *file, unsigned request, void *arg,
                      void *copy)
{
    struct df_highlevel *hl = frame->hl;
    unsigned flags = file->kind == DF_KIND_DIRECTORY ? FUSE_IOCTL_DIR : 0;
    size_t size = _IOC_DIR(request) ? df_ioctl_size(request) : 0;
    union df_file_info fi;

    memset(copy, 0, _IOC_SIZE(request));
    if (size && _IOC_DIR(request) & _IOC_WRITE)
        memcpy(copy, arg, size);
    df_handle_info(frame, file, &fi);
    const char *path = df_handle_hold(frame, file);
    int result = df_handle_lost(frame, path)
                     ? -ENOENT
                     : (int)df_answer_count(
                           hl->ops.ioctl(path, request, arg, &fi.info, flags, size ? copy : NULL));
    df_handle_unhold(frame, file);
    if (result >= 0 && size && _IOC_DIR(request) & _IOC_READ)
        memcpy(arg, copy, size);
    return result;
}

int df_highlevel_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                       unsigned long request, void *arg)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    size_t size = _IOC_SIZE((unsigned)request);
    char small[256], *copy = small;
    struct df_frame frame;

    if (!hl->ops.ioctl || (file->kind == DF_KIND_DIRECTORY && !(hl->want & FUSE_CAP_IOCTL_DIR)))
        return -ENOTTY;
    if (df_ioctl_lacks_place(request, arg))
        return -EFAULT;
    if (size > sizeof(small))
        copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    df_frame_enter(&frame, hl, call);
    int result = ioctl_copy(&frame, file, (unsigned)request, arg, copy);
    df_frame_leave(&frame);
    if (copy != small)
        free(copy);
    return result == -ENOSYS ? -ENOTTY : result;
}

/* ---- poll ---- */

/* What a file is ready for when its file system cannot tell: nobody is woken. */
static int always_ready(int events, struct df_wake *wake)
{
    df_wake_drop(wake);
    return events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
}

/* `node` and `wake` are NULL for a caller that does not wait. */
static int ask(struct df_frame *frame, struct df_file *file, int events, struct df_pollnode *node,
               struct df_wake *wake)
{
    struct df_highlevel *hl = frame->hl;
    unsigned seen = node ? df_pollnode_seen(node) : 0, ready = 0;
    struct fuse_pollhandle *handle = node ? df_pollnode_handle(node) : NULL;
    union df_file_info fi;

    df_handle_info(frame, file, &fi);
    fi.info.poll_events = (uint32_t)events;
    const char *path = df_handle_hold(frame, file);
    int result = df_handle_lost(frame, path)
                     ? -ENOENT
                     : df_answer_error(hl->ops.poll(path, &fi.info, handle, &ready));
    df_handle_unhold(frame, file);
    if (result == -ENOSYS) {
        df_highlevel_miss(hl, DF_MISSING_POLL);
        return always_ready(events, wake);
    }
    ready &= (unsigned)events | POLLERR | POLLHUP;
    if (wake && !result && (!ready || wake->always))
        df_pollnode_wait(node, wake, seen);
    else
        df_wake_drop(wake);
    return result ? result : (int)ready;
}

int df_highlevel_poll(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                      struct df_wake *wake)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_pollnode *node = NULL;
    struct df_frame frame;

    call->untold = df_highlevel_lacks(hl, DF_MISSING_POLL);
    if (!hl->ops.poll || file->kind != DF_KIND_REGULAR || call->untold)
        return always_ready(events, wake);
    if (wake && !(node = df_pollnode_of(&df_handle_of(file)->attachment))) {
        df_wake_drop(wake);
        return -ENOMEM;
    }
    df_frame_enter(&frame, hl, call);
    int result = ask(&frame, file, events, node, wake);
    df_frame_leave(&frame);
    call->untold = df_highlevel_lacks(hl, DF_MISSING_POLL);
    return result;
}
