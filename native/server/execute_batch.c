/*
 * execute_batch.c - many reads in one message: runs of one file system are one op.
 */
#include <errno.h>

#include "server/server_private.h"

#define BATCH_RUN 64

struct batch {
    struct df_message_extent *extents; /* in the payload: the results go there */
    char *bytes;                       /* of the next extent */
    size_t room;                       /* bytes left behind it */
    struct df_extent run[BATCH_RUN];
    struct df_message_extent *from[BATCH_RUN];
    uint64_t handles[BATCH_RUN];
    size_t count;
};

static int64_t read_run(struct df_work *w, struct batch *b)
{
    struct df_cacher *cacher = &w->server->cacher;
    enum df_cache_change change = df_execute_reading(w);
    struct df_fs *fs = b->run[0].file->fs;
    size_t shown = w->index < DF_MOUNT_COUNT && change == DF_CACHE_FILE ? b->count : 0;
    uint64_t inos[BATCH_RUN];
    int64_t ret;

    for (size_t i = 0; i < shown; i++) {
        inos[i] = df_execute_ino_of(w, b->run[i].file, b->handles[i]);
        df_cacher_begin(cacher, w->index, change);
    }
    ret = df_call_result(&w->call, fs->ops->read_batch(fs, &w->call, b->run, b->count));
    for (size_t i = 0; i < shown; i++)
        df_cacher_end(cacher, w->index, change, inos[i]);
    return ret;
}

static void batch_flush(struct df_work *w, struct batch *b)
{
    int64_t ret;

    if (b->count == 0)
        return;
    w->call.mount = atomic_load_explicit(&b->run[0].file->mount, memory_order_relaxed);
    w->index = df_server_index(w->server, w->call.mount->id);
    ret = read_run(w, b);
    for (size_t i = 0; i < b->count; i++) {
        b->from[i]->result = ret < 0 ? ret : b->run[i].result;
        if (b->from[i]->result > 0)
            df_watch_touch(&w->server->watcher, b->handles[i], DF_WATCH_ACCESS);
        df_file_put(w->thread, b->run[i].file);
    }
    b->count = 0;
}

/* One extent more; false: it does not fit in the payload. */
static bool batch_add(struct df_work *w, struct batch *b, struct df_message_extent *extent)
{
    struct df_message_extent e = *extent;
    size_t size = (e.size + 7) & ~(size_t)7;
    struct df_file *file;

    if (e.size > DF_PAYLOAD_SIZE || size > b->room)
        return false;
    file = df_files_get(&w->server->files, e.handle);
    if (file && !df_execute_may_read(file)) {
        df_file_put(w->thread, file);
        file = NULL;
    }
    extent->result = file ? 0 : -EBADF;
    if (file) {
        df_execute_note_read(w, e.handle);
        if (b->count == BATCH_RUN || (b->count > 0 && b->run[0].file->fs != file->fs))
            batch_flush(w, b);
        b->from[b->count] = extent;
        b->handles[b->count] = e.handle;
        b->run[b->count++] = (struct df_extent){file, b->bytes, e.size, e.offset, 0};
    }
    b->bytes += size;
    b->room -= size;
    return true;
}

int64_t df_execute_read_batch(struct df_work *w)
{
    struct batch b = {.extents = (struct df_message_extent *)w->area->payload};
    uint64_t count = w->message.args.read_batch.count;
    bool fits = true;

    if (count > DF_PAYLOAD_SIZE / sizeof(b.extents[0]))
        return -EPROTO;
    b.bytes = (char *)&b.extents[count];
    b.room = DF_PAYLOAD_SIZE - count * sizeof(b.extents[0]);
    for (uint64_t i = 0; i < count && fits; i++)
        fits = batch_add(w, &b, &b.extents[i]);
    batch_flush(w, &b);
    return fits ? 0 : -EPROTO;
}
