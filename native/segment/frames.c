/*
 * frames.c - puts pages and listings into frames, and takes them away.
 */
#include "segment/frames.h"

#include <dirent.h>
#include <string.h>

#include "channel/sys.h"
#include "segment/frames_private.h"

/* ---- asking ---------------------------------------------------------------------------------- */

struct df_frames_ticket df_framer_ask(struct df_framer *framer, unsigned index, uint32_t content)
{
    struct df_frames_ticket ticket = {.index = index, .content = content};
    struct df_content *c;

    if (!framer->frames || !content || index >= DF_MOUNT_COUNT ||
        atomic_load(&framer->mounts[index].changing) > 0)
        return ticket;
    c = df_content_number(framer->frames, content);
    pthread_mutex_lock(df_framer_stripe(framer, content));
    ticket.id = atomic_load_explicit(&c->id, memory_order_relaxed);
    ticket.written = atomic_load_explicit(&c->written, memory_order_relaxed);
    ticket.valid = framer->bodies[content].changing == 0 && ticket.id != 0;
    pthread_mutex_unlock(df_framer_stripe(framer, content));
    return ticket;
}

/* Nothing has begun since. Under the stripe. */
static bool holds(struct df_framer *framer, const struct df_frames_ticket *ticket)
{
    const struct df_content *c = df_content_number(framer->frames, ticket->content);

    return framer->bodies[ticket->content].changing == 0 &&
           atomic_load_explicit(&c->id, memory_order_relaxed) == ticket->id &&
           atomic_load_explicit(&c->written, memory_order_relaxed) == ticket->written;
}

uint64_t df_framer_room(const struct df_framer *framer)
{
    return framer->frames->sets * DF_FRAME_WAYS * DF_FRAME_SIZE;
}

/* Lost counts do no harm. */
static bool is_worth(struct df_framer *framer, unsigned index, size_t size)
{
    _Atomic uint64_t *unfound = &framer->mounts[index].unfound;
    uint64_t before = atomic_load_explicit(unfound, memory_order_relaxed);

    atomic_store_explicit(unfound, before + size, memory_order_relaxed);
    return before < df_framer_room(framer) || before / size % DF_FRAMES_RARELY == 0;
}

bool df_framer_again(struct df_framer *framer, const struct df_frames_ticket *ticket, off_t offset,
                     size_t size)
{
    uint64_t hash = (ticket->id ^ (uint64_t)offset * UINT64_C(0xd6e8feb86659fd93)) *
                    UINT64_C(0x9e3779b97f4a7c15);
    uint16_t mark = (uint16_t)(hash >> 16) | 1;

    return atomic_exchange_explicit(&framer->seen[hash >> 48], mark, memory_order_relaxed) ==
               mark &&
           (!df_framer_timeless(framer, ticket->index) || is_worth(framer, ticket->index, size));
}

/* ---- one frame ------------------------------------------------------------------------------- */

/* Of a content that is gone or has another id. */
static bool is_dead(struct df_framer *framer, const struct df_frame *f)
{
    uint32_t content = atomic_load_explicit(&f->content, memory_order_relaxed) % framer->count;
    uint64_t id =
        atomic_load_explicit(&df_content_number(framer->frames, content)->id, memory_order_relaxed);

    return id != atomic_load_explicit(&f->id, memory_order_relaxed);
}

/* The number of the frame's own, of a free one, of a dead one, or of one that gives way: any, for
 * readers leave no trace. */
static uint64_t choose(struct df_framer *framer, struct df_frame_place place)
{
    const _Atomic uint64_t *tags = df_frame_tags(framer->frames, place.first);
    uint64_t unused = UINT64_MAX;

    for (unsigned i = 0; i < DF_FRAME_WAYS; i++) {
        uint64_t tag = atomic_load_explicit(&tags[i], memory_order_relaxed);

        if (tag == place.tag)
            return place.first + i;
        if (tag == 0 && unused == UINT64_MAX)
            unused = place.first + i;
    }
    for (unsigned i = 0; i < DF_FRAME_WAYS && unused == UINT64_MAX; i++)
        if (is_dead(framer, df_frame_number(framer->frames, place.first + i)))
            unused = place.first + i;
    return unused != UINT64_MAX ? unused : place.first + (df_sys_ticks() >> 6) % DF_FRAME_WAYS;
}

struct fill {
    uint64_t at, next, stamp;
    const char *bytes;
    size_t size;
    bool briefly;
    bool lent; /* the bytes stay where they are; asked for after `since` */
    uint64_t since;
};

/* The frame shows the bytes where they lie, or has a copy of them. False: neither can be. */
static bool fill_bytes(struct df_framer *framer, uint64_t number, const struct fill *fill)
{
    struct df_frame *f = df_frame_number(framer->frames, number);
    uint32_t lent;
    char *bytes;

    if (!fill->lent) {
        bytes = df_framer_bytes(framer, number, fill->briefly);
        if (bytes)
            df_sys_copy_unsure(bytes, fill->bytes, fill->size);
        return bytes != NULL;
    }
    lent = fill->size > 0 ? df_lent_number(&framer->lent, fill->bytes) : 0;
    if (fill->size > 0 && (lent == 0 || !df_lent_show(&framer->lent, lent, number, fill->since)))
        return false;
    atomic_store_explicit(&f->bytes, lent, memory_order_release);
    return true;
}

/* Under the stripe of the content. False: another content's may be writing the frame, or there is
 * no memory. */
static bool fill_frame(struct df_framer *framer, const struct df_frames_ticket *ticket,
                       const struct fill *fill)
{
    struct df_frame_place place = df_frame_place(framer->frames, ticket->id, fill->at);
    uint64_t number = choose(framer, place);
    struct df_frame *f = df_frame_number(framer->frames, number);
    uint32_t seq;

    if (!df_frame_begin_writing(f, &seq))
        return false;
    if (!fill_bytes(framer, number, fill)) {
        df_frame_clear(framer->frames, number);
        df_frame_end_writing(f, seq);
        return false;
    }
    df_frame_store(&f->id, ticket->id);
    df_frame_store(&f->at, fill->at);
    df_frame_store(&f->next, fill->next);
    df_frame_store(&f->stamp, fill->stamp);
    atomic_store_explicit(&f->content, ticket->content, memory_order_release);
    atomic_store_explicit(&f->used, (uint32_t)fill->size, memory_order_release);
    df_frame_store(df_frame_tags(framer->frames, number), place.tag);
    df_frame_end_writing(f, seq);
    framer->bodies[ticket->content].any = true;
    return true;
}

static void take_page_away(struct df_framer *framer, uint64_t id, uint64_t page)
{
    struct df_frame_place place = df_frame_place(framer->frames, id, page);
    _Atomic uint64_t *tags = df_frame_tags(framer->frames, place.first);

    for (unsigned i = 0; i < DF_FRAME_WAYS; i++) {
        struct df_frame *f = df_frame_number(framer->frames, place.first + i);
        uint32_t seq;

        if (atomic_load_explicit(&tags[i], memory_order_relaxed) != place.tag ||
            !df_frame_begin_writing(f, &seq)) /* who writes it leaves nothing of this page */
            continue;
        df_frame_clear(framer->frames, place.first + i);
        df_frame_end_writing(f, seq);
    }
}

void df_framer_take_away(struct df_framer *framer, uint32_t content, uint64_t first, uint64_t last)
{
    uint64_t id = atomic_load(&df_content_number(framer->frames, content)->id);

    for (uint64_t page = first; page <= last; page++)
        take_page_away(framer, id, page);
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Under the stripe. True if all of them are kept. */
static bool fill_frames(struct df_framer *framer, const struct df_frames_ticket *ticket,
                        struct fill *fill, size_t size, bool end)
{
    bool all = true;

    while (size >= DF_FRAME_SIZE || end) {
        if (!holds(framer, ticket))
            return false;
        fill->size = size < DF_FRAME_SIZE ? size : DF_FRAME_SIZE;
        all = fill_frame(framer, ticket, fill) && all;
        size -= fill->size;
        if (fill->size < DF_FRAME_SIZE)
            break;
        fill->bytes += fill->size;
        fill->at++;
    }
    return all && size == 0;
}

static bool keep_pages(struct df_framer *framer, const struct df_frames_ticket *ticket,
                       struct fill fill, size_t size, bool end)
{
    pthread_mutex_t *stripe = df_framer_stripe(framer, ticket->content);
    bool all;

    if (!ticket->valid)
        return false;
    pthread_mutex_lock(stripe);
    if (fill.lent)
        pthread_mutex_lock(&framer->lent.lock);
    all = fill_frames(framer, ticket, &fill, size, end);
    if (fill.lent)
        pthread_mutex_unlock(&framer->lent.lock);
    pthread_mutex_unlock(stripe);
    return all;
}

void df_framer_keep(struct df_framer *framer, const struct df_frames_ticket *ticket, uint64_t page,
                    const char *bytes, size_t size, bool end)
{
    struct fill fill = {.at = page, .stamp = ticket->written, .bytes = bytes};

    keep_pages(framer, ticket, fill, size, end);
}

void df_framer_keep_briefly(struct df_framer *framer, const struct df_frames_ticket *ticket,
                            const char *bytes, size_t size, bool end)
{
    struct fill fill = {.stamp = ticket->written, .bytes = bytes, .briefly = true};

    keep_pages(framer, ticket, fill, size, end);
}

bool df_framer_keep_lent(struct df_framer *framer, const struct df_frames_ticket *ticket,
                         uint64_t page, const char *bytes, size_t size, bool end, uint64_t since)
{
    struct fill fill = {
        .at = page, .stamp = ticket->written, .bytes = bytes, .lent = true, .since = since};

    return keep_pages(framer, ticket, fill, size, end);
}

/* How many bytes of whole records go into one frame; *next: where the one behind them begins. */
static size_t fit(const char *records, size_t size, uint64_t *next)
{
    size_t used = 0;

    while (used < size) {
        const struct dirent64 *entry = (const struct dirent64 *)(records + used);

        if (used + entry->d_reclen > DF_FRAME_SIZE)
            break;
        used += entry->d_reclen;
        *next = (uint64_t)entry->d_off;
    }
    return used;
}

void df_framer_keep_list(struct df_framer *framer, const struct df_frames_ticket *ticket,
                         uint64_t position, uint64_t era, const char *records, size_t size)
{
    pthread_mutex_t *stripe = df_framer_stripe(framer, ticket->content);
    struct fill fill = {.at = position, .next = position, .stamp = era, .bytes = records};

    if (!ticket->valid)
        return;
    pthread_mutex_lock(stripe);
    do {
        if (!holds(framer, ticket))
            break;
        fill.size = fit(fill.bytes, size, &fill.next);
        if (fill.size == 0 && size > 0) /* a record that is larger than a frame */
            break;
        fill_frame(framer, ticket, &fill);
        fill.bytes += fill.size;
        fill.at = fill.next;
        size -= fill.size;
    } while (size > 0);
    pthread_mutex_unlock(stripe);
}
