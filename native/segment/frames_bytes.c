/*
 * frames_bytes.c - gives frames their bytes: some for good, made as they are needed, or some of a
 * ring, which goes round.
 */
#include "channel/map.h"
#include "channel/room.h"
#include "segment/frames_private.h"

#define GROWTH  32                             /* frames whose memory is made together */
#define STRETCH (DF_HUGE_SIZE / DF_FRAME_SIZE) /* frames in a huge page */
#define TRIES   8                              /* places of the ring that are being written */

/* ---- memory ---------------------------------------------------------------------------------- */

/* How many of the next `left` frames are now in huge pages of their own. A stretch of which some
 * are made already stays as it is. */
static uint64_t make_huge(struct df_framer *framer, uint32_t made, uint64_t left)
{
    uint64_t first = made == 0 ? 0 : made + 1; /* number 0 is none, and has room */
    uint32_t count =
        df_stretches_next(&framer->stretches, first / STRETCH, (made + 1 + left - first) / STRETCH);

    int64_t begun = df_stretches_begin();
    bool huge;

    if (count == 0 || first % STRETCH != 0)
        return 0;
    huge = df_room_make_huge(df_frame_bytes(framer->frames, first), count * DF_HUGE_SIZE);
    df_stretches_took(&framer->stretches, begun, count);
    return huge ? first + (uint64_t)count * STRETCH - (made + 1) : 0;
}

static uint32_t make_bytes(void *owner, uint32_t made)
{
    struct df_framer *framer = owner;
    uint64_t left = DF_FRAMES_BRIEF + framer->frames->sets * DF_FRAME_WAYS - made;
    uint64_t count = GROWTH - (made + 1) % GROWTH, huge = make_huge(framer, made, left);

    if (huge > 0)
        return (uint32_t)huge;
    count = left < count ? left : count;
    return df_room_make(framer->segment, df_frame_bytes(framer->frames, made + 1),
                        count * DF_FRAME_SIZE)
               ? (uint32_t)count
               : 0;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static bool is_brief(uint32_t bytes)
{
    return bytes != 0 && bytes <= DF_FRAMES_BRIEF;
}

/* No frame has these bytes any more. False: the one that has them is being written. Under the lock.
 */
static bool take_back(struct df_framer *framer, uint32_t bytes)
{
    uint32_t seq, number = framer->brief.frames[bytes];
    struct df_frame *f;

    if (number == 0)
        return true;
    f = df_frame_number(framer->frames, number - 1);
    if (!df_frame_begin_writing(f, &seq))
        return false;
    df_frame_clear(framer->frames, number - 1);
    atomic_store_explicit(&f->own, 0, memory_order_relaxed);
    df_frame_end_writing(f, seq);
    framer->brief.frames[bytes] = 0;
    return true;
}

/* Under the lock. 0: there are none to be had. */
static uint32_t lend(struct df_framer *framer, uint64_t number)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t bytes = framer->brief.last = framer->brief.last % DF_FRAMES_BRIEF + 1;

        if (!df_growth_reach(&framer->bytes, bytes, make_bytes, framer))
            return 0;
        if (take_back(framer, bytes)) {
            framer->brief.frames[bytes] = (uint32_t)number + 1;
            return bytes;
        }
    }
    return 0;
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* Under the lock. What it was lent is free if it gets its own. */
static uint32_t give(struct df_framer *framer, uint64_t number, uint32_t lent, bool briefly)
{
    uint32_t own;

    if (briefly)
        return lend(framer, number);
    own = df_growth_take(&framer->bytes, make_bytes, framer);
    if (own == 0)
        return lent;
    framer->brief.frames[lent] = 0;
    return own;
}

char *df_framer_bytes(struct df_framer *framer, uint64_t number, bool briefly)
{
    struct df_frame *f = df_frame_number(framer->frames, number);
    uint32_t bytes = atomic_load_explicit(&f->own, memory_order_relaxed);

    if (bytes == 0 || (is_brief(bytes) && !briefly)) {
        pthread_mutex_lock(&framer->bytes.lock);
        bytes = give(framer, number, bytes, briefly);
        atomic_store_explicit(&f->own, bytes, memory_order_relaxed);
        pthread_mutex_unlock(&framer->bytes.lock);
    }
    if (bytes == 0)
        return NULL;
    atomic_store_explicit(&f->bytes, bytes, memory_order_release);
    return df_frame_bytes(framer->frames, bytes);
}

/* ---- life ------------------------------------------------------------------------------------ */

void df_framer_bytes_init(struct df_framer *framer)
{
    framer->bytes.used = DF_FRAMES_BRIEF;
}

void df_framer_bytes_take_up(struct df_framer *framer)
{
    for (uint64_t i = 0; i < framer->frames->sets * DF_FRAME_WAYS; i++) {
        struct df_frame *f = df_frame_number(framer->frames, i);
        uint32_t bytes = atomic_load(&f->own);

        atomic_store(&f->bytes, bytes); /* it may have shown what was lent */
        if (is_brief(bytes))
            framer->brief.frames[bytes] = (uint32_t)i + 1;
        if (framer->bytes.used < bytes)
            framer->bytes.used = bytes;
        if (framer->bytes.made < bytes)
            framer->bytes.made = bytes;
    }
}

void df_framer_bytes_begin(struct df_framer *framer)
{
    pthread_mutex_lock(&framer->bytes.lock);
    df_growth_reach(&framer->bytes, 1, make_bytes, framer);
    pthread_mutex_unlock(&framer->bytes.lock);
}
