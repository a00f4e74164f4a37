/*
 * lent.c - hands out memory of the segment to file systems, and ends frames that show what comes
 * back.
 */
#include "segment/lent.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "channel/map.h"
#include "channel/room.h"
#include "core/clock.h"
#include "segment/frames_private.h"

#define TOP      (DF_LENT_ORDERS - 1)
#define STRETCH  (1U << TOP)         /* pages */
#define WARM     4                   /* free stretches that keep their memory */
#define AGAIN_NS INT64_C(1000000000) /* between two attempts where there is no memory */

enum { INSIDE, FREE, TAKEN };

/* ---- lists of blocks ------------------------------------------------------------------------- */

static void push(struct df_lent *lent, uint32_t *list, uint32_t page)
{
    lent->pages[page].before = 0;
    lent->pages[page].next = *list;
    if (*list)
        lent->pages[*list - 1].before = page + 1;
    *list = page + 1;
}

static void take_out(struct df_lent *lent, uint32_t *list, uint32_t page)
{
    const struct df_lent_page *p = &lent->pages[page];

    if (p->next)
        lent->pages[p->next - 1].before = p->before;
    if (p->before)
        lent->pages[p->before - 1].next = p->next;
    else
        *list = p->next;
}

static void push_free(struct df_lent *lent, uint32_t page, unsigned order)
{
    lent->pages[page].kind = FREE;
    lent->pages[page].order = (uint8_t)order;
    push(lent, &lent->lists[order], page);
    lent->spare += order == TOP;
}

static void take_out_free(struct df_lent *lent, uint32_t page, unsigned order)
{
    take_out(lent, &lent->lists[order], page);
    lent->pages[page].kind = INSIDE;
    lent->spare -= order == TOP;
    if (lent->unused > lent->spare)
        lent->unused = lent->spare;
}

/* ---- stretches ------------------------------------------------------------------------------- */

static char *address(const struct df_lent *lent, uint32_t page)
{
    return df_frame_bytes(lent->frames, lent->frames->lent_first + page);
}

/* To be refused takes long: not again for a while. */
static bool make(struct df_lent *lent, uint32_t page, uint32_t stretches)
{
    size_t size = stretches * DF_HUGE_SIZE;
    int64_t begun = df_stretches_begin();
    bool made;

    if (lent->failed != 0 && df_clock_coarse() - lent->failed < AGAIN_NS)
        return false;
    made = df_room_make_huge(address(lent, page), size) ||
           df_room_make(lent->segment, address(lent, page), size);
    df_stretches_took(&lent->stretches, begun, stretches);
    lent->failed = made ? 0 : df_clock_coarse();
    return made;
}

/* The first of up to `count` stretches without memory, one after the other; *count: how many. */
static uint32_t find_unmade(const struct df_lent *lent, uint32_t *count)
{
    uint32_t all = (uint32_t)(lent->frames->lent_count / STRETCH), first = 0, end;

    while (first < all && lent->made[first])
        first++;
    for (end = first; end < all && end < first + *count && !lent->made[end]; end++)
        ;
    *count = end - first;
    return first;
}

static bool make_more(struct df_lent *lent)
{
    uint32_t all = (uint32_t)(lent->frames->lent_count / STRETCH);
    uint32_t count = df_stretches_next(&lent->stretches, lent->made_count, all);
    uint32_t first = find_unmade(lent, &count);

    if (count == 0 || !make(lent, first * STRETCH, count))
        return false;
    for (uint32_t i = first; i < first + count; i++) {
        lent->made[i] = true;
        push_free(lent, i * STRETCH, TOP);
    }
    lent->made_count += count;
    return true;
}

/* The system gets the memory of a free stretch back. False: it cannot have it. */
static bool cool(struct df_lent *lent)
{
    uint32_t page = lent->lists[TOP] - 1;

    if (madvise(address(lent, page), DF_HUGE_SIZE, MADV_REMOVE) < 0)
        return false;
    take_out_free(lent, page, TOP);
    lent->made[page / STRETCH] = false;
    lent->made_count--;
    return true;
}

void df_lent_cool(struct df_lent *lent)
{
    uint32_t count;

    if (!lent->pages)
        return;
    pthread_mutex_lock(&lent->lock);
    count = lent->unused > WARM ? lent->unused - WARM : 0;
    while (count > 0 && lent->spare > WARM && cool(lent)) {
        count--;
        pthread_mutex_unlock(&lent->lock); /* a system call each: others come in between */
        pthread_mutex_lock(&lent->lock);
    }
    lent->unused = lent->spare;
    pthread_mutex_unlock(&lent->lock);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static unsigned order_of(size_t size)
{
    size_t pages = (size + DF_FRAME_SIZE - 1) / DF_FRAME_SIZE;

    return pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzl(pages - 1);
}

/* A free block of that order, cut from a larger one; UINT32_MAX: there is none. */
static uint32_t cut(struct df_lent *lent, unsigned order)
{
    unsigned from = order;
    uint32_t page;

    while (from <= TOP && !lent->lists[from])
        from++;
    if (from > TOP)
        return UINT32_MAX;
    page = lent->lists[from] - 1;
    take_out_free(lent, page, from);
    while (from > order) {
        from--;
        push_free(lent, page + (1U << from), from);
    }
    return page;
}

static void *take(struct df_lender *lender, size_t size)
{
    struct df_lent *lent = (struct df_lent *)lender;
    unsigned order = order_of(size);
    uint32_t page;

    if (order > TOP)
        return NULL;
    pthread_mutex_lock(&lent->lock);
    page = cut(lent, order);
    if (page == UINT32_MAX && make_more(lent))
        page = cut(lent, order);
    if (page != UINT32_MAX) {
        lent->pages[page].kind = TAKEN;
        lent->pages[page].order = (uint8_t)order;
    }
    pthread_mutex_unlock(&lent->lock);
    return page == UINT32_MAX ? NULL : address(lent, page);
}

/* ---- showing --------------------------------------------------------------------------------- */

static bool shows(const struct df_lent *lent, const struct df_frame *f, uint32_t page)
{
    return atomic_load_explicit(&f->bytes, memory_order_relaxed) == lent->frames->lent_first + page;
}

/* The frame that shows the page, if any, is ended. False: somebody is writing it. */
static bool end_frame(struct df_lent *lent, uint32_t page)
{
    uint32_t seq, number = lent->pages[page].frame;
    struct df_frame *f = number ? df_frame_number(lent->frames, number - 1) : NULL;

    if (f && shows(lent, f, page)) {
        if (!df_frame_begin_writing(f, &seq))
            return false;
        df_frame_clear(lent->frames, number - 1);
        df_frame_end_writing(f, seq);
    }
    lent->pages[page].frame = 0;
    return true;
}

uint32_t df_lent_number(const struct df_lent *lent, const char *bytes)
{
    size_t at = (size_t)(bytes - lent->lender.begin);

    return at % DF_FRAME_SIZE == 0 ? (uint32_t)(lent->frames->lent_first + at / DF_FRAME_SIZE) : 0;
}

bool df_lent_show(struct df_lent *lent, uint32_t number, uint64_t frame, uint64_t since)
{
    uint32_t page = number - (uint32_t)lent->frames->lent_first;
    struct df_lent_page *p = &lent->pages[page];

    if (p->given > since || (p->frame != frame + 1 && !end_frame(lent, page)))
        return false;
    p->frame = (uint32_t)frame + 1;
    return true;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static void end_frames(struct df_lent *lent, uint32_t page, unsigned order)
{
    uint64_t now = atomic_fetch_add(&lent->now, 1) + 1;

    for (uint32_t i = page; i < page + (1U << order); i++) {
        lent->pages[i].given = now;
        while (!end_frame(lent, i))
            sched_yield(); /* a copy of a page, or, rarely, memory that is made */
    }
}

/* With the free blocks beside it. */
static void put_back(struct df_lent *lent, uint32_t page, unsigned order)
{
    for (uint32_t beside; order < TOP; order++) {
        beside = page ^ (1U << order);
        if (lent->pages[beside].kind != FREE || lent->pages[beside].order != order)
            break;
        take_out_free(lent, beside, order);
        page &= ~(1U << order);
    }
    push_free(lent, page, order);
}

static void give(struct df_lender *lender, void *memory)
{
    struct df_lent *lent = (struct df_lent *)lender;
    uint32_t page = (uint32_t)(((char *)memory - lender->begin) / DF_FRAME_SIZE);
    unsigned order;

    pthread_mutex_lock(&lent->lock);
    order = lent->pages[page].order;
    end_frames(lent, page, order);
    lent->pages[page].kind = INSIDE;
    put_back(lent, page, order);
    pthread_mutex_unlock(&lent->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

void df_lent_init(struct df_lent *lent, struct df_segment *segment, struct df_frames *frames)
{
    pthread_mutex_init(&lent->lock, NULL);
    lent->segment = segment;
    lent->frames = frames;
    lent->pages = frames ? calloc(frames->lent_count, sizeof(*lent->pages)) : NULL;
    if (!lent->pages)
        return;
    lent->lender = (struct df_lender){.begin = address(lent, 0),
                                      .size = frames->lent_count * DF_FRAME_SIZE,
                                      .take = take,
                                      .give = give};
    if (segment->starts > 1) /* what a server that has died had lent */
        madvise(address(lent, 0), lent->lender.size, MADV_REMOVE);
}

void df_lent_free(struct df_lent *lent)
{
    free(lent->pages);
    pthread_mutex_destroy(&lent->lock);
}
