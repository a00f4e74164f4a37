/*
 * lent.h - the part of the segment that file systems have for contents (core/lend.h), which frames
 * show where they lie (frames.h).
 *
 * Memory is handed out by pages, powers of two of them, up to a stretch of DF_HUGE_SIZE. Stretches
 * are made as they are needed; those that nobody has needed for a while go back to the system.
 *
 * Why nobody reads what became another's. A page is shown by one frame at most, and before it can
 * be taken again that frame is ended, as by a write: a reader that copies meanwhile sees another
 * sequence number. What was asked for before a page was given back is not put in after: each page
 * remembers when that was.
 *
 * Locks: `lock` protects all but `now`. Under it frames are written, if nobody is writing them; who
 * writes a frame takes it never, so it is waited for.
 */
#ifndef DF_SEGMENT_LENT_H
#define DF_SEGMENT_LENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "channel/frames.h"
#include "channel/map.h"
#include "core/lend.h"
#include "segment/stretches.h"

#define DF_LENT_ORDERS 10 /* of blocks: 1 to 512 pages, which are a stretch */

/* Of a block only the first page has kind, order, next and before. */
struct df_lent_page {
    uint64_t given;        /* `now` when it was given back last */
    uint32_t frame;        /* 1 + number of the frame that was the last to show it; 0: none */
    uint32_t next, before; /* 1 + number of the block's neighbours in its list; 0: none */
    uint8_t order;
    uint8_t kind; /* enum in lent.c */
};

struct df_lent {
    struct df_lender lender;
    struct df_segment *segment;
    struct df_frames *frames;
    _Atomic uint64_t now; /* counts what was given back */

    pthread_mutex_t lock; /* protects what follows */
    struct df_lent_page *pages;
    uint32_t lists[DF_LENT_ORDERS];           /* free blocks: 1 + number of the first; 0: none */
    bool made[DF_FRAMES_LENT / DF_HUGE_SIZE]; /* stretches that have memory */
    uint32_t made_count;
    struct df_stretches stretches;
    uint32_t spare;  /* free stretches that have memory */
    uint32_t unused; /* how many of these there were at all times since df_lent_cool() */
    int64_t failed;  /* ns: when there was no memory for more; 0: never */
};

/* Without frames, or without memory for its own table, it lends nothing. */
void df_lent_init(struct df_lent *lent, struct df_segment *segment, struct df_frames *frames);
void df_lent_free(struct df_lent *lent);

/* To be called once in a while: what nobody has taken since the last time goes back to the system,
 * but for a few stretches. */
void df_lent_cool(struct df_lent *lent);

/* Before bytes are asked for that may turn out to be lent. */
static inline uint64_t df_lent_now(const struct df_lent *lent)
{
    return atomic_load(&lent->now);
}

/* Number of the page (df_frame_bytes()) at the beginning of which the bytes lie; 0: none. */
uint32_t df_lent_number(const struct df_lent *lent, const char *bytes);

/* Under the lock, before the frame of that number shows the page. False: it must not, the page was
 * given back since, or another frame shows it that cannot be ended just now. */
bool df_lent_show(struct df_lent *lent, uint32_t page, uint64_t frame, uint64_t since);

#endif
