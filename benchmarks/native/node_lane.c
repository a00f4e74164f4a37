/*
 * node_lane.c - what the node lane adds to a plugin's own operations: ns a call, with operations
 * that do next to nothing, called straight through struct df_ops (no paths are routed, no
 * descriptors are kept: that is the core's).
 *
 *     node_lane
 *
 * The ns include the plugin's operations, which only reply. Rounds with and without the call
 * alternate and what the gate and the frame of a call cost, which are the core's, is taken off.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/call.h"
#include "core/caller.h"
#include "core/file.h"
#include "core/gate.h"
#include "host/lowlevel.h"

#define ROUNDS 201
#define BATCH  2000 /* short against a turn on a processor that others use too */

static double timeout = 1e9;

/* ---- the plugin ---- */

static const char page[4096];

static struct fuse_entry_param entry_of(fuse_ino_t ino, mode_t mode)
{
    struct fuse_entry_param entry;

    memset(&entry, 0, sizeof(entry));
    entry.ino = ino;
    entry.attr.st_ino = ino;
    entry.attr.st_mode = mode;
    entry.attr.st_nlink = 1;
    entry.attr_timeout = entry.entry_timeout = timeout;
    return entry;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;

    (void)parent;
    if (name[0] == 'n') {
        df_reply_err(req, ENOENT);
        return;
    }
    entry = entry_of(name[0] == 'd' ? 2 : 3, name[0] == 'd' ? S_IFDIR | 0755 : S_IFREG | 0644);
    df_reply_entry(req, &entry);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    (void)ino, (void)count;
    df_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_entry_param entry = entry_of(ino, ino == 3 ? S_IFREG | 0644 : S_IFDIR | 0755);

    (void)fi;
    df_reply_attr(req, &entry.attr, timeout);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->fh = ino;
    df_reply_open(req, fi);
}

static void op_done(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    df_reply_err(req, 0);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    static _Thread_local fuse_ino_t next = 1000;
    struct fuse_entry_param entry = entry_of(next++, mode);

    (void)parent, (void)name;
    df_reply_create(req, &entry, fi);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    df_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    (void)ino, (void)off, (void)fi;
    df_reply_buf(req, page, size);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino, (void)buf, (void)off, (void)fi;
    df_reply_write(req, size);
}

static const struct fuse_lowlevel_ops ops = {
    .lookup = op_lookup,
    .forget = op_forget,
    .getattr = op_getattr,
    .open = op_open,
    .flush = op_done,
    .release = op_done,
    .create = op_create,
    .unlink = op_unlink,
    .read = op_read,
    .write = op_write,
};

/* ---- the calls ---- */

static struct df_fs *fs;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct df_where where_of(const char *name, uint32_t flags)
{
    return (struct df_where){.name = name, .len = (uint32_t)strlen(name), .flags = flags};
}

struct worker {
    struct df_thread *thread;
    struct df_call call;
    struct df_file file;
    const char *name;
};

static void begin(struct worker *w)
{
    int error;

    w->thread = df_gate_enter(&error);
    df_call_start(&w->call, w->thread, NULL);
}

static void finish(struct worker *w)
{
    df_gate_leave(w->thread);
}

static void do_stat(struct worker *w)
{
    struct df_where where = where_of(w->name, 0);
    struct stat st;

    if (fs->ops->getattr(fs, &w->call, &where, &st) != 0)
        abort();
}

static void do_open(struct worker *w)
{
    struct df_where where = where_of(w->name, 0);

    if (fs->ops->open(fs, &w->call, &where, &w->file, O_RDWR, 0) != 0)
        abort();
    fs->ops->flush(fs, &w->call, &w->file, 0);
    fs->ops->release(fs, &w->call, &w->file);
}

static void do_create(struct worker *w)
{
    struct df_where where = where_of("/dir/name", 0),
                    entry = where_of("/dir/name", DF_WHERE_PARENT);

    if (fs->ops->open(fs, &w->call, &where, &w->file, O_RDWR | O_CREAT, 0644) != 0)
        abort();
    fs->ops->flush(fs, &w->call, &w->file, 0);
    fs->ops->release(fs, &w->call, &w->file);
    if (fs->ops->unlink(fs, &w->call, &entry) != 0)
        abort();
}

static void do_read(struct worker *w)
{
    char byte[64];
    struct iovec iov = {byte, sizeof(byte)};

    if (fs->ops->read(fs, &w->call, &w->file, &iov, 1, 0) != sizeof(byte))
        abort();
}

static void do_write(struct worker *w)
{
    char byte[64];
    struct iovec iov = {byte, sizeof(byte)};
    off_t offset = 0;

    if (fs->ops->write(fs, &w->call, &w->file, &iov, 1, &offset) != sizeof(byte))
        abort();
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double time_batch(struct worker *w, void (*body)(struct worker *))
{
    double start = now();

    for (int i = 0; i < BATCH; i++) {
        begin(w);
        body(w);
        finish(w);
    }
    return (now() - start) / BATCH;
}

static void do_nothing(struct worker *w)
{
    (void)w;
}

/* The gate and the call's frame belong to the core: they are measured and taken off. */
static void measure(const char *label, struct worker *w, void (*body)(struct worker *))
{
    double full[ROUNDS], frame[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        full[i] = time_batch(w, body);
        frame[i] = time_batch(w, do_nothing);
    }
    qsort(full, ROUNDS, sizeof(double), by_value);
    qsort(frame, ROUNDS, sizeof(double), by_value);
    printf("%-34s %7.1f ns\n", label, full[ROUNDS / 10] - frame[ROUNDS / 10]);
}

struct pair {
    struct worker worker;
    void (*body)(struct worker *);
    double ns;
    pthread_barrier_t *start;
};

static void *run_pair(void *arg)
{
    struct pair *p = arg;
    double best = 1e9;

    pthread_barrier_wait(p->start);
    for (int i = 0; i < ROUNDS; i++) {
        double ns = time_batch(&p->worker, p->body);

        best = ns < best ? ns : best;
    }
    p->ns = best;
    return NULL;
}

static void measure_threads(const char *label, const char *a, const char *b,
                            void (*body)(struct worker *))
{
    struct pair pairs[2] = {{.worker.name = a, .body = body}, {.worker.name = b, .body = body}};
    pthread_barrier_t start;
    pthread_t threads[2];

    for (int count = 1; count <= 2; count++) {
        pthread_barrier_init(&start, NULL, (unsigned)count);
        for (int i = 0; i < count; i++) {
            pairs[i].start = &start;
            pthread_create(&threads[i], NULL, run_pair, &pairs[i]);
        }
        for (int i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
        printf("%-34s %7.1f ns  (%d threads, with the gate)\n", label, pairs[0].ns, count);
    }
}

int main(void)
{
    static struct worker w = {.name = "/dir/file"};
    struct fuse_conn_info conn = {0};
    struct df_where where = where_of("/dir/file", 0);

    fs = df_lowlevel_new(&ops, sizeof(ops), NULL, NULL, NULL);
    df_lowlevel_init(fs, &conn);
    measure("stat, warm, depth 2", &w, do_stat);
    w.name = "/dir";
    measure("stat, warm, depth 1", &w, do_stat);
    w.name = "/dir/file";
    measure("open + flush + close, depth 2", &w, do_open);
    measure("create + close + unlink, depth 2", &w, do_create);
    begin(&w);
    fs->ops->open(fs, &w.call, &where, &w.file, O_RDWR, 0);
    finish(&w);
    measure("pread of 64 bytes", &w, do_read);
    measure("pwrite of 64 bytes", &w, do_write);
    begin(&w);
    fs->ops->release(fs, &w.call, &w.file);
    finish(&w);
    measure_threads("stat, one file", "/dir/file", "/dir/file", do_stat);
    measure_threads("open + close, two files", "/dir/file", "/dir/e", do_open);
    df_lowlevel_free(fs);
    return 0;
}
