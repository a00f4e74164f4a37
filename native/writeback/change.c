/*
 * change.c - what looks at a file's bytes or size, or changes them, otherwise than by reading and
 * writing an open file: what is kept of it is handed over before.
 */
#include <pthread.h>

#include "core/clock.h"
#include "writeback/private.h"

#define TRIES 8 /* of an answer that others hand over beneath */

/* The open file that is meant itself, not a name. */
static struct df_wfile *wfile_at(const struct df_where *where)
{
    return where->len == 0 ? df_wfile_of(where->base) : NULL;
}

/* ---- changes that are announced -------------------------------------------------------------- */

void df_writeback_begin_change(struct df_writeback *wb)
{
    atomic_fetch_add(&wb->changing, 1);
}

void df_writeback_end_change(struct df_writeback *wb)
{
    atomic_fetch_add(&wb->changed, 1);
    atomic_fetch_sub(&wb->changing, 1);
}

static void clean_file(struct df_writeback *wb, struct df_call *call, const struct df_file *file)
{
    struct df_wfile *wfile = df_wfile_of(file);

    if (wfile)
        df_inode_clean(wb, call->thread, wfile->inode);
}

/* Which of several files with that number is meant is not known, so all of them: a file system that
 * shows several others may have two. (Not those that become owned meanwhile, for ever.) True if any
 * was kept. */
static bool clean_number(struct df_writeback *wb, struct df_call *call, ino_t ino)
{
    struct df_inode *inode;
    bool kept = false;
    int64_t now;

    if (atomic_load(&wb->owned) == 0)
        return false;
    now = df_clock();
    while ((inode = df_inode_owned(wb, ino, now))) {
        df_inode_clean(wb, call->thread, inode);
        df_inode_put(wb, inode);
        kept = true;
    }
    return kept;
}

/* A path that leads nowhere, or out, is for the op to say. */
void df_writeback_clean_named(struct df_writeback *wb, struct df_call *call,
                              const struct df_where *where)
{
    uint32_t links = call->links;
    struct stat st;

    if (atomic_load(&wb->owned) > 0 && DF_BELOW(getattr, where, &st) == 0)
        clean_number(wb, call, st.st_ino);
    call->links = links;
}

static void clean_at(struct df_writeback *wb, struct df_call *call, const struct df_where *where)
{
    if (wfile_at(where))
        clean_file(wb, call, where->base);
    else
        df_writeback_clean_named(wb, call, where);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* What is owned is newer than what the file system says. Under its lock, from before that was
 * asked: else it could be handed over meanwhile. */
static void show_owned(const struct df_inode *inode, struct stat *st)
{
    if (!atomic_load(&inode->owned))
        return;
    st->st_size = inode->size;
    st->st_mtim = st->st_ctim = inode->modified;
}

static int getattr_owned(struct df_writeback *wb, struct df_call *call, struct df_inode *inode,
                         const struct df_where *where, struct stat *st)
{
    int ret;

    pthread_mutex_lock(&inode->lock);
    ret = (int)DF_BELOW(getattr, where, st);
    if (ret == 0)
        show_owned(inode, st);
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
        int ret = (int)DF_BELOW(getattr, where, st);

        if (ret != 0 || !S_ISREG(st->st_mode) || i == TRIES ||
            (!clean_number(wb, call, st->st_ino) && handed == atomic_load(&wb->handed)))
            return ret;
        call->links = links;
    }
}

int df_writeback_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_at(where);

    if (!wfile)
        return getattr_named(wb, call, where, st);
    if (atomic_load(&wfile->inode->owned))
        return getattr_owned(wb, call, wfile->inode, where, st);
    return (int)DF_BELOW(getattr, where, st);
}

static int statx_owned(struct df_writeback *wb, struct df_call *call, struct df_inode *inode,
                       const struct df_where *where, struct df_statx *out)
{
    int ret;

    pthread_mutex_lock(&inode->lock);
    ret = (int)DF_BELOW(statx, where, out);
    if (ret == 0)
        show_owned(inode, &out->st);
    pthread_mutex_unlock(&inode->lock);
    return ret;
}

/* By name: what was kept before the call is handed over, so that the answer has it. */
int df_writeback_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct df_statx *out)
{
    struct df_writeback *wb = df_writeback_of(fs);
    struct df_wfile *wfile = wfile_at(where);

    if (wfile)
        return statx_owned(wb, call, wfile->inode, where, out);
    df_writeback_clean_named(wb, call, where);
    return (int)DF_BELOW(statx, where, out);
}

int df_writeback_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         const struct df_setattr *set, struct stat *st)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    df_writeback_begin_change(wb);
    clean_at(wb, call, where);
    ret = (int)DF_BELOW(setattr, where, set, st);
    df_writeback_end_change(wb);
    return ret;
}

/* ---- what goes by bytes or size, another way ------------------------------------------------- */

off_t df_writeback_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                         int whence)
{
    struct df_writeback *wb = df_writeback_of(fs);

    clean_file(wb, call, file);
    return DF_BELOW(lseek, file, offset, whence);
}

int df_writeback_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                           off_t offset, off_t length)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    df_writeback_begin_change(wb);
    clean_file(wb, call, file);
    ret = (int)DF_BELOW(fallocate, file, mode, offset, length);
    df_writeback_end_change(wb);
    return ret;
}

ssize_t df_writeback_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                     off_t offset_in, struct df_file *out, off_t offset_out,
                                     size_t size, unsigned flags)
{
    struct df_writeback *wb = df_writeback_of(fs);
    ssize_t ret;

    df_writeback_begin_change(wb);
    clean_file(wb, call, in);
    clean_file(wb, call, out);
    ret = DF_BELOW(copy_file_range, in, offset_in, out, offset_out, size, flags);
    df_writeback_end_change(wb);
    return ret;
}

int df_writeback_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                       unsigned long request, void *arg)
{
    struct df_writeback *wb = df_writeback_of(fs);
    int ret;

    df_writeback_begin_change(wb);
    clean_file(wb, call, file);
    ret = (int)DF_BELOW(ioctl, file, request, arg);
    df_writeback_end_change(wb);
    return ret;
}
