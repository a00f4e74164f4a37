/*
 * execute_check.c - what file systems are never asked, whoever writes it into a slot: Linux, and
 * our clients, refuse it before. Programs under other user ids have the segment, too, and none of
 * them is to end the server of all.
 */
#include <errno.h>

#include "server/server_private.h"

/* may_mknod() of Linux. */
static int check_mknod(mode_t mode)
{
    switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
        return 0;
    default:
        return -EINVAL;
    }
}

static bool is_directory(const struct df_file *file)
{
    return file && file->kind == DF_KIND_DIRECTORY;
}

static bool is_path(const struct df_file *file)
{
    return file && atomic_load_explicit(&file->flags, memory_order_relaxed) & O_PATH;
}

bool df_execute_may_read(const struct df_file *file)
{
    return !is_directory(file) && !is_path(file);
}

int df_execute_check(struct df_work *w)
{
    switch (w->message.op) {
    case DF_MESSAGE_mknod:
        return check_mknod(w->message.args.mknod.mode);
    case DF_MESSAGE_readdir:
        return !is_directory(w->files[0]) ? -ENOTDIR : is_path(w->files[0]) ? -EBADF : 0;
    case DF_MESSAGE_read:
    case DF_MESSAGE_write:
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_copy_file_range:
        return df_execute_may_read(w->files[0]) && df_execute_may_read(w->files[1]) ? 0 : -EBADF;
    case DF_MESSAGE_lseek:
    case DF_MESSAGE_fsync:
    case DF_MESSAGE_ioctl:
    case DF_MESSAGE_poll:
    case DF_MESSAGE_lock:
    case DF_MESSAGE_flock:
        return is_path(w->files[0]) ? -EBADF : 0;
    default:
        return 0;
    }
}
