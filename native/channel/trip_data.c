/*
 * trip_data.c - read, write and the batch read: trips that move bytes between a payload and
 * scattered memory. Freestanding.
 */
#include <errno.h>

#include "channel/cache.h"
#include "channel/frames.h"
#include "channel/letter.h"
#include "channel/past.h"
#include "channel/sys.h"

/* A place in a vector. */
struct cursor {
    const struct iovec *iov;
    int count;
    size_t skip; /* bytes of iov[0] that are done */
};

static size_t left_in(const struct cursor *c)
{
    size_t sum = 0;

    for (int i = 0; i < c->count; i++)
        sum += c->iov[i].iov_len;
    return sum - (c->count > 0 ? c->skip : 0);
}

/* The next run of bytes, at most `size`; *memory says where. */
static size_t next_run(struct cursor *c, size_t size, void **memory)
{
    size_t run;

    while (c->count > 0 && c->iov->iov_len == c->skip) {
        c->iov++;
        c->count--;
        c->skip = 0;
    }
    if (c->count == 0)
        return 0;
    run = c->iov->iov_len - c->skip;
    if (run > size)
        run = size;
    *memory = (char *)c->iov->iov_base + c->skip;
    c->skip += run;
    return run;
}

/* The cursor stands behind what could be moved of the run. False: memory of it is not there. */
static bool move_on(struct cursor *c, size_t run, size_t moved)
{
    c->skip -= run - moved;
    return moved == run;
}

/* Moves `size` bytes from the payload to the vector. How many: less, up to the very byte, if memory
 * is not there, as Linux moves them. */
static size_t take_bytes(struct cursor *c, const char *payload, size_t size)
{
    size_t done = 0, run, moved;
    void *memory;

    while (done < size && (run = next_run(c, size - done, &memory)) > 0) {
        moved = df_channel_user_copy_some(memory, payload + done, run);
        done += moved;
        if (!move_on(c, run, moved))
            break;
    }
    return done;
}

/* The same from the vector. What does not begin a line goes the usual way. */
static size_t put_bytes(const struct df_segment *segment, struct cursor *c, char *payload,
                        size_t size)
{
    size_t done = 0, run, moved;
    void *memory;

    while (done < size && (run = next_run(c, size - done, &memory)) > 0) {
        moved = done % 64 == 0 && df_past_pays(segment, run)
                    ? df_channel_user_copy_past(payload + done, memory, run)
                    : df_channel_user_copy_some(payload + done, memory, run);
        done += moved;
        if (!move_on(c, run, moved))
            break;
    }
    return done;
}

/* ---- what is kept in the segment ------------------------------------------------------------- */

/* The open file if something of it may be kept; a server that is gone answers nothing any more. */
static struct df_ofd *kept_file(const struct df_trip *trip, uint64_t file, uint32_t *content)
{
    const struct df_segment *segment = trip->link->segment;
    struct df_ofd *ofd = segment->frames_size == 0 || !df_link_alive(trip->link)
                             ? NULL
                             : df_segment_ofd(segment, file);

    *content = ofd ? atomic_load_explicit(&ofd->content, memory_order_acquire) : 0;
    return *content ? ofd : NULL;
}

/* The entry is still that file's: so what was read is its own. */
static bool is_still(const struct df_ofd *ofd, uint64_t file)
{
    return atomic_load_explicit(&ofd->handle, memory_order_relaxed) == file;
}

/* What fstat has said since the open is of before this read (server/execute_open.c). */
static void end_answer(const struct df_segment *segment, uint32_t begun)
{
    uint32_t stripe = (begun - DF_OFD_BRINGS) % DF_CACHE_STRIPES;

    atomic_fetch_add(&df_cache_of(segment)->stripes[stripe], 1);
}

/* The server learns whether opens are followed by reads. One store for each open; of another file
 * that got the entry just now it does no harm. */
static void note_read(const struct df_segment *segment, struct df_ofd *ofd)
{
    uint32_t begun = atomic_load_explicit(&ofd->begun, memory_order_relaxed);

    if (begun == DF_OFD_BEGUN)
        return;
    if (begun >= DF_OFD_BRINGS)
        end_answer(segment, begun);
    atomic_store_explicit(&ofd->begun, DF_OFD_BEGUN, memory_order_relaxed);
}

/* Moves at most `size` bytes out of a frame. False: memory of the caller's is not there. */
static bool move_frame(struct cursor *c, const char *bytes, size_t size)
{
    void *memory;
    size_t run;

    for (size_t done = 0; done < size && (run = next_run(c, size - done, &memory)) > 0; done += run)
        if (df_channel_user_copy_unsure(memory, bytes + done, run) < 0)
            return false;
    return true;
}

/* Reads page after page without a trip, as far as they are kept; `confirmed` as in
 * df_frame_page(). How many bytes; *end: there are no more in the file. The cursor stands behind
 * them. */
static size_t read_kept(const struct df_trip *trip, uint64_t file, uint64_t confirmed,
                        struct cursor *c, size_t size, off_t offset, bool *end)
{
    uint32_t content;
    struct df_ofd *ofd = kept_file(trip, file, &content);
    size_t done = 0;

    while (ofd && done < size && !*end) {
        size_t in = (size_t)(offset + (off_t)done) % DF_FRAME_SIZE, part = size - done;
        uint64_t page = (uint64_t)(offset + (off_t)done) / DF_FRAME_SIZE;
        struct cursor ahead = *c;
        struct df_frame_view view;
        bool last;

        if (!df_frame_page(df_frames_of(trip->link->segment), content, confirmed, page, &view))
            break;
        last = view.used < in + part && view.used < DF_FRAME_SIZE;
        if (part > DF_FRAME_SIZE - in)
            part = DF_FRAME_SIZE - in;
        if (view.used < in + part)
            part = view.used > in ? view.used - in : 0;
        if (!move_frame(&ahead, view.bytes + in, part) || !df_frame_same(&view) ||
            !is_still(ofd, file))
            break;
        *c = ahead;
        *end = last;
        done += part;
        note_read(trip->link->segment, ofd);
    }
    return done;
}

/* The id of the content of which the bytes from `offset` on are kept, whether or not there is time
 * to believe them; 0: they are not. One page is looked for: what is missing behind it is read as
 * usual. */
static uint64_t held(const struct df_trip *trip, uint64_t file, off_t offset)
{
    const struct df_segment *segment = trip->link->segment;
    uint64_t page = (uint64_t)offset / DF_FRAME_SIZE, id;
    struct df_frame_view view;
    uint32_t content;

    if (!kept_file(trip, file, &content) || offset < 0)
        return 0;
    id = df_content_id(segment, file);
    return id && df_frame_page(df_frames_of(segment), content, id, page, &view) ? id : 0;
}

/* ---- read ------------------------------------------------------------------------------------ */

/* A read of a file: what is left of it. */
struct reader {
    struct cursor to;
    size_t left;
    off_t offset;
    bool end;   /* of the file, of what is to be had of it, or of the memory for it */
    bool again; /* what is kept of it was gone when it was to be copied: it is not asked for */
};

/* What the server says is kept is copied from there. */
static ssize_t take_held(const struct df_trip *trip, uint64_t file, struct reader *r, uint64_t id,
                         size_t size)
{
    size_t got = read_kept(trip, file, id, &r->to, size, r->offset, &r->end);

    r->again = got < size && !r->end;
    return (ssize_t)got;
}

/* What has come goes where the caller wants it. How many bytes there was memory for, or -errno. */
static int64_t take_answer(const struct df_letter *l, struct cursor *to, int64_t result,
                           size_t size)
{
    uint64_t at = l->message->out.read.at;
    size_t taken;

    if (result <= 0 || (size_t)result > size)
        return result;
    if (at > DF_PAYLOAD_SIZE - (size_t)result)
        return -EPROTO;
    taken = take_bytes(to, l->area->payload + at, (size_t)result);
    return taken > 0 ? (int64_t)taken : -EFAULT;
}

/* At most as many bytes as a message holds, or as there is room for. */
static ssize_t read_piece(struct df_trip *trip, uint64_t file, struct reader *r)
{
    size_t size = r->left < DF_PAYLOAD_SIZE ? r->left : DF_PAYLOAD_SIZE;
    uint64_t id = size == 0 || r->again ? 0 : held(trip, file, r->offset);
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_read, file);

    if (error < 0)
        return error;
    size = df_letter_room(&l, size);
    l.message->args.read.size = size;
    l.message->args.read.offset = r->offset;
    l.message->args.read.held = id;
    l.message->args.read.sent = r->again;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    id = result == 0 ? l.message->out.read.kept : 0;
    if (id) {
        df_letter_finish(&l, 0);
        return take_held(trip, file, r, id, size);
    }
    result = take_answer(&l, &r->to, result, size);
    r->end = result >= 0 && (size_t)result < size;
    return df_letter_finish(&l, result);
}

ssize_t df_trip_read(struct df_trip *trip, uint64_t file, const struct iovec *iov, int iovcnt,
                     off_t offset)
{
    struct reader r = {.to = {iov, iovcnt, 0}, .offset = offset};
    ssize_t ret;

    r.left = left_in(&r.to);
    ret = (ssize_t)read_kept(trip, file, 0, &r.to, r.left, offset, &r.end);
    if (r.end || ((size_t)ret == r.left && ret > 0)) {
        df_link_hit(trip->link);
        return ret;
    }
    r.left -= (size_t)ret;
    r.offset += ret;
    do {
        ret = read_piece(trip, file, &r);
        if (ret < 0)
            return r.offset > offset ? r.offset - offset : ret;
        r.left -= (size_t)ret;
        r.offset += ret;
    } while (r.left > 0 && !r.end);
    return r.offset - offset;
}

/* ---- read in two halves ---------------------------------------------------------------------- */

void df_trip_read_ask(struct df_trip *trip, uint64_t file, size_t size, off_t offset,
                      struct df_trip_early *early)
{
    struct df_asked asked;
    struct df_letter l;

    early->slot = NULL;
    if (size == 0 || size > DF_PAYLOAD_SIZE || held(trip, file, offset) != 0 ||
        df_letter_begin_file(&l, trip, DF_MESSAGE_read, file) < 0)
        return;
    size = df_letter_room(&l, size);
    l.message->args.read.size = size;
    l.message->args.read.offset = offset;
    l.message->args.read.held = 0;
    l.message->args.read.sent = false;
    asked = df_letter_ask(&l);
    *early = (struct df_trip_early){l.slot, size, asked.woken, asked.behind};
}

/* The wait begins now: what was done since the question may have taken longer than any. What is
 * kept has not come: it is read as usual. */
ssize_t df_trip_read_use(struct df_trip *trip, const struct df_trip_early *early, df_trip_user *use,
                         void *with)
{
    struct df_asked asked = {
        .at = df_sys_ticks(),
        .woken = early->woken,
        .behind = early->behind,
        .spins = atomic_load_explicit(&trip->link->segment->spinning, memory_order_relaxed),
    };
    struct df_letter l = df_letter_of(trip, early->slot);
    int64_t result;
    uint64_t at;
    int error;

    result = df_letter_await(&l, asked, &error);
    if (error < 0)
        return error;
    at = l.message->out.read.at;
    if (result > 0 && ((size_t)result > early->size || at > DF_PAYLOAD_SIZE - (size_t)result))
        result = -EPROTO;
    else if (result > 0)
        result = use(with, l.area->payload + at, (size_t)result);
    return df_letter_finish(&l, result);
}

static ssize_t copy_there(void *to, const void *bytes, size_t size)
{
    long moved = to ? df_channel_user_copy(to, bytes, size) : 0;

    return moved < 0 ? moved : (ssize_t)size;
}

ssize_t df_trip_read_take(struct df_trip *trip, const struct df_trip_early *early, void *to)
{
    return df_trip_read_use(trip, early, copy_there, to);
}

/* ---- write ----------------------------------------------------------------------------------- */

/* The file that is written to, its flags and where in it. */
struct writer {
    uint64_t file;
    int flags;
    enum df_placing placing;
    off_t at;
};

/* *size: how many bytes were sent, at most as many as read_piece() would. */
static ssize_t write_piece(struct df_trip *trip, struct writer *w, struct cursor *c, size_t *size)
{
    struct df_letter l;
    int64_t result;
    size_t room;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_write, w->file);

    if (error < 0)
        return error;
    room = df_letter_room(&l, *size);
    *size = put_bytes(trip->link->segment, c, l.area->payload, room);
    if (*size == 0 && room > 0)
        return df_letter_finish(&l, -EFAULT);
    l.message->args.write.size = *size;
    l.message->args.write.offset = w->at;
    l.message->args.write.flags = w->flags;
    l.message->args.write.placing = (uint8_t)w->placing;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    w->at = l.message->out.offset;
    return df_letter_finish(&l, result);
}

ssize_t df_trip_write(struct df_trip *trip, uint64_t file, int flags, enum df_placing placing,
                      const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct writer w = {file, flags, placing, *offset};
    struct cursor c = {iov, iovcnt, 0};
    size_t left = left_in(&c);
    ssize_t done = 0;

    do {
        size_t size = left < DF_PAYLOAD_SIZE ? left : DF_PAYLOAD_SIZE;
        ssize_t ret = write_piece(trip, &w, &c, &size);

        if (ret < 0)
            return done > 0 ? done : ret;
        if (done == 0)
            *offset = w.at;
        done += ret;
        w.at += ret;
        left -= size;
        if ((size_t)ret < size)
            break;
    } while (left > 0);
    return done;
}

/* ---- batch ----------------------------------------------------------------------------------- */

#define BATCH_MAX 1024 /* extents of one message */

static size_t rounded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* What is kept needs no room in a message. */
static bool read_extent_kept(struct df_trip *trip, struct df_trip_extent *extent)
{
    struct iovec iov = {extent->buf, extent->size};
    struct cursor c = {&iov, 1, 0};
    bool end = false;
    size_t got = read_kept(trip, extent->file, 0, &c, extent->size, extent->offset, &end);

    if (got < extent->size && !end)
        return false;
    extent->result = (ssize_t)got;
    df_link_hit(trip->link);
    return true;
}

/* How many extents go into one message; *used: bytes of its payload. */
static size_t fit(const struct df_trip_extent *extents, size_t count, size_t *used)
{
    size_t n = 0;

    for (*used = 0; n < count && n < BATCH_MAX; n++) {
        size_t size = sizeof(struct df_message_extent) + rounded(extents[n].size);

        if (*used + size > DF_PAYLOAD_SIZE)
            break;
        *used += size;
    }
    return n;
}

static void read_alone(struct df_trip *trip, struct df_trip_extent *extent)
{
    struct iovec iov = {extent->buf, extent->size};

    extent->result = df_trip_read(trip, extent->file, &iov, 1, extent->offset);
}

static void put_extents(struct df_letter *l, const struct df_trip_extent *extents, size_t count)
{
    struct df_message_extent *to = (struct df_message_extent *)l->area->payload;

    for (size_t i = 0; i < count; i++)
        to[i] =
            (struct df_message_extent){extents[i].file, extents[i].size, extents[i].offset, -EIO};
    l->message->args.read_batch.count = count;
}

static void take_extents(struct df_letter *l, struct df_trip_extent *extents, size_t count)
{
    const struct df_message_extent *from = (const struct df_message_extent *)l->area->payload;
    const char *bytes = (const char *)(from + count);

    for (size_t i = 0; i < count; i++) {
        int64_t result = from[i].result;
        long moved = 0;

        if (result > 0 && (size_t)result <= extents[i].size)
            moved = df_channel_user_copy(extents[i].buf, bytes, (size_t)result);
        extents[i].result = moved < 0 ? moved : result;
        bytes += rounded(extents[i].size);
    }
}

static int read_together(struct df_trip *trip, struct df_trip_extent *extents, size_t count,
                         size_t size)
{
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin(&l, trip, DF_MESSAGE_read_batch);

    if (error < 0)
        return error;
    if (df_letter_room(&l, size) < size)
        return (int)df_letter_finish(&l, -ENOMEM);
    put_extents(&l, extents, count);
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result == 0)
        take_extents(&l, extents, count);
    return (int)df_letter_finish(&l, result);
}

int df_trip_read_batch(struct df_trip *trip, struct df_trip_extent *extents, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t size, n = fit(extents + done, count - done, &size);
        int ret = n == 0 ? -ENOMEM : 0;

        if (read_extent_kept(trip, &extents[done])) {
            done++;
            continue;
        }
        if (n > 0)
            ret = read_together(trip, extents + done, n, size);
        if (ret == -ENOMEM) /* no room for it in one message: in several */
            read_alone(trip, &extents[done++]);
        else if (ret < 0)
            return ret;
        else
            done += n;
    }
    return 0;
}
