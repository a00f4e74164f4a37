/*
 * frames_private.h - between contents.c, frames.c and frames_bytes.c.
 */
#ifndef DF_SEGMENT_FRAMES_PRIVATE_H
#define DF_SEGMENT_FRAMES_PRIVATE_H

#include "channel/sys.h"
#include "segment/frames.h"

static inline pthread_mutex_t *df_framer_stripe(struct df_framer *framer, uint32_t content)
{
    return &framer->stripes[content % DF_BODY_STRIPES];
}

/* Released, so that none is seen before the odd sequence number. */
static inline void df_frame_store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

/*
 * False: somebody else is writing it. Who writes a frame puts something of his own in or leaves
 * nothing in it, never what was there: who takes pages away passes it by meanwhile.
 */
static inline bool df_frame_begin_writing(struct df_frame *f, uint32_t *seq)
{
    *seq = atomic_load_explicit(&f->seq, memory_order_relaxed);
    if (*seq & 1 || !atomic_compare_exchange_strong(&f->seq, seq, *seq + 1))
        return false;
    df_sys_stores_before();
    return true;
}

/* Nothing is in it any more. Bytes of its own stay its own. */
static inline void df_frame_clear(const struct df_frames *frames, uint64_t number)
{
    struct df_frame *f = df_frame_number(frames, number);

    df_frame_store(&f->id, 0);
    df_frame_store(df_frame_tags(frames, number), 0);
    atomic_store_explicit(&f->bytes, 0, memory_order_release);
}

static inline void df_frame_end_writing(struct df_frame *f, uint32_t seq)
{
    atomic_store_explicit(&f->seq, seq + 2, memory_order_release);
}

/* Where the bytes of the frame of that number lie, which is being written: its own, or, for what is
 * kept briefly and if it has none, some of the ring's. NULL: there is no memory. */
char *df_framer_bytes(struct df_framer *framer, uint64_t number, bool briefly);

void df_framer_bytes_init(struct df_framer *framer);
/* Of a server that has died: the bytes that its frames have stay theirs. */
void df_framer_bytes_take_up(struct df_framer *framer);
/* The first memory for bytes is made before anybody waits for it: Linux takes a millisecond for a
 * huge page, or several. */
void df_framer_bytes_begin(struct df_framer *framer);

/* Pages first to last of the content go. Under its stripe. */
void df_framer_take_away(struct df_framer *framer, uint32_t content, uint64_t first, uint64_t last);

#endif
