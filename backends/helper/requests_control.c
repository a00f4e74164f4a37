/*
 * requests_control.c - locks, ioctl, poll; and the table of all operations.
 */
#include <errno.h>
#include <sys/file.h>

#include "requests.h"

/* ---- locks ------------------------------------------------------------------------------------
 */

static void lock_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, struct fuse_file_info *fi,
                    const struct fuse_file_lock *lock, uint32_t flags)
{
    struct fuse_lk_in in = {
        .fh = handle_fh(fi), .owner = fi->lock_owner, .lk = *lock, .lk_flags = flags};
    struct message message = REQUEST(opcode, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

static struct fuse_file_lock range_of(fuse_req_t req, const struct flock *lock)
{
    return (struct fuse_file_lock){
        .start = (uint64_t)lock->l_start,
        .end = lock->l_len ? (uint64_t)(lock->l_start + lock->l_len - 1) : INT64_MAX,
        .type = (uint32_t)lock->l_type,
        .pid = (uint32_t)fuse_req_ctx(req)->pid,
    };
}

void request_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
    struct fuse_file_lock range = range_of(req, lock);

    lock_as(req, FUSE_GETLK, ino, fi, &range, 0);
}

void request_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                   int sleep)
{
    struct fuse_file_lock range = range_of(req, lock);

    lock_as(req, sleep ? FUSE_SETLKW : FUSE_SETLK, ino, fi, &range, 0);
}

void request_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
    int kind = op & ~LOCK_NB;
    struct fuse_file_lock whole = {
        .end = INT64_MAX,
        .type = kind == LOCK_EX   ? F_WRLCK
                : kind == LOCK_SH ? F_RDLCK
                                  : F_UNLCK,
        .pid = (uint32_t)fuse_req_ctx(req)->pid,
    };

    lock_as(req, op & LOCK_NB ? FUSE_SETLK : FUSE_SETLKW, ino, fi, &whole, FUSE_LK_FLOCK);
}

/* ---- ioctl, poll ------------------------------------------------------------------------------
 */

void request_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument,
                   struct fuse_file_info *fi, unsigned flags, const void *data, size_t in_size,
                   size_t out_size)
{
    struct fuse_ioctl_in in = {
        .fh = handle_fh(fi),
        .flags = flags,
        .cmd = command,
        .arg = (uint64_t)(uintptr_t)argument,
        .in_size = (uint32_t)in_size,
        .out_size = (uint32_t)out_size,
    };
    struct message message = REQUEST(FUSE_IOCTL, ino, .room = out_size, .changes = ino);

    request_add(&message, &in, sizeof(in));
    request_add(&message, data, in_size);
    request_send(req, &message);
}

void request_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                  struct fuse_pollhandle *handle)
{
    struct fuse_poll_in in = {.fh = handle_fh(fi), .events = fi->poll_events};
    struct message message = REQUEST(FUSE_POLL, ino);

    if (handle) {
        in.kh = notify_remember_poll(fuse_req_userdata(req), ino, fi->fh, handle);
        in.flags = in.kh ? FUSE_POLL_SCHEDULE_NOTIFY : 0;
    }
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* ---- the table --------------------------------------------------------------------------------
 */

#define IOCTL_DIR_MINOR 18 /* from here on directories have them, whatever INIT's answer says */

struct wish { /* INIT's flags as libfuse and the protocol name them */
    unsigned capability;
    uint64_t flag;
};

static const struct wish wishes[] = {
    {FUSE_CAP_ASYNC_READ, FUSE_ASYNC_READ},
    {FUSE_CAP_POSIX_LOCKS, FUSE_POSIX_LOCKS},
    {FUSE_CAP_ATOMIC_O_TRUNC, FUSE_ATOMIC_O_TRUNC},
    {FUSE_CAP_EXPORT_SUPPORT, FUSE_EXPORT_SUPPORT},
    {FUSE_CAP_DONT_MASK, FUSE_DONT_MASK},
    {FUSE_CAP_FLOCK_LOCKS, FUSE_FLOCK_LOCKS},
    {FUSE_CAP_AUTO_INVAL_DATA, FUSE_AUTO_INVAL_DATA},
    {FUSE_CAP_READDIRPLUS, FUSE_DO_READDIRPLUS},
    {FUSE_CAP_READDIRPLUS_AUTO, FUSE_READDIRPLUS_AUTO},
    {FUSE_CAP_ASYNC_DIO, FUSE_ASYNC_DIO},
    {FUSE_CAP_NO_OPEN_SUPPORT, FUSE_NO_OPEN_SUPPORT},
    {FUSE_CAP_PARALLEL_DIROPS, FUSE_PARALLEL_DIROPS},
    {FUSE_CAP_HANDLE_KILLPRIV, FUSE_HANDLE_KILLPRIV},
    {FUSE_CAP_CACHE_SYMLINKS, FUSE_CACHE_SYMLINKS},
    {FUSE_CAP_POSIX_ACL, FUSE_POSIX_ACL},
    {FUSE_CAP_NO_OPENDIR_SUPPORT, FUSE_NO_OPENDIR_SUPPORT},
    {FUSE_CAP_EXPLICIT_INVAL_DATA, FUSE_EXPLICIT_INVAL_DATA},
};

/* INIT was exchanged before: its outcome is handed up. */
static void request_init(void *userdata, struct fuse_conn_info *conn)
{
    const struct channel *channel = userdata;

    conn->want = channel->minor >= IOCTL_DIR_MINOR ? FUSE_CAP_IOCTL_DIR & conn->capable : 0;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        if (channel->flags & wishes[i].flag)
            conn->want |= wishes[i].capability & conn->capable;
    }
    conn->max_write = channel->max_write;
    conn->max_read = channel->max_read;
    conn->max_readahead = channel->max_readahead;
    conn->max_background = channel->max_background;
    conn->congestion_threshold = channel->congestion_threshold;
    conn->time_gran = channel->time_gran;
}

static void request_destroy(void *userdata)
{
    channel_say_goodbye(userdata);
}

const struct later_ops request_ops = {
    .ops =
        {
            .init = request_init,
            .destroy = request_destroy,
            .lookup = request_lookup,
            .forget = request_forget,
            .forget_multi = request_forget_multi,
            .getattr = request_getattr,
            .setattr = request_setattr,
            .readlink = request_readlink,
            .mknod = request_mknod,
            .mkdir = request_mkdir,
            .unlink = request_unlink,
            .rmdir = request_rmdir,
            .symlink = request_symlink,
            .rename = request_rename,
            .link = request_link,
            .open = request_open,
            .read = request_read,
            .write = request_write,
            .flush = request_flush,
            .release = request_release,
            .fsync = request_fsync,
            .opendir = request_opendir,
            .readdir = request_readdir,
            .readdirplus = request_readdirplus,
            .releasedir = request_releasedir,
            .fsyncdir = request_fsyncdir,
            .statfs = request_statfs,
            .setxattr = request_setxattr,
            .getxattr = request_getxattr,
            .listxattr = request_listxattr,
            .removexattr = request_removexattr,
            .access = request_access,
            .create = request_create,
            .getlk = request_getlk,
            .setlk = request_setlk,
            .flock = request_flock,
            .ioctl = request_ioctl,
            .poll = request_poll,
            .fallocate = request_fallocate,
            .copy_file_range = request_copy,
            .lseek = request_lseek,
        },
    .LATER_TMPFILE = request_tmpfile,
    .LATER_STATX = request_statx,
};
