/*
 * frames.c - finds a page or a piece of a listing in the segment. Freestanding.
 */
#include "channel/frames.h"

#include "channel/map.h"
#include "channel/sys.h"

/* ---- layout ---------------------------------------------------------------------------------- */

static uint64_t page_aligned(uint64_t at)
{
    return (at + DF_FRAME_SIZE - 1) & ~(uint64_t)(DF_FRAME_SIZE - 1);
}

void df_frames_plan(struct df_frames *frames, uint64_t bytes)
{
    uint64_t count;

    frames->sets = 1;
    while (frames->sets * DF_FRAME_WAYS * DF_FRAME_SIZE < bytes)
        frames->sets *= 2;
    count = frames->sets * DF_FRAME_WAYS;
    frames->content_count = (uint32_t)(count > DF_CONTENT_LEAST ? count : DF_CONTENT_LEAST);
    frames->tags_at = page_aligned(sizeof(*frames));
    frames->frames_at = page_aligned(frames->tags_at + count * sizeof(uint64_t));
    frames->contents_at = page_aligned(frames->frames_at + count * sizeof(struct df_frame));
    frames->bytes_at =
        df_huge_aligned(frames->contents_at + frames->content_count * sizeof(struct df_content));
    frames->lent_first =
        df_huge_aligned((1 + DF_FRAMES_BRIEF + count) * DF_FRAME_SIZE) / DF_FRAME_SIZE;
    frames->lent_count = DF_FRAMES_LENT / DF_FRAME_SIZE;
    frames->size = frames->bytes_at + (frames->lent_first + frames->lent_count) * DF_FRAME_SIZE;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct df_frame_place df_frame_place(const struct df_frames *frames, uint64_t id, uint64_t at)
{
    uint64_t hash = (id * UINT64_C(0x9e3779b97f4a7c15) ^ at) * UINT64_C(0xd6e8feb86659fd93);

    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (struct df_frame_place){hash | 1, (hash >> 32 & (frames->sets - 1)) * DF_FRAME_WAYS};
}

/* Acquired, so that the second look at the sequence number comes after it. */
static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* Before the id is read: who gives a content more time has given it another id before, if it is to
 * have one. */
static bool is_timely(const struct df_content *content)
{
    uint64_t until = load(&content->until);

    return until == UINT64_MAX || df_sys_ticks() < until;
}

/* The id that the content's frames have; 0: it is not to be believed. */
static uint64_t id_of(const struct df_content *content, uint64_t confirmed)
{
    bool believed = confirmed != 0 || is_timely(content);
    uint64_t id = believed ? load(&content->id) : 0;

    return confirmed == 0 || id == confirmed ? id : 0;
}

static bool look(const struct df_frames *frames, uint64_t number, uint64_t at,
                 struct df_frame_view *view)
{
    const struct df_frame *frame = df_frame_number(frames, number);

    view->frame = frame;
    view->seq = atomic_load_explicit(&frame->seq, memory_order_acquire);
    view->used = atomic_load_explicit(&frame->used, memory_order_acquire);
    view->next = load(&frame->next);
    view->bytes = df_frame_bytes(frames, atomic_load_explicit(&frame->bytes, memory_order_acquire));
    return !(view->seq & 1) && load(&frame->id) == view->id && load(&frame->at) == at &&
           view->used <= DF_FRAME_SIZE;
}

static bool find(const struct df_frames *frames, uint32_t content, uint64_t confirmed, uint64_t at,
                 struct df_frame_view *view)
{
    struct df_frame_place place;
    const _Atomic uint64_t *tags;

    if (content == 0 || content >= frames->content_count)
        return false;
    view->content = df_content_number(frames, content);
    view->id = id_of(view->content, confirmed);
    if (view->id == 0)
        return false;
    place = df_frame_place(frames, view->id, at);
    tags = df_frame_tags(frames, place.first);
    for (unsigned i = 0; i < DF_FRAME_WAYS; i++)
        if (atomic_load_explicit(&tags[i], memory_order_relaxed) == place.tag &&
            look(frames, place.first + i, at, view))
            return true;
    return false;
}

bool df_frame_page(const struct df_frames *frames, uint32_t content, uint64_t confirmed,
                   uint64_t page, struct df_frame_view *view)
{
    return find(frames, content, confirmed, page, view) &&
           (view->used == DF_FRAME_SIZE ||
            load(&view->frame->stamp) == load(&view->content->written));
}

bool df_frame_listing(const struct df_frames *frames, uint32_t content, uint64_t position,
                      uint64_t era, struct df_frame_view *view)
{
    return find(frames, content, 0, position, view) && load(&view->frame->stamp) == era;
}

bool df_frame_same(const struct df_frame_view *view)
{
    df_sys_loads_before();
    return atomic_load_explicit(&view->frame->seq, memory_order_relaxed) == view->seq;
}

uint64_t df_content_id(const struct df_segment *segment, uint64_t handle)
{
    const struct df_ofd *ofd = df_segment_ofd(segment, handle);

    return ofd ? df_content_id_of(segment, ofd, handle) : 0;
}
