/*
 * writeback_ops.c - the ops of a mount whose writes are kept (writeback.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/gate.h"
#include "server/writeback_private.h"

#define TRIES            8 /* of an answer that others hand over beneath */

#define BELOW(name, ...) df_call_result(call, wb->below->ops->name(wb->below, call, __VA_ARGS__))

static struct df_wfile *wfile_of(const struct df_file *file)
{
    return file ? file->kept : NULL;
}

/* The open file that is meant itself, not a name. */
static struct df_wfile *wfile_at(const struct df_where *where)
{
    return where->len == 0 ? wfile_of(where->base) : NULL;
}

/* ---- changes that are announced -------------------------------------------------------------- */

/* Writes of the mount go through from here on. What was kept before is handed over by who looks
 * for it after this. */
static void begin_change(struct df_writeback *wb)
{
    atomic_fetch_add(&wb->changing, 1);
}

static void end_change(struct df_writeback *wb)
{
    atomic_fetch_add(&wb->changed, 1);
    atomic_fetch_sub(&wb->changing, 1);
}

static void clean_file(struct df_writeback *wb, struct df_call *call, const struct df_file *file)
{
    struct df_wfile *wfile = wfile_of(file);

    if (wfile)
        df_inode_clean(wb, call->thread, wfile->inode);
}

/* True if a file of that number was kept. */
static bool clean_number(struct df_writeback *wb, struct df_call *call, ino_t ino)
{
    struct df_inode *inode = df_inode_owned(wb, ino);

    if (!inode)
        return false;
    df_inode_clean(wb, call->thread, inode);
    df_inode_put(wb, inode);
    return true;
}

/* The file of that name, if it is kept. A path that leads nowhere, or out, is for the op to say. */
static void clean_named(struct df_writeback *wb, struct df_call *call, const struct df_where *where)
{
    uint32_t links = call->links;
    struct stat st;

    if (atomic_load(&wb->owned) > 0 && BELOW(getattr, where, &st) == 0)
        clean_number(wb, call, st.st_ino);
    call->links = links;
}

static void clean_at(struct df_writeback *wb, struct df_call *call, const struct df_where *where)
{
    if (wfile_at(where))
        clean_file(wb, call, where->base);
    else
        clean_named(wb, call, where);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* While it is owned, under its lock: else what was asked could be handed over meanwhile. */
static int getattr_owned(struct df_writeback *wb, struct df_call *call, struct df_inode *inode,
                         const struct df_where *where, struct stat *st)
{
    int ret;

    pthread_mutex_lock(&inode->lock);
    ret = (int)BELOW(getattr, where, st);
    if (ret == 0 && atomic_load(&inode->owned)) {
        st->st_size = inode->size;
        st->st_mtim = st->st_ctim = inode->modified;
    }
    pthread_mutex_unlock(&inode->lock);
    return ret;
}

/* By name: who has it open may have it kept. Then the answer is the file system's, once it has
 * everything; for two names may show one number and not be one file. */
static int getattr_named(struct df_writeback *wb, struct df_call *call,
                         const struct df_where *where, struct stat *st)
{
    for (int i = 0;; i++) {
        uint64_t handed = atomic_load(&wb->handed);
        uint32_t links = call->links;
        int ret = (int)BELOW(getattr, where, st);

        if (ret != 0 || !S_ISREG(st->st_mode) || i == TRIES ||
            (!clean_number(wb, call, st->st_ino) && handed == atomic_load(&wb->handed)))
            return ret;
        call->links = links;
    }
}

static int wb_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct stat *st)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_at(where);

    if (!wfile)
        return getattr_named(wb, call, where, st);
    if (atomic_load(&wfile->inode->owned))
        return getattr_owned(wb, call, wfile->inode, where, st);
    return (int)BELOW(getattr, where, st);
}

static int statx_owned(struct df_writeback *wb, struct df_call *call, struct df_inode *inode,
                       const struct df_where *where, struct df_statx *out)
{
    int ret;

    pthread_mutex_lock(&inode->lock);
    ret = (int)BELOW(statx, where, out);
    if (ret == 0 && atomic_load(&inode->owned)) {
        out->st.st_size = inode->size;
        out->st.st_mtim = out->st.st_ctim = inode->modified;
    }
    pthread_mutex_unlock(&inode->lock);
    return ret;
}

/* By name: what was kept before the call is handed over, so that the answer has it. */
static int wb_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    struct df_statx *out)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_at(where);

    if (wfile)
        return statx_owned(wb, call, wfile->inode, where, out);
    clean_named(wb, call, where);
    return (int)BELOW(statx, where, out);
}

static int wb_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      const struct df_setattr *set, struct stat *st)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    begin_change(wb);
    clean_at(wb, call, where);
    ret = (int)BELOW(setattr, where, set, st);
    end_change(wb);
    return ret;
}

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
    wfile->seen = inode->errors;
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
        BELOW(flush, file, call->caller->lock_owner);
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
        begin_change(wb);
        clean_named(wb, call, where);
    }
    ret = (int)BELOW(open, where, file, flags, mode);
    if (ret == 0)
        ret = take(wb, call, file);
    if (truncates)
        end_change(wb);
    return ret;
}

static int wb_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct df_file *file, int flags, mode_t mode)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret = (int)BELOW(tmpfile, where, file, flags, mode);

    return ret == 0 ? take(wb, call, file) : ret;
}

/* 0, or the error of a late write that this description has not told yet. */
static int hand_over(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile)
{
    int error;

    pthread_mutex_lock(&wfile->inode->lock);
    df_inode_hand_over(wb, call->thread, wfile->inode);
    error = df_inode_error(wfile);
    pthread_mutex_unlock(&wfile->inode->lock);
    return error;
}

static int wb_flush(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_of(file);
    int error = wfile ? hand_over(wb, call, wfile) : 0;
    int ret = wfile && wfile->unflushed ? 0 : (int)BELOW(flush, file, owner);

    return error ? error : ret;
}

static int wb_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file, bool datasync)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_of(file);
    int error = wfile ? hand_over(wb, call, wfile) : 0;
    int ret = (int)BELOW(fsync, file, datasync);

    return error ? error : ret;
}

static void wb_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_of(file), **link;

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

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_direct(const struct df_wfile *wfile)
{
    return wfile->through || atomic_load(&wfile->file->flags) & O_DIRECT;
}

/* Under the lock of an owned inode, `size` bytes that are within its size: the file system's, zeros
 * behind its end, and over them what is kept. */
static ssize_t read_owned(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                          char *bytes, size_t size, off_t offset)
{
    const struct iovec iov = {bytes, size};
    ssize_t got = 0;

    if (!df_dirty_covers(&wfile->inode->dirty, offset, size)) {
        got = BELOW(read, wfile->file, &iov, 1, offset);
        if (got < 0)
            return got;
        memset(bytes + got, 0, size - (size_t)got);
    }
    df_dirty_show(&wfile->inode->dirty, offset, bytes, size);
    return (ssize_t)size;
}

static ssize_t read_kept(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                         const struct iovec *iov, off_t offset)
{
    struct df_inode *inode = wfile->inode;
    off_t left = offset < inode->size ? inode->size - offset : 0;

    if (left == 0)
        return 0;
    return read_owned(wb, call, wfile, iov->iov_base,
                      (off_t)iov->iov_len < left ? iov->iov_len : (size_t)left, offset);
}

static ssize_t wb_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                       const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_of(file);
    ssize_t ret;

    if (!wfile || !atomic_load(&wfile->inode->owned))
        return BELOW(read, file, iov, iovcnt, offset);
    pthread_mutex_lock(&wfile->inode->lock);
    if (is_direct(wfile) || iovcnt != 1 || offset < 0)
        df_inode_hand_over(wb, call->thread, wfile->inode);
    if (atomic_load(&wfile->inode->owned))
        ret = read_kept(wb, call, wfile, iov, offset);
    else
        ret = BELOW(read, file, iov, iovcnt, offset);
    pthread_mutex_unlock(&wfile->inode->lock);
    return ret;
}

static int wb_read_batch(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                         size_t count)
{
    struct df_writeback *wb = df_writeback_of(fs);

    if (atomic_load(&wb->owned) == 0)
        return (int)BELOW(read_batch, extents, count);
    for (size_t i = 0; i < count; i++) {
        struct iovec iov = {extents[i].buf, extents[i].size};

        extents[i].result = wb_read(fs, call, extents[i].file, &iov, 1, extents[i].offset);
    }
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* As the kernel, in whose place the file system's own removal of setuid would come too late. */
static bool may_be_kept(const struct stat *st)
{
    return S_ISREG(st->st_mode) && !(st->st_mode & (S_ISUID | S_ISGID));
}

/* Under the lock: the inode is owned, or can be; *st is of one that is not yet. */
static bool may_own(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                    struct stat *st)
{
    const struct df_where itself = {.base = wfile->file, .name = ""};

    if (atomic_load(&wb->changing) > 0)
        return false;
    return atomic_load(&wfile->inode->owned) ||
           (BELOW(getattr, &itself, st) == 0 && may_be_kept(st));
}

/* Room for so many pages more, which is given back by handing over. */
static bool take_room(struct df_writeback_room *room, size_t pages)
{
    size_t used = atomic_load(&room->used);

    do
        if (used + pages > room->limit)
            return false;
    while (!atomic_compare_exchange_weak(&room->used, &used, used + pages));
    return true;
}

/* Under the lock: keeps the bytes, beside what is kept. False: they cannot be. */
static bool store(struct df_writeback *wb, struct df_inode *inode, off_t offset,
                  const struct iovec *iov)
{
    struct df_writeback_room *room = wb->server.room;
    size_t pages;

    if (!df_dirty_fits(&inode->dirty, offset, iov->iov_len))
        return false;
    pages = df_dirty_new_pages(&inode->dirty, offset, iov->iov_len);
    if (!take_room(room, pages))
        return false;
    if (df_dirty_store(&inode->dirty, offset, iov->iov_base, iov->iov_len))
        return true;
    atomic_fetch_sub(&room->used, pages);
    return false;
}

/* Under the lock: owns the inode, whose first bytes have been stored. A change that did not find it
 * because it was not owned yet has begun by now: then nothing was kept. False. */
static bool own(struct df_writeback *wb, struct df_inode *inode, const struct stat *st,
                uint64_t changed)
{
    df_inode_own(wb, inode, st);
    if (atomic_load(&wb->changing) == 0 && atomic_load(&wb->changed) == changed)
        return true;
    df_inode_drop(wb, inode);
    return false;
}

/* Under the lock: keeps the write if that is possible now. */
static bool keep(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                 const struct iovec *iov, off_t *offset)
{
    struct df_inode *inode = wfile->inode;
    uint64_t changed = atomic_load(&wb->changed);
    struct stat st;
    off_t at = *offset;

    if (!may_own(wb, call, wfile, &st))
        return false;
    if (atomic_load(&wfile->file->flags) & O_APPEND)
        at = atomic_load(&inode->owned) ? inode->size : st.st_size;
    if (at < 0 || (off_t)iov->iov_len > INT64_MAX - at || !store(wb, inode, at, iov))
        return false;
    if (!atomic_load(&inode->owned) && !own(wb, inode, &st, changed))
        return false;
    if (inode->size < at + (off_t)iov->iov_len)
        inode->size = at + (off_t)iov->iov_len;
    clock_gettime(CLOCK_REALTIME_COARSE, &inode->modified);
    *offset = at;
    return true;
}

/* Under the lock. What is kept goes first, so that the order of the writes stays. */
static ssize_t write_locked(struct df_writeback *wb, struct df_call *call, struct df_wfile *wfile,
                            const struct iovec *iov, int iovcnt, off_t *offset)
{
    bool keepable = iovcnt == 1 && iov->iov_len > 0 && !is_direct(wfile);

    if (keepable && keep(wb, call, wfile, iov, offset))
        return (ssize_t)iov->iov_len;
    if (atomic_load(&wfile->inode->owned)) {
        df_inode_hand_over(wb, call->thread, wfile->inode);
        if (keepable && keep(wb, call, wfile, iov, offset))
            return (ssize_t)iov->iov_len;
    }
    return BELOW(write, wfile->file, iov, iovcnt, offset);
}

static ssize_t wb_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                        const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_of(file);
    ssize_t ret;

    if (!wfile)
        return BELOW(write, file, iov, iovcnt, offset);
    pthread_mutex_lock(&wfile->inode->lock);
    ret = write_locked(wb, call, wfile, iov, iovcnt, offset);
    pthread_mutex_unlock(&wfile->inode->lock);
    return ret;
}

/* ---- what goes by bytes or size, another way ------------------------------------------------- */

static off_t wb_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                      int whence)
{
    struct df_writeback *wb = df_writeback_of(fs);

    clean_file(wb, call, file);
    return BELOW(lseek, file, offset, whence);
}

static int wb_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                        off_t offset, off_t length)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    begin_change(wb);
    clean_file(wb, call, file);
    ret = (int)BELOW(fallocate, file, mode, offset, length);
    end_change(wb);
    return ret;
}

static ssize_t wb_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                  off_t offset_in, struct df_file *out, off_t offset_out,
                                  size_t size, unsigned flags)
{
    struct df_writeback *wb = df_writeback_of(fs);
    ssize_t ret;

    begin_change(wb);
    clean_file(wb, call, in);
    clean_file(wb, call, out);
    ret = BELOW(copy_file_range, in, offset_in, out, offset_out, size, flags);
    end_change(wb);
    return ret;
}

static int wb_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                    unsigned long request, void *arg)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    begin_change(wb);
    clean_file(wb, call, file);
    ret = (int)BELOW(ioctl, file, request, arg);
    end_change(wb);
    return ret;
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

/* borrow: by default none is lent, for what is lent would not be what is kept. */
const struct df_ops df_writeback_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = wb_getattr,
    .setattr = wb_setattr,
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
    .read = wb_read,
    .write = wb_write,
    .read_batch = wb_read_batch,
    .lseek = wb_lseek,
    .fsync = wb_fsync,
    .fallocate = wb_fallocate,
    .copy_file_range = wb_copy_file_range,
    .readdir = wb_readdir,
    .ioctl = wb_ioctl,
    .poll = wb_poll,
    .lock = wb_lock,
    .flock = wb_flock,
    .advise = wb_advise,
    .statx = wb_statx,
    .tmpfile = wb_tmpfile,
};
