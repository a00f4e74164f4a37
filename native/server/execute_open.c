/*
 * execute_open.c - what an open brings with it: the answer to the fstat and the bytes of the read
 * that mostly come next. They are found in shared memory then, and are no trips
 * (docs/decisions/058).
 *
 * Only of what may be kept at all (a file with a content, a mount whose attributes have a time).
 * The bytes: of small files opened for reading, all of them, as long as such files of the mount are
 * read by those who open them. That is judged at each close, whether or not the open had brought
 * them.
 */
#include <fcntl.h>

#include "core/clock.h"
#include "server/server_private.h"

#define CALL       DF_EXECUTE_CALL

#define SMALL      (32 << 10) /* bytes of a file that an open brings at most */
#define QUICK_NS   30000 /* a read that takes no longer is no more than a part of the open's trip */
#define READS_MAX  8 /* of df_served.reads: up by one for an open that was followed by a read, */
#define READS_LESS 2 /* down by this for one that was not */
#define READS_GOOD 3 /* from here on opens bring bytes */

/* ---- experience ------------------------------------------------------------------------------ */

/* Updates that are lost do no harm. */
void df_execute_judge(struct df_server *server, const struct df_last_file *last)
{
    unsigned index = last->judged ? df_server_index(server, last->mount) : DF_MOUNT_COUNT;
    uint32_t before, after;

    if (index == DF_MOUNT_COUNT)
        return;
    before = atomic_load_explicit(&server->mounts[index].reads, memory_order_relaxed);
    if (last->read)
        after = before < READS_MAX ? before + 1 : before;
    else
        after = before > READS_LESS ? before - READS_LESS : 0;
    if (after != before)
        atomic_store_explicit(&server->mounts[index].reads, after, memory_order_relaxed);
}

/* A read of it would be one trip that brings all. */
static bool is_small(const struct df_file *file, const struct stat *st)
{
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    return file->kind == DF_KIND_REGULAR && (flags & O_ACCMODE) != O_WRONLY && st->st_size > 0 &&
           st->st_size <= SMALL;
}

/* Whoever opened this file will read it, for all we know. */
static bool expects_read(struct df_work *w, const struct df_file *file, const struct stat *st)
{
    struct df_served *served = &w->server->mounts[w->index];

    if (!is_small(file, st))
        return false;
    atomic_store_explicit(&df_files_entry(&w->server->files, w->opened)->judged, true,
                          memory_order_relaxed);
    return atomic_load_explicit(&served->reads, memory_order_relaxed) >= READS_GOOD;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* What was read when the file was open the last time is there still. */
static bool has_begin(struct df_work *w, uint32_t content)
{
    struct df_frame_view view;

    return df_frame_page(w->server->framer.frames, content, 0, 0, &view);
}

/* What is had quickly is kept when it is asked for again; until then just long enough to be read:
 * in memory that the processors have at hand, where most of it comes and goes. */
static void keep_all(struct df_work *w, const struct df_frames_ticket *ticket, size_t size,
                     bool end, bool quick)
{
    struct df_framer *framer = &w->server->framer;

    if (quick && !df_framer_again(framer, ticket, 0, size))
        df_framer_keep_briefly(framer, ticket, w->area->payload, size, end);
    else
        df_framer_keep(framer, ticket, 0, w->area->payload, size, end);
}

/* As df_execute_read() of all there is; an error is of no interest to who has only opened. False:
 * the file's size is not what st says. */
static bool read_all(struct df_work *w, struct df_file *file, uint32_t content,
                     const struct stat *st)
{
    size_t size = ((size_t)st->st_size / DF_FRAME_SIZE + 1) * DF_FRAME_SIZE; /* and the end */
    struct df_frames_ticket ticket = df_framer_ask(&w->server->framer, w->index, content);
    uint64_t since = df_lent_now(&w->server->framer.lent);
    const char *at = w->area->payload;
    int64_t got, begun = df_clock();

    if (!ticket.valid || df_execute_room(w, size) < size)
        return true;
    got = CALL(lend, file, w->area->payload, size, 0, &at);
    if (got <= 0 || got > st->st_size)
        return false;
    if (at != w->area->payload)
        df_execute_keep_lent(w, &ticket, 0, at, (size_t)got, got == st->st_size, since);
    else
        keep_all(w, &ticket, (size_t)got, got == st->st_size, df_clock() - begun < QUICK_NS);
    return got == st->st_size;
}

/* A read. False: as read_all(). */
static bool bring_bytes(struct df_work *w, struct df_file *file, uint32_t content,
                        const struct stat *st)
{
    enum df_cache_change change = df_execute_reading(w);
    bool same;

    df_cacher_begin(&w->server->cacher, w->index, change);
    same = read_all(w, file, content, st);
    df_cacher_end(&w->server->cacher, w->index, change, st->st_ino);
    return same;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* What getattr says of an open file, and the ticket by which that may be kept. */
struct answer {
    struct df_cacher_ticket ticket;
    struct stat st;
};

/* 0: none, or nothing of it may be believed without a question. */
static uint32_t timely_content_of(struct df_work *w, uint64_t handle)
{
    return df_framer_timeless(&w->server->framer, w->index) ? 0 : df_execute_content_of(w, handle);
}

/* False: it is not to be had, or never to be kept. */
static bool ask(struct df_work *w, struct df_file *file, uint32_t content, struct answer *answer)
{
    answer->ticket = df_cacher_ask(&w->server->cacher, w->index);
    return df_execute_look(w, file, content, &answer->st) && w->call.valid_ns > 0;
}

static void keep(struct df_work *w, uint64_t handle, struct answer *answer)
{
    const struct df_trip_where itself = {.base = handle, .name = ""};

    answer->st.st_dev = w->call.mount->dev;
    df_execute_keep(w, answer->ticket, &itself, 0, &answer->st);
    atomic_store_explicit(&df_files_entry(&w->server->files, handle)->st_ino, answer->st.st_ino,
                          memory_order_relaxed);
}

void df_execute_bring_answer(struct df_work *w, uint64_t handle, struct df_file *file)
{
    uint32_t content = timely_content_of(w, handle);
    struct answer answer;

    if (content && ask(w, file, content, &answer))
        keep(w, handle, &answer);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The answer is of before the bytes were read, as that of an fstat behind an open on Linux: it is
 * kept until the client reads them. */
static void hold_until_read(struct df_work *w, struct answer *answer)
{
    struct df_ofd *ofd = df_segment_ofd(w->server->own.segment, w->opened);

    if (df_execute_reading(w) == DF_CACHE_NOTHING)
        return;
    answer->ticket.changes++; /* that one was ours */
    if (ofd)
        atomic_store_explicit(&ofd->begun, DF_OFD_BRINGS + df_cache_stripe(answer->st.st_ino),
                              memory_order_relaxed);
}

static void bring(struct df_work *w, struct df_file *file, uint32_t content)
{
    struct answer answer;

    if (!ask(w, file, content, &answer))
        return;
    if (expects_read(w, file, &answer.st) && !has_begin(w, content)) {
        if (bring_bytes(w, file, content, &answer.st))
            hold_until_read(w, &answer);
        else if (!ask(w, file, content, &answer))
            return;
    }
    keep(w, w->opened, &answer);
}

void df_execute_bring(struct df_work *w)
{
    uint32_t content = timely_content_of(w, w->opened);
    struct df_file *file = content ? df_files_get(&w->server->files, w->opened) : NULL;

    if (!file) /* nothing of it is kept; or its client was killed, and it is closed already */
        return;
    bring(w, file, content);
    df_file_put(w->thread, file);
}
