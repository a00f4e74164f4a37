/*
 * control.c - ioctl, poll and the locks of a plugin that keeps them itself.
 */
#include <fcntl.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <string.h>

#include "core/ioctl.h"
#include "core/wake.h"
#include "host/flock.h"
#include "host/pollhandle.h"
#include "lowlevel/request.h"

/* ---- ioctl --------------------------------------------------------------------------------- */

/* Restricted ioctls, as the kernel allows FUSE: what goes in and out is in the command. */
int df_lowlevel_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                      unsigned long request, void *arg)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    unsigned command = (unsigned)request;
    size_t size = df_ioctl_size(command);
    size_t in = _IOC_DIR(command) & _IOC_WRITE ? size : 0;
    size_t out = _IOC_DIR(command) & _IOC_READ ? size : 0;
    bool dir = file->kind == DF_KIND_DIRECTORY;
    struct iovec iov = {arg, out};
    union df_file_info info;
    struct fuse_req req;
    int result;

    if (!lane->ops.ioctl || (dir && !lane->ioctl_dir))
        return -ENOTTY;
    if (df_ioctl_lacks_place(request, arg))
        return -EFAULT;
    df_request_begin(&req, lane, call, DF_TAKES_IOCTL);
    req.iov = &iov;
    req.iovcnt = 1;
    req.room = out;
    result = (int)DF_REQUEST_AT_REST(call, &req, ioctl, df_node_of_file(file)->id, command, arg,
                                     df_lowlevel_handle(&info, file), dir ? FUSE_IOCTL_DIR : 0,
                                     in ? arg : NULL, in, out);
    return result == -ENOSYS ? -ENOTTY : result;
}

/* ---- poll ---------------------------------------------------------------------------------- */

#define ALWAYS_READY (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM)

/* The plugin takes over the handle, which may be NULL. */
static ssize_t send_poll(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                         int events, struct fuse_pollhandle *handle)
{
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;

    fi->poll_events = (uint32_t)events;
    df_request_begin(&req, lane, call, DF_TAKES_POLL);
    return DF_REQUEST(&req, poll, df_node_of_file(file)->id, fi, handle);
}

static int ask_ready(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                     int events, struct df_pollnode *node)
{
    ssize_t result; /* all 32 bits of the events are the plugin's */

    if (df_lowlevel_lacks(lane, DF_LACKS_POLL))
        return events & ALWAYS_READY;
    result = send_poll(lane, call, file, events, node ? df_pollnode_handle(node) : NULL);
    if (result == -ENOSYS) {
        df_lowlevel_note_lack(lane, DF_LACKS_POLL);
        return events & ALWAYS_READY;
    }
    return result < 0 ? POLLERR : (int)(result & (events | POLLERR | POLLHUP));
}

/* Linux asks no file system about a directory. */
int df_lowlevel_poll(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                     struct df_wake *wake)
{
    if (file->kind != DF_KIND_REGULAR) {
        df_wake_drop(wake);
        return events & ALWAYS_READY;
    }

    struct df_pollnode *node =
        wake ? df_pollnode_of((_Atomic(void *) *)&file->host[DF_FILE_POLL]) : NULL;
    unsigned seen = node ? df_pollnode_seen(node) : 0;
    int ready = ask_ready(df_lowlevel_of(fs), call, file, events, node);

    call->untold = df_lowlevel_lacks(df_lowlevel_of(fs), DF_LACKS_POLL);
    if (!wake || (ready != 0 && !wake->always))
        df_wake_drop(wake);
    else if (node)
        df_pollnode_wait(node, wake, seen);
    else
        df_wake(wake); /* no memory to wait with: poll again */
    return ready;
}

/* ---- locks --------------------------------------------------------------------------------- */

static int get_lock(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                    struct df_lock *lock)
{
    struct flock wanted = df_flock_of(lock, call->caller->pid), found;
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;
    int result;

    if (!lane->ops.getlk)
        return -ENOSYS;
    fi->lock_owner = lock->owner;
    df_request_begin(&req, lane, call, DF_TAKES_LOCK);
    req.lock = &found;
    result = (int)DF_REQUEST(&req, getlk, df_node_of_file(file)->id, fi, &wanted);
    return result < 0 ? result : df_flock_take(lock, &found);
}

static int set_lock(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                    const struct df_lock *lock)
{
    struct flock wanted = df_flock_of(lock, call->caller->pid);
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;

    if (!lane->ops.setlk)
        return -ENOSYS;
    fi->lock_owner = lock->owner;
    df_request_begin(&req, lane, call, DF_TAKES_OK);
    return (int)DF_REQUEST_AT_REST(call, &req, setlk, df_node_of_file(file)->id, fi, &wanted,
                                   lock->wait);
}

int df_lowlevel_lock(struct df_fs *fs, struct df_call *call, struct df_file *file,
                     struct df_lock *lock)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);

    if (!lane->posix_locks || df_node_is_dir(df_node_of_file(file)))
        return DF_NOT_OURS;
    return lock->test ? get_lock(lane, call, file, lock) : set_lock(lane, call, file, lock);
}

/* RELEASE will say that the file may have a lock. */
int df_lowlevel_flock(struct df_fs *fs, struct df_call *call, struct df_file *file, int operation,
                      uint64_t owner)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;

    if (!lane->flock_locks || df_node_is_dir(df_node_of_file(file)))
        return DF_NOT_OURS; /* Linux asks no file system about locks of a directory */
    if (!lane->ops.flock)
        return -ENOSYS;
    __atomic_store_n(&file->host[DF_FILE_FLOCK_OWNER], owner, __ATOMIC_RELAXED);
    __atomic_fetch_or(&file->host[DF_FILE_BITS], DF_FILE_HAS_FLOCK, __ATOMIC_RELAXED);
    fi->lock_owner = owner;
    df_request_begin(&req, lane, call, DF_TAKES_OK);
    return (int)DF_REQUEST_AT_REST(call, &req, flock, df_node_of_file(file)->id, fi, operation);
}
