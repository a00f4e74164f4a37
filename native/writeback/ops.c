/*
 * ops.c - the table of ops of a mount whose writes are kept (writeback.h); opening and closing, and
 * what is passed on as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "core/gate.h"
#include "writeback/private.h"

/* ---- opening and closing --------------------------------------------------------------------- */

static void attach(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                   struct df_file *file)
{
    const uint8_t never = DF_FILE_DIRECT | DF_FILE_STREAM | DF_FILE_NONSEEKABLE;
    struct df_inode *inode = wfile->inode;
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    wfile->file = file;
    wfile->writes = (flags & O_ACCMODE) != O_RDONLY;
    wfile->through = file->traits & never;
    wfile->unflushed = file->traits & DF_FILE_NOFLUSH;
    file->traits &= (uint8_t)~DF_FILE_NOFLUSH;
    pthread_mutex_lock(&inode->lock);
    wfile->seen = inode->told;
    wfile->closed = inode->closed;
    wfile->next = inode->files;
    inode->files = wfile;
    if (wfile->through || flags & O_DIRECT)
        df_inode_hand_over(wb, call->thread, inode);
    pthread_mutex_unlock(&inode->lock);
    file->kept = wfile;
}

/* An open file of which nothing can be kept, for lack of memory, would not see what is kept of it
 * by others. */
static int take(struct df_writeback *wb, struct df_call *call, struct df_file *file)
{
    struct df_wfile *wfile;

    if (file->kind != DF_KIND_REGULAR || file->body == 0 || atomic_load(&file->flags) & O_PATH)
        return 0;
    wfile = calloc(1, sizeof(*wfile));
    if (wfile && (wfile->inode = df_inode_get(wb, file->body))) {
        attach(wb, call, wfile, file);
        return 0;
    }
    free(wfile);
    if (!(file->traits & DF_FILE_NOFLUSH))
        DF_BELOW(flush, file, call->caller->lock_owner);
    wb->below->ops->release(wb->below, call, file);
    return -ENOMEM;
}

static int wb_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   struct df_file *file, int flags, mode_t mode)
{
    struct df_writeback *wb = df_writeback_of(fs);
    bool truncates = flags & O_TRUNC;
    int ret;

    if (truncates) {
        df_writeback_begin_change(wb);
        df_writeback_clean_named(wb, call, where);
    }
    ret = (int)DF_BELOW(open, where, file, flags, mode);
    if (ret == 0)
        ret = take(wb, call, file);
    if (truncates)
        df_writeback_end_change(wb);
    return ret;
}

static int wb_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct df_file *file, int flags, mode_t mode)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret = (int)DF_BELOW(tmpfile, where, file, flags, mode);

    return ret == 0 ? take(wb, call, file) : ret;
}

/* 0, or the error of a late write that `tell` says. */
static int hand_over(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                     int (*tell)(struct df_wfile *wfile))
{
    int error;

    pthread_mutex_lock(&wfile->inode->lock);
    df_inode_hand_over(wb, call->thread, wfile->inode);
    error = tell(wfile);
    pthread_mutex_unlock(&wfile->inode->lock);
    return error;
}

static int wb_flush(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = df_wfile_of(file);
    int error = wfile ? hand_over(wb, call, wfile, df_inode_error_at_close) : 0;
    int ret = wfile && wfile->unflushed ? 0 : (int)DF_BELOW(flush, file, owner);

    return error ? error : ret;
}

static int wb_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file, bool datasync)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = df_wfile_of(file);
    int error = wfile ? hand_over(wb, call, wfile, df_inode_error) : 0;
    int ret = (int)DF_BELOW(fsync, file, datasync);

    return error ? error : ret;
}

static void wb_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = df_wfile_of(file), **link;

    if (wfile) {
        pthread_mutex_lock(&wfile->inode->lock);
        if (wfile->writes)
            df_inode_hand_over(wb, call->thread, wfile->inode);
        for (link = &wfile->inode->files; *link != wfile; link = &(*link)->next)
            ;
        *link = wfile->next;
        pthread_mutex_unlock(&wfile->inode->lock);
        file->kept = NULL;
    }
    wb->below->ops->release(wb->below, call, file);
    if (wfile)
        df_inode_put(wb, wfile->inode);
    free(wfile);
}

/* ---- the rest, as it is ---------------------------------------------------------------------- */

#define PASSED(type, name, parameters, arguments)                                                  \
    static type wb_##name parameters                                                               \
    {                                                                                              \
        struct df_fs *below = df_writeback_of(fs)->below;                                          \
                                                                                                   \
        return below->ops->name arguments;                                                         \
    }

#define FS    struct df_fs *fs, struct df_call *call
#define WHERE const struct df_where *where
#define FILE_ struct df_file *file

PASSED(int, access, (FS, WHERE, int mask), (below, call, where, mask))
PASSED(ssize_t, readlink, (FS, WHERE, char *buf, size_t size), (below, call, where, buf, size))
PASSED(ssize_t, getxattr, (FS, WHERE, const char *name, void *value, size_t size),
       (below, call, where, name, value, size))
PASSED(ssize_t, listxattr, (FS, WHERE, char *list, size_t size), (below, call, where, list, size))
PASSED(int, setxattr, (FS, WHERE, const char *name, const void *value, size_t size, int flags),
       (below, call, where, name, value, size, flags))
PASSED(int, removexattr, (FS, WHERE, const char *name), (below, call, where, name))
PASSED(int, statfs, (FS, WHERE, struct statvfs *out), (below, call, where, out))
PASSED(int, mknod, (FS, WHERE, mode_t mode, dev_t rdev), (below, call, where, mode, rdev))
PASSED(int, mkdir, (FS, WHERE, mode_t mode), (below, call, where, mode))
PASSED(int, symlink, (FS, const char *target, WHERE), (below, call, target, where))
PASSED(int, unlink, (FS, WHERE), (below, call, where))
PASSED(int, rmdir, (FS, WHERE), (below, call, where))
PASSED(int, rename, (FS, WHERE, const struct df_where *to, unsigned flags),
       (below, call, where, to, flags))
PASSED(int, link, (FS, WHERE, const struct df_where *to), (below, call, where, to))
PASSED(int, readdir, (FS, FILE_, off_t offset, struct df_dirbuf *buf),
       (below, call, file, offset, buf))
PASSED(int, poll, (FS, FILE_, int events, struct df_wake *wake), (below, call, file, events, wake))
PASSED(int, lock, (FS, FILE_, struct df_lock *lock), (below, call, file, lock))
PASSED(int, flock, (FS, FILE_, int operation, uint64_t owner),
       (below, call, file, operation, owner))
PASSED(int, advise, (FS, FILE_, off_t offset, off_t length, int advice),
       (below, call, file, offset, length, advice))
PASSED(ssize_t, path, (FS, FILE_, char *buf, size_t size), (below, call, file, buf, size))

/* borrow: by default none is lent, for what is lent would not be what is kept. */
const struct df_ops df_writeback_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = df_writeback_getattr,
    .setattr = df_writeback_setattr,
    .access = wb_access,
    .readlink = wb_readlink,
    .getxattr = wb_getxattr,
    .listxattr = wb_listxattr,
    .setxattr = wb_setxattr,
    .removexattr = wb_removexattr,
    .statfs = wb_statfs,
    .mknod = wb_mknod,
    .mkdir = wb_mkdir,
    .symlink = wb_symlink,
    .unlink = wb_unlink,
    .rmdir = wb_rmdir,
    .rename = wb_rename,
    .link = wb_link,
    .open = wb_open,
    .flush = wb_flush,
    .release = wb_release,
    .read = df_writeback_read,
    .write = df_writeback_write,
    .read_batch = df_writeback_read_batch,
    .lseek = df_writeback_lseek,
    .fsync = wb_fsync,
    .fallocate = df_writeback_fallocate,
    .copy_file_range = df_writeback_copy_file_range,
    .readdir = wb_readdir,
    .ioctl = df_writeback_ioctl,
    .poll = wb_poll,
    .lock = wb_lock,
    .flock = wb_flock,
    .advise = wb_advise,
    .statx = df_writeback_statx,
    .tmpfile = wb_tmpfile,
    .path = wb_path,
};
