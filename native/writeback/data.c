/*
 * data.c - reading and writing open files of which something is kept, or may be.
 */
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "writeback/private.h"

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
        got = DF_BELOW(read, wfile->file, &iov, 1, offset);
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

ssize_t df_writeback_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = df_wfile_of(file);
    ssize_t ret;

    if (!wfile || !atomic_load(&wfile->inode->owned))
        return DF_BELOW(read, file, iov, iovcnt, offset);
    pthread_mutex_lock(&wfile->inode->lock);
    if (is_direct(wfile) || iovcnt != 1 || offset < 0)
        df_inode_hand_over(wb, call->thread, wfile->inode);
    if (atomic_load(&wfile->inode->owned))
        ret = read_kept(wb, call, wfile, iov, offset);
    else
        ret = DF_BELOW(read, file, iov, iovcnt, offset);
    pthread_mutex_unlock(&wfile->inode->lock);
    return ret;
}

int df_writeback_read_batch(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                            size_t count)
{
    struct df_writeback *wb = df_writeback_of(fs);

    if (atomic_load(&wb->owned) == 0)
        return (int)DF_BELOW(read_batch, extents, count);
    for (size_t i = 0; i < count; i++) {
        struct iovec iov = {extents[i].buf, extents[i].size};

        extents[i].result =
            df_writeback_read(fs, call, extents[i].file, &iov, 1, extents[i].offset);
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
           (DF_BELOW(getattr, &itself, st) == 0 && may_be_kept(st));
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
    if (df_call_appends(call, atomic_load(&wfile->file->flags)))
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
    return DF_BELOW(write, wfile->file, iov, iovcnt, offset);
}

ssize_t df_writeback_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = df_wfile_of(file);
    ssize_t ret;

    if (!wfile)
        return DF_BELOW(write, file, iov, iovcnt, offset);
    pthread_mutex_lock(&wfile->inode->lock);
    ret = write_locked(wb, call, wfile, iov, iovcnt, offset);
    pthread_mutex_unlock(&wfile->inode->lock);
    return ret;
}
