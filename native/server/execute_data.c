/*
 * execute_data.c - reading and writing; what of it is kept for all (segment/frames.h).
 *
 * A read whose bytes may be kept asks the plugin for whole pages, and for more if the file is read
 * from one end to the other. Pieces of large files are kept when they are asked for a second time:
 * the first reading costs no copy, and does not push out what is read again and again. What a file
 * system has lent (segment/lent.h) costs none at all: the client is told to look where it lies.
 *
 * Where the plugin allows no time every read comes here. Who has found pages that were kept asks
 * whether they are still those of the file; a getattr tells, and no byte is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "channel/past.h"
#include "channel/sys.h"
#include "server/server_private.h"

#define out_of      df_execute_out
#define CALL        DF_EXECUTE_CALL
#define at_most     df_execute_at_most

#define AHEAD_FIRST (16 << 10)  /* bytes behind what is asked for */
#define AHEAD_MAX   (128 << 10) /* the kernel's default */

/* Of what is lent all is shown that lies between two multiples of so many bytes: showing a page
 * costs a hundredth of the trip that asks for it. */
#define AROUND (64 << 10)

/* ---- whose bytes they are -------------------------------------------------------------------- */

bool df_execute_look(struct df_work *w, struct df_file *file, uint32_t content, struct stat *st)
{
    struct df_where itself = {.base = file, .name = ""};
    int64_t ret;

    w->call.asks_validity = w->call.of_content = true;
    w->call.valid_ns = 0;
    ret = CALL(getattr, &itself, st);
    w->call.asks_validity = w->call.of_content = false;
    if (ret == 0)
        df_framer_believe(&w->server->framer, w->index, content, st, w->call.valid_ns,
                          file->traits & DF_FILE_CHECK);
    return ret == 0;
}

struct df_frames_ticket df_execute_ask(struct df_work *w, uint32_t content, off_t *size)
{
    struct stat st;

    if (!df_execute_look(w, w->files[0], content, &st))
        return (struct df_frames_ticket){.valid = false};
    *size = st.st_size;
    return df_framer_ask(&w->server->framer, w->index, content);
}

/* Such a file's content is asked for by its df_ofd; a writer has one too, to say what it changes.
 */
uint32_t df_execute_content(struct df_work *w, struct df_file *file)
{
    const uint8_t never = DF_FILE_DIRECT | DF_FILE_STREAM | DF_FILE_NONSEEKABLE;
    bool unlisted = file->kind == DF_KIND_DIRECTORY && !(file->traits & DF_FILE_LISTS);
    bool keep = file->traits & DF_FILE_KEEP;
    uint32_t content;
    struct stat st;

    w->bytes.body = file->body;
    if (atomic_load(&file->flags) & (O_PATH | O_DIRECT) || file->traits & never ||
        file->kind == DF_KIND_OTHER)
        return 0;
    if (unlisted)
        return df_framer_open_unlisted(&w->server->framer, w->index, w->message.mount, file->body);
    content = df_framer_open(&w->server->framer, w->index, w->message.mount, file->body, keep);
    if (content && keep && file->traits & DF_FILE_CHECK &&
        !df_execute_look(w, file, content, &st)) {
        df_framer_close(&w->server->framer, content);
        content = df_framer_open(&w->server->framer, w->index, w->message.mount, file->body, false);
    }
    return content;
}

uint32_t df_execute_content_of(struct df_work *w, uint64_t handle)
{
    const struct df_ofd *ofd = df_segment_ofd(w->server->own.segment, handle);
    uint32_t content = ofd ? atomic_load_explicit(&ofd->content, memory_order_relaxed) : 0;

    return content < w->server->framer.count ? content : 0; /* a client can write to it */
}

static void change_file(struct df_work *w, enum df_frames_change kind, unsigned file)
{
    uint64_t handle =
        w->message.files[file] ? w->message.files[file] : w->message.wheres[file].base;

    w->bytes.kind = kind;
    w->bytes.content = df_execute_content_of(w, handle);
    w->bytes.body = w->files[file] ? w->files[file]->body : 0;
}

void df_execute_bytes(struct df_work *w)
{
    const struct df_message *m = &w->message;

    w->bytes = (struct df_frames_changing){.kind = DF_FRAMES_NOTHING, .index = w->index};
    if (!w->call.mount) /* of a process, not of a file */
        return;
    w->bytes.mount = w->call.mount->id;
    switch (m->op) {
    case DF_MESSAGE_write:
        change_file(w, DF_FRAMES_RANGE, 0);
        w->bytes.offset = m->args.write.offset < 0 ? 0 : m->args.write.offset;
        w->bytes.size = at_most(m->args.write.size, DF_PAYLOAD_SIZE);
        break;
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_ioctl:
        change_file(w, DF_FRAMES_FILE, 0);
        break;
    case DF_MESSAGE_copy_file_range:
        change_file(w, DF_FRAMES_FILE, 1);
        break;
    case DF_MESSAGE_setattr:
        if (!(m->args.setattr.set.valid & DF_SET_SIZE))
            break;
        if (m->wheres[0].base && m->wheres[0].len == 0)
            change_file(w, DF_FRAMES_FILE, 0);
        else
            w->bytes.kind = DF_FRAMES_FILE;
        break;
    case DF_MESSAGE_open: /* which file, df_execute_content() will know */
        if (m->args.open.flags & O_TRUNC)
            w->bytes.kind = DF_FRAMES_FILE;
        break;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What is asked of the plugin; `size` 0: what the client asks for, no more, and none is kept. */
struct reading {
    struct df_frames_ticket ticket;
    bool knows_end;
    off_t end; /* of the file */
    off_t from;
    size_t size;
    bool wide; /* look_around() */
};

static size_t whole(size_t size)
{
    return (size + DF_FRAME_SIZE - 1) & ~(size_t)(DF_FRAME_SIZE - 1);
}

/* Bytes to read ahead: twice as many each time that a reader comes to where the last one ended. */
static size_t ahead_of(struct df_work *w, off_t offset)
{
    struct df_open_file *open = df_files_entry(&w->server->files, w->message.files[0]);
    uint32_t ahead = atomic_load_explicit(&open->ahead, memory_order_relaxed);

    if (ahead == DF_FILES_RANDOM)
        return 0;
    if (offset == 0)
        ahead = AHEAD_FIRST;
    else if (atomic_load_explicit(&open->ahead_of, memory_order_relaxed) == offset)
        ahead = ahead == 0 ? AHEAD_FIRST : ahead < AHEAD_MAX ? ahead * 2 : AHEAD_MAX;
    else
        ahead = 0;
    atomic_store_explicit(&open->ahead, ahead, memory_order_relaxed);
    return ahead;
}

static void expect_next(struct df_work *w, off_t offset)
{
    struct df_open_file *open = df_files_entry(&w->server->files, w->message.files[0]);

    atomic_store_explicit(&open->ahead_of, offset, memory_order_relaxed);
}

/* Of a mount that lends pieces of this open file came that were not lent: each is a copy. */
static _Atomic bool *scattered(struct df_work *w)
{
    return &df_files_entry(&w->server->files, w->message.files[0])->scattered;
}

/* Not beyond the file's end, if that is not asked for. */
static void look_around(struct reading *r)
{
    off_t begin = r->from - r->from % AROUND, end = r->from + (off_t)r->size;
    off_t wide = (end + AROUND - 1) & ~(off_t)(AROUND - 1), last = (off_t)whole((size_t)r->end);

    if (wide > last)
        wide = last > end ? last : end;
    r->size = (size_t)(wide - begin);
    r->from = begin;
    r->wide = true;
}

/* Read in large pieces from its beginning to its end it would drive itself out before it is read
 * again. (On a timeless mount readers tell whether they find anything: df_framer_again().) */
static bool is_too_large(const struct df_framer *framer, off_t end)
{
    return (uint64_t)end > df_framer_room(framer);
}

static struct reading plan(struct df_work *w, size_t size, off_t offset)
{
    struct df_framer *framer = &w->server->framer;
    uint32_t content = df_execute_content_of(w, w->message.files[0]);
    bool timeless = df_framer_timeless(framer, w->index);
    bool late = timeless || size > DF_FRAMES_LARGE, early;
    bool lends = atomic_load_explicit(&w->server->mounts[w->index].lends, memory_order_relaxed);
    struct reading r = {.ticket = df_framer_ask(framer, w->index, content)};

    if (!r.ticket.valid || offset < 0 || offset > INT64_MAX - 2 * (off_t)DF_PAYLOAD_SIZE ||
        size == 0 || (timeless && size < DF_FRAMES_LATE))
        return r;
    early = late && !lends && !df_framer_again(framer, &r.ticket, offset, size);
    if (early && timeless)
        return r;
    r.ticket = df_execute_ask(w, content, &r.end);
    r.knows_end = r.ticket.valid;
    if (early || !r.ticket.valid || (late && !timeless && is_too_large(framer, r.end)))
        return r;
    r.from = offset - offset % DF_FRAME_SIZE;
    r.size = whole((size_t)(offset - r.from) + size);
    if (!late)
        r.size += ahead_of(w, offset);
    if (!late && lends && !is_too_large(framer, r.end) &&
        !atomic_load_explicit(scattered(w), memory_order_relaxed))
        look_around(&r);
    if (r.size > DF_PAYLOAD_SIZE || df_execute_room(w, r.size) < r.size)
        r.size = 0;
    else
        expect_next(w, r.from + (off_t)r.size);
    return r;
}

/* A plugin that gives more than the size it tells is not believed: the kernel would cut it off. */
static void keep(struct df_work *w, const struct reading *r, const char *bytes, size_t got)
{
    off_t end = r->from + (off_t)got;

    if (got > 0 && end > r->end)
        return;
    df_framer_keep(&w->server->framer, &r->ticket, (uint64_t)r->from / DF_FRAME_SIZE, bytes, got,
                   got < r->size && end >= r->end);
}

/* A read that is not kept has come to the end: the page that is not full is, so that who reads on,
 * as most do, learns of the end without a trip. */
static void keep_end(struct df_work *w, const struct reading *r, off_t offset, const char *bytes,
                     size_t got)
{
    off_t end = offset + (off_t)got, begin = end - end % DF_FRAME_SIZE;

    if (!r->knows_end || end != r->end || begin < offset)
        return;
    df_framer_keep(&w->server->framer, &r->ticket, (uint64_t)begin / DF_FRAME_SIZE,
                   bytes + (begin - offset), (size_t)(end - begin), true);
}

/* Where the plugin puts the bytes: into the payload, or, where its lines would have to come from
 * the client's caches first, beside it (channel/past.h). */
static char *landing(struct df_work *w, size_t size)
{
    const struct df_segment *segment = w->server->own.segment;
    char *memory = df_past_pays(segment, size) ? (char *)df_pool_landing() : NULL;

    return memory ? memory : w->area->payload;
}

static int64_t read_to(struct df_work *w, char *bytes, size_t size, off_t offset)
{
    struct iovec iov = {bytes, size};

    return CALL(read, w->files[0], &iov, 1, offset);
}

/* What the client gets: `size` of the bytes, or the error that it is. */
static int64_t show(struct df_work *w, const char *bytes, size_t at, int64_t size)
{
    bool beside = bytes != w->area->payload;

    out_of(w)->read.at = beside ? 0 : at;
    if (beside && size >= (int64_t)DF_PAST_MIN)
        df_sys_copy_past(w->area->payload, bytes + at, (size_t)size);
    else if (beside && size > 0)
        memcpy(w->area->payload, bytes + at, (size_t)size);
    return size;
}

void df_execute_note_read(struct df_work *w, uint64_t handle)
{
    struct df_open_file *open = df_files_entry(&w->server->files, handle);
    struct df_ofd *ofd = df_segment_ofd(w->server->own.segment, handle);

    if (ofd && atomic_load_explicit(&open->judged, memory_order_relaxed))
        atomic_store_explicit(&ofd->begun, DF_OFD_BEGUN, memory_order_relaxed);
}

/* What the client has found in frames is what the file has: the content's id, or 0. */
static uint64_t confirm(struct df_work *w)
{
    uint64_t id = w->message.args.read.held;
    uint32_t content = id ? df_execute_content_of(w, w->message.files[0]) : 0;
    struct stat st;

    return content && df_execute_look(w, w->files[0], content, &st) &&
                   df_framer_confirms(&w->server->framer, w->index, content, id)
               ? id
               : 0;
}

bool df_execute_keep_lent(struct df_work *w, const struct df_frames_ticket *ticket, uint64_t page,
                          const char *at, size_t size, bool end, uint64_t since)
{
    _Atomic bool *lends = &w->server->mounts[w->index].lends;

    if (!atomic_load_explicit(lends, memory_order_relaxed))
        atomic_store_explicit(lends, true, memory_order_relaxed);
    return df_framer_keep_lent(&w->server->framer, ticket, page, at, size, end, since);
}

static bool keep_lent(struct df_work *w, const struct reading *r, const char *at, size_t got,
                      uint64_t since)
{
    off_t end = r->from + (off_t)got;

    return end <= r->end && df_execute_keep_lent(w, &r->ticket, (uint64_t)r->from / DF_FRAME_SIZE,
                                                 at, got, got < r->size && end >= r->end, since);
}

/* What may be kept is read to the buffer, or stays where it is and `kept` says so. */
static int64_t read_kept(struct df_work *w, const struct reading *r, char *bytes)
{
    uint64_t since = df_lent_now(&w->server->framer.lent);
    const char *at = bytes;
    int64_t got;

    if (w->message.args.read.sent)
        return read_to(w, bytes, r->size, r->from);
    got = CALL(lend, w->files[0], bytes, r->size, r->from, &at);
    if (at == bytes && r->wide)
        atomic_store_explicit(scattered(w), true, memory_order_relaxed);
    if (at == bytes || got <= 0)
        return got;
    if (!keep_lent(w, r, at, (size_t)got, since))
        return read_to(w, bytes, r->size, r->from);
    out_of(w)->read.kept = r->ticket.id;
    return got;
}

int64_t df_execute_read(struct df_work *w)
{
    size_t size = df_execute_room(w, w->message.args.read.size), before;
    off_t offset = w->message.args.read.offset;
    struct reading r;
    char *bytes;
    int64_t got;

    out_of(w)->read.kept = confirm(w);
    if (out_of(w)->read.kept)
        return 0;
    r = plan(w, size, offset);
    df_execute_note_read(w, w->message.files[0]);
    bytes = landing(w, r.size ? r.size : size);
    if (r.size == 0) {
        got = read_to(w, bytes, size, offset);
        if (got > 0 && (size_t)got < size)
            keep_end(w, &r, offset, bytes, (size_t)got);
        return show(w, bytes, 0, got);
    }
    got = read_kept(w, &r, bytes);
    if (out_of(w)->read.kept)
        return 0;
    if (got < 0) /* perhaps only of what was not asked for */
        return show(w, bytes, 0, read_to(w, bytes, size, offset));
    keep(w, &r, bytes, (size_t)got);
    before = (size_t)(offset - r.from);
    if ((size_t)got <= before)
        return 0;
    return show(w, bytes, before, (int64_t)at_most((size_t)got - before, size));
}

/* POSIX_FADV_*: who reads here and there wants nothing ahead. */
int64_t df_execute_advise(struct df_work *w)
{
    int advice = w->message.args.advise.mode;
    uint64_t handle = w->message.files[0];
    struct df_open_file *open = df_files_entry(&w->server->files, handle);
    struct df_ofd *ofd = &df_segment_ofds(w->server->own.segment)[df_handle_index(handle)];
    bool random = advice == POSIX_FADV_RANDOM;

    if (random || advice == POSIX_FADV_NORMAL || advice == POSIX_FADV_SEQUENTIAL) {
        atomic_store_explicit(&open->ahead, random ? DF_FILES_RANDOM : 0, memory_order_relaxed);
        atomic_store_explicit(&ofd->random, random, memory_order_relaxed);
    }
    return CALL(advise, w->files[0], w->message.args.advise.offset, w->message.args.advise.length,
                advice);
}

/* ---- writing --------------------------------------------------------------------------------- */

#define SETTABLE (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC) /* F_SETFL */

/* What fcntl(2) has changed over there holds from the next write on, for all who share the file. */
static void take_flags(struct df_file *file, int flags)
{
    int have = atomic_load_explicit(&file->flags, memory_order_relaxed);

    if ((have ^ flags) & SETTABLE)
        atomic_store_explicit(&file->flags, (have & ~SETTABLE) | (flags & SETTABLE),
                              memory_order_relaxed);
}

int64_t df_execute_write(struct df_work *w)
{
    struct iovec iov = {w->area->payload, at_most(w->message.args.write.size, DF_PAYLOAD_SIZE)};
    off_t offset = w->message.args.write.offset;
    int64_t ret;

    take_flags(w->files[0], w->message.args.write.flags);
    w->call.placing = w->message.args.write.placing;
    ret = CALL(write, w->files[0], &iov, 1, &offset);
    out_of(w)->offset = offset;
    return ret;
}
