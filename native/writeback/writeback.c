/*
 * writeback.c - inodes of which something is kept, how it is handed over, and the thread that does
 * so when it has become old.
 */
#include "writeback/writeback.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/clock.h"
#include "core/gate.h"
#include "core/masked_thread.h"
#include "workers/pool.h"
#include "writeback/private.h"

#define PERIOD_S 5                    /* the kernel's dirty_writeback_centisecs */
#define OLD_NS   INT64_C(30000000000) /* and its dirty_expire_centisecs */
#define TRIES    16                   /* of a write that ends in EINTR */

/* ---- inodes ---------------------------------------------------------------------------------- */

static struct df_inode **bucket_of(struct df_writeback *wb, uint64_t body)
{
    return &wb->buckets[body * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (DF_INODE_BUCKETS - 1)];
}

static struct df_inode *make_inode(uint64_t body)
{
    struct df_inode *inode = calloc(1, sizeof(*inode));

    if (inode) {
        inode->body = body;
        pthread_mutex_init(&inode->lock, NULL);
    }
    return inode;
}

struct df_inode *df_inode_get(struct df_writeback *wb, uint64_t body)
{
    struct df_inode **bucket = bucket_of(wb, body), *inode;

    pthread_mutex_lock(&wb->lock);
    for (inode = *bucket; inode && inode->body != body; inode = inode->next)
        ;
    if (!inode && (inode = make_inode(body))) {
        inode->next = *bucket;
        *bucket = inode;
    }
    if (inode)
        inode->refs++;
    pthread_mutex_unlock(&wb->lock);
    return inode;
}

void df_inode_put(struct df_writeback *wb, struct df_inode *inode)
{
    struct df_inode **link = bucket_of(wb, inode->body);
    bool last;

    pthread_mutex_lock(&wb->lock);
    last = --inode->refs == 0;
    if (last) {
        while (*link != inode)
            link = &(*link)->next;
        *link = inode->next;
    }
    pthread_mutex_unlock(&wb->lock);
    if (!last)
        return;
    df_dirty_clear(&inode->dirty); /* room that a write asked for and did not get in full */
    pthread_mutex_destroy(&inode->lock);
    free(inode);
}

struct df_inode *df_inode_owned(struct df_writeback *wb, ino_t ino, int64_t since)
{
    struct df_inode *inode;

    pthread_mutex_lock(&wb->lock);
    for (inode = wb->first_owned; inode && (inode->ino != ino || inode->since > since);
         inode = inode->next_owned)
        ;
    if (inode)
        inode->refs++;
    pthread_mutex_unlock(&wb->lock);
    return inode;
}

void df_inode_own(struct df_writeback *wb, struct df_inode *inode, const struct stat *st)
{
    inode->size = st->st_size;
    pthread_mutex_lock(&wb->lock);
    inode->ino = st->st_ino;
    inode->since = df_clock();
    inode->previous_owned = NULL;
    inode->next_owned = wb->first_owned;
    if (inode->next_owned)
        inode->next_owned->previous_owned = inode;
    wb->first_owned = inode;
    atomic_store(&inode->owned, true);
    atomic_fetch_add(&wb->owned, 1);
    pthread_mutex_unlock(&wb->lock);
}

static void disown(struct df_writeback *wb, struct df_inode *inode)
{
    pthread_mutex_lock(&wb->lock);
    if (inode->previous_owned)
        inode->previous_owned->next_owned = inode->next_owned;
    else
        wb->first_owned = inode->next_owned;
    if (inode->next_owned)
        inode->next_owned->previous_owned = inode->previous_owned;
    atomic_fetch_add(&wb->handed, 1); /* before nobody finds it: df_writeback's getattr */
    atomic_store(&inode->owned, false);
    atomic_fetch_sub(&wb->owned, 1);
    pthread_mutex_unlock(&wb->lock);
}

/* ---- handing over ---------------------------------------------------------------------------- */

static void note_error(struct df_inode *inode, int error)
{
    inode->error = error;
    inode->errors++;
}

int df_inode_error(struct df_wfile *wfile)
{
    if (wfile->seen == wfile->inode->errors)
        return 0;
    wfile->seen = wfile->inode->told = wfile->inode->errors;
    wfile->closed = wfile->inode->closed = wfile->inode->errors;
    return wfile->inode->error;
}

int df_inode_error_at_close(struct df_wfile *wfile)
{
    if (wfile->closed == wfile->inode->errors)
        return 0;
    wfile->closed = wfile->inode->closed = wfile->inode->errors;
    return wfile->inode->error;
}

static struct df_file *writer_of(const struct df_inode *inode)
{
    const struct df_wfile *wfile = inode->files;

    while (wfile && !wfile->writes)
        wfile = wfile->next;
    return wfile ? wfile->file : NULL;
}

/* All of the run, or an error: a write that takes less has failed, as in fuse_writepage_end(). */
static int write_run(struct df_writeback *wb, struct df_call *call, struct df_file *file,
                     struct df_dirty_run run)
{
    struct iovec iov = {run.bytes, run.size};
    ssize_t ret = -EINTR;

    for (int i = 0; i < TRIES && ret == -EINTR; i++) {
        off_t offset = run.offset;

        ret = df_call_result(call, wb->below->ops->write(wb->below, call, file, &iov, 1, &offset));
    }
    return ret < 0 ? (int)ret : (size_t)ret < run.size ? -EIO : 0;
}

static void write_runs(struct df_writeback *wb, struct df_call *call, struct df_file *file,
                       struct df_inode *inode)
{
    struct df_dirty_run run = df_dirty_next(&inode->dirty, 0);

    while (run.size > 0) {
        int error = write_run(wb, call, file, run);

        if (error < 0)
            note_error(inode, error);
        run = df_dirty_next(&inode->dirty, run.offset + (off_t)run.size);
    }
}

/* The time of the last write, which is ours. A plugin that keeps no times has nothing to be told,
 * and a file that has no name any more may have nobody to be told of. */
static void tell_time(struct df_writeback *wb, struct df_call *call, struct df_file *file,
                      struct df_inode *inode)
{
    const struct df_where itself = {.base = file, .name = ""};
    const struct df_setattr set = {.valid = DF_SET_MTIME, .mtime = inode->modified};
    ssize_t ret = -EINTR;

    for (int i = 0; i < TRIES && ret == -EINTR; i++)
        ret = df_call_result(call, wb->below->ops->setattr(wb->below, call, &itself, &set, NULL));
    if (ret < 0 && ret != -ENOSYS && ret != -ENOENT)
        note_error(inode, (int)ret);
}

static void hand_over(struct df_writeback *wb, struct df_thread *thread, struct df_inode *inode)
{
    struct df_file *file = writer_of(inode);
    struct df_call call;

    if (!file) { /* the last writer hands over before it goes */
        note_error(inode, -EIO);
        return;
    }
    df_call_start(&call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    call.caller = &wb->self;
    call.writes_back = true;
    call.placing = DF_PLACED_THERE;
    write_runs(wb, &call, file, inode);
    tell_time(wb, &call, file, inode);
}

void df_inode_drop(struct df_writeback *wb, struct df_inode *inode)
{
    atomic_fetch_sub(&wb->server.room->used, inode->dirty.pages);
    df_dirty_clear(&inode->dirty);
    disown(wb, inode);
}

void df_inode_hand_over(struct df_writeback *wb, struct df_thread *thread, struct df_inode *inode)
{
    const struct df_writeback_server *server = &wb->server;
    uint32_t errors = inode->errors;
    bool heard;

    if (!atomic_load(&inode->owned))
        return;
    heard = df_pool_hear(false); /* whose call this is has no say in what others wrote */
    df_cacher_begin(server->cacher, server->index, DF_CACHE_FILE);
    hand_over(wb, thread, inode);
    df_inode_drop(wb, inode);
    df_cacher_end(server->cacher, server->index, DF_CACHE_FILE, inode->ino);
    df_pool_hear(heard);
    if (inode->errors != errors) /* what readers were shown is not in the file */
        df_call_tell_change();
}

void df_inode_clean(struct df_writeback *wb, struct df_thread *thread, struct df_inode *inode)
{
    pthread_mutex_lock(&inode->lock);
    df_inode_hand_over(wb, thread, inode);
    pthread_mutex_unlock(&inode->lock);
}

/* ---- what has become old --------------------------------------------------------------------- */

/* One that has been owned since then or for longer, with a reference; NULL: there is none. */
static struct df_inode *find_old(struct df_writeback *wb, int64_t since)
{
    struct df_inode *inode;

    pthread_mutex_lock(&wb->lock);
    for (inode = wb->first_owned; inode && inode->since > since; inode = inode->next_owned)
        ;
    if (inode)
        inode->refs++;
    pthread_mutex_unlock(&wb->lock);
    return inode;
}

static void clean_old(struct df_writeback *wb, struct df_thread *thread, int64_t since)
{
    struct df_inode *inode;

    while ((inode = find_old(wb, since))) {
        df_inode_clean(wb, thread, inode);
        df_inode_put(wb, inode);
    }
}

/* A mount that is closing needs nothing: its files are closed, and each close hands over. */
static void clean_inside(struct df_writeback *wb, int64_t since)
{
    int error;
    struct df_thread *thread;

    if (atomic_load(&wb->owned) == 0 || !(thread = df_gate_enter(&error)))
        return;
    if (df_gate_pin(thread, (struct df_mount *)wb->server.mount, wb->server.id))
        clean_old(wb, thread, since);
    df_gate_leave(thread);
}

void df_writeback_sync(struct df_writeback *wb)
{
    clean_inside(wb, df_clock());
}

/* Sleeps for a period, or until it is called. False: it is over. *hurry: all is to be cleaned. */
static bool await(struct df_writeback *wb, bool *hurry)
{
    struct timespec until;
    bool ending;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PERIOD_S;
    pthread_mutex_lock(&wb->waking);
    while (!wb->hurry && !wb->ending && error == 0)
        error = pthread_cond_timedwait(&wb->wake, &wb->waking, &until);
    *hurry = wb->hurry;
    wb->hurry = false;
    ending = wb->ending;
    pthread_mutex_unlock(&wb->waking);
    return !ending;
}

static void *clean_up(void *arg)
{
    struct df_writeback *wb = arg;
    bool hurry;

    while (await(wb, &hurry))
        clean_inside(wb, hurry ? df_clock() : df_clock() - OLD_NS);
    return NULL;
}

void df_writeback_hurry(struct df_writeback *wb)
{
    pthread_mutex_lock(&wb->waking);
    wb->hurry = true;
    pthread_cond_signal(&wb->wake);
    pthread_mutex_unlock(&wb->waking);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void init_locks(struct df_writeback *wb)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&wb->lock, NULL);
    pthread_mutex_init(&wb->waking, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&wb->wake, &attr);
    pthread_condattr_destroy(&attr);
}

void df_writeback_free(struct df_writeback *wb)
{
    if (!wb)
        return;
    pthread_mutex_destroy(&wb->lock);
    pthread_mutex_destroy(&wb->waking);
    pthread_cond_destroy(&wb->wake);
    free(wb);
}

/* No file is open any more, so nothing is kept. Its memory stays: others may call it. */
static void destroy(struct df_fs *fs)
{
    struct df_writeback *wb = df_writeback_of(fs);

    pthread_mutex_lock(&wb->waking);
    wb->ending = true;
    pthread_cond_signal(&wb->wake);
    pthread_mutex_unlock(&wb->waking);
    pthread_join(wb->thread, NULL);
    wb->below->ops->destroy(wb->below);
}

struct df_fs *df_writeback_wrap(struct df_fs *below, void *arg)
{
    struct df_writeback_server *server = arg;
    struct df_writeback *wb = calloc(1, sizeof(*wb));

    if (!wb)
        return NULL;
    df_ops_complete(&wb->table, &df_writeback_ops);
    wb->table.destroy = destroy;
    wb->fs.ops = &wb->table;
    wb->below = below;
    init_locks(wb);
    wb->server = *server;
    wb->self = (struct df_caller){.uid = geteuid(),
                                  .gid = getegid(),
                                  .real_uid = getuid(),
                                  .real_gid = getgid(),
                                  .capable = true,
                                  .size_limit = INT64_MAX};
    if (df_masked_thread_create(&wb->thread, NULL, clean_up, wb) != 0) {
        df_writeback_free(wb);
        return NULL;
    }
    server->made = wb;
    return &wb->fs;
}
