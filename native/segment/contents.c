/*
 * contents.c - which content a file has, and what ends belief in it.
 */
#include <stdlib.h>

#include "channel/room.h"
#include "core/export.h"
#include "segment/frames_private.h"

#define CHAIN  4    /* contents in a chain, where all are used */
#define GROWTH 1638 /* contents whose memory is made together: 64 KiB */

/* ---- life ------------------------------------------------------------------------------------ */

/* What a server that has died had put in is dead. */
static void take_up(struct df_framer *framer)
{
    framer->made = atomic_load(&framer->frames->contents_made) % (framer->count + 1);
    for (uint32_t i = 0; i < framer->made; i++)
        atomic_store(&df_content_number(framer->frames, i)->id, 0);
    df_framer_bytes_take_up(framer);
}

/* Pages that nothing has touched cost nothing. False: there is no memory. */
static bool begin_table(struct df_framer *framer)
{
    framer->count = framer->frames->content_count;
    framer->bodies = calloc(framer->count, sizeof(*framer->bodies));
    framer->chains = calloc(framer->count / CHAIN, sizeof(*framer->chains));
    return framer->bodies && framer->chains;
}

void df_framer_init(struct df_framer *framer, struct df_segment *segment, struct df_cacher *cacher)
{
    pthread_mutex_init(&framer->lock, NULL);
    pthread_mutex_init(&framer->bytes.lock, NULL);
    framer->segment = segment;
    for (unsigned i = 0; i < DF_BODY_STRIPES; i++)
        pthread_mutex_init(&framer->stripes[i], NULL);
    framer->frames = segment->frames_size ? df_frames_of(segment) : NULL;
    if (framer->frames && !begin_table(framer))
        framer->frames = NULL;
    framer->cacher = cacher;
    framer->top = framer->hand = 1;
    atomic_init(&framer->last_id, (uint64_t)(segment->starts - 1)
                                      << 40); /* of none that was before */
    df_framer_bytes_init(framer);
    df_lent_init(&framer->lent, segment, framer->frames);
    if (!framer->frames)
        return;
    if (segment->starts > 1)
        take_up(framer);
    df_framer_bytes_begin(framer);
}

void df_framer_free(struct df_framer *framer)
{
    pthread_mutex_destroy(&framer->lock);
    pthread_mutex_destroy(&framer->bytes.lock);
    df_lent_free(&framer->lent);
    free(framer->bodies);
    free(framer->chains);
    for (unsigned i = 0; i < DF_BODY_STRIPES; i++)
        pthread_mutex_destroy(&framer->stripes[i]);
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t *chain_of(struct df_framer *framer, int mount, uint64_t body)
{
    uint64_t hash = (body + (uint64_t)mount * 0x9e37) * UINT64_C(0x9e3779b97f4a7c15);

    return &framer->chains[hash >> 32 & (framer->count / CHAIN - 1)];
}

/* Under the lock. 0: there is none. */
static DF_FLAT uint32_t find(struct df_framer *framer, int mount, uint64_t body)
{
    uint32_t n = *chain_of(framer, mount, body);

    while (n && (framer->bodies[n].body != body || framer->bodies[n].mount != mount))
        n = framer->bodies[n].next;
    return n;
}

/* Another id: what was kept under the old one is dead. Under the stripe. */
static void renew(struct df_framer *framer, uint32_t n, bool used)
{
    uint64_t id = used ? atomic_fetch_add(&framer->last_id, 1) + 1 : 0;

    framer->bodies[n].any = framer->bodies[n].known = false;
    atomic_store(&df_content_number(framer->frames, n)->id, id);
}

static void renew_locked(struct df_framer *framer, uint32_t n, bool used)
{
    pthread_mutex_lock(df_framer_stripe(framer, n));
    renew(framer, n, used);
    pthread_mutex_unlock(df_framer_stripe(framer, n));
}

/* It is free now; not one that a change of is under way: whoever opens the file meanwhile has to
 * find it. Under the lock. */
static bool release(struct df_framer *framer, uint32_t n)
{
    bool idle;

    pthread_mutex_lock(df_framer_stripe(framer, n));
    idle = framer->bodies[n].changing == 0;
    if (idle) {
        renew(framer, n, false);
        framer->bodies[n].body = 0;
    }
    pthread_mutex_unlock(df_framer_stripe(framer, n));
    return idle;
}

/* Under the lock. */
static void drop(struct df_framer *framer, uint32_t n)
{
    struct df_body *b = &framer->bodies[n];
    uint32_t *link = chain_of(framer, b->mount, b->body);

    if (!release(framer, n))
        return;
    while (*link != n)
        link = &framer->bodies[*link].next;
    *link = b->next;
    b->next = framer->free;
    framer->free = n;
}

static bool is_spare(struct df_body *b)
{
    bool again = b->again;

    b->again = false;
    return b->body && b->opens == 0 && !again;
}

/* Under the lock: one that nobody has open gives way, and that was not opened again since the last
 * round. So those that files are opened through outlive files that are opened once. */
static void spare(struct df_framer *framer)
{
    for (uint32_t i = 1; i < 2 * framer->top && !framer->free; i++) {
        uint32_t n = framer->hand;

        framer->hand = n + 1 < framer->top ? n + 1 : 1;
        if (is_spare(&framer->bodies[n]))
            drop(framer, n);
    }
}

/* Under the lock: there is a number that was never used, and memory for it. */
static bool has_unused(struct df_framer *framer)
{
    uint32_t left = framer->count - framer->made, count = left < GROWTH ? left : GROWTH;

    if (framer->top < framer->made)
        return true;
    if (count == 0 ||
        !df_room_make(framer->segment, df_content_number(framer->frames, framer->made),
                      count * sizeof(struct df_content)))
        return false;
    framer->made += count;
    atomic_store(&framer->frames->contents_made, framer->made);
    return true;
}

/* Under the lock: a free number, or 0. */
static uint32_t take(struct df_framer *framer)
{
    uint32_t n;

    if (!framer->free && has_unused(framer))
        return framer->top++;
    if (!framer->free)
        spare(framer);
    n = framer->free;
    if (n)
        framer->free = framer->bodies[n].next;
    return n;
}

/* Under the lock. */
static uint32_t add(struct df_framer *framer, unsigned index, int mount, uint64_t body)
{
    uint32_t *chain = chain_of(framer, mount, body), n = take(framer);
    struct df_body *b = &framer->bodies[n];

    if (!n)
        return 0;
    b->opens = 0;
    b->stays = b->again = false;
    b->index = index;
    b->next = *chain;
    *chain = n;
    pthread_mutex_lock(df_framer_stripe(framer, n));
    b->body = body;
    b->mount = mount;
    atomic_store(&df_content_number(framer->frames, n)->until, 0);
    renew(framer, n, true);
    pthread_mutex_unlock(df_framer_stripe(framer, n));
    return n;
}

/* Under the lock. One more open file has it. */
static DF_FLAT uint32_t find_or_add(struct df_framer *framer, unsigned index, int mount,
                                    uint64_t body, bool keep)
{
    uint32_t n = find(framer, mount, body);

    if (n && !keep)
        renew_locked(framer, n, true);
    if (n)
        framer->bodies[n].again = true;
    else
        n = add(framer, index, mount, body);
    if (n)
        framer->bodies[n].opens++;
    return n;
}

uint32_t df_framer_open(struct df_framer *framer, unsigned index, int mount, uint64_t body,
                        bool keep)
{
    uint32_t n;

    if (!framer->frames || !body || index >= DF_MOUNT_COUNT)
        return 0;
    if (keep && !atomic_load_explicit(&framer->mounts[index].keeps, memory_order_relaxed))
        atomic_store_explicit(&framer->mounts[index].keeps, true, memory_order_relaxed);
    pthread_mutex_lock(&framer->lock);
    n = find_or_add(framer, index, mount, body, keep);
    pthread_mutex_unlock(&framer->lock);
    return n;
}

uint32_t df_framer_open_unlisted(struct df_framer *framer, unsigned index, int mount, uint64_t body)
{
    uint32_t n;

    if (!framer->frames || !body || index >= DF_MOUNT_COUNT)
        return 0;
    pthread_mutex_lock(&framer->lock);
    n = find_or_add(framer, index, mount, body, true);
    if (n)
        framer->bodies[n].stays = true;
    pthread_mutex_unlock(&framer->lock);
    return n;
}

void df_framer_close(struct df_framer *framer, uint32_t content)
{
    struct df_body *b = &framer->bodies[content];

    if (!content)
        return;
    pthread_mutex_lock(&framer->lock);
    if (--b->opens == 0 && !b->stays &&
        !atomic_load_explicit(&framer->mounts[b->index].keeps, memory_order_relaxed))
        drop(framer, content);
    pthread_mutex_unlock(&framer->lock);
}

/* mount: of that id only; 0: of all. */
static void renew_all(struct df_framer *framer, int mount)
{
    pthread_mutex_lock(&framer->lock);
    for (uint32_t n = 1; n < framer->top; n++)
        if (atomic_load_explicit(&df_content_number(framer->frames, n)->id, memory_order_relaxed) &&
            (mount == 0 || framer->bodies[n].mount == mount))
            renew_locked(framer, n, true);
    pthread_mutex_unlock(&framer->lock);
}

void df_framer_forget(struct df_framer *framer)
{
    if (framer->frames)
        renew_all(framer, 0);
}

/* ---- believing ------------------------------------------------------------------------------- */

static bool is_same(const struct df_body *b, const struct stat *st)
{
    return b->size == st->st_size && b->changed.tv_sec == st->st_mtim.tv_sec &&
           b->changed.tv_nsec == st->st_mtim.tv_nsec;
}

void df_framer_believe(struct df_framer *framer, unsigned index, uint32_t content,
                       const struct stat *st, uint64_t valid_ns, bool check)
{
    struct df_body *b = &framer->bodies[content];
    uint64_t until = df_cacher_until(framer->cacher, valid_ns);

    if (valid_ns == 0 && !df_framer_timeless(framer, index))
        atomic_store_explicit(&framer->mounts[index].timeless, true, memory_order_relaxed);
    pthread_mutex_lock(df_framer_stripe(framer, content));
    if ((check || valid_ns != UINT64_MAX) && b->known && !is_same(b, st))
        renew(framer, content, true);
    b->known = true;
    b->size = st->st_size;
    b->changed = st->st_mtim;
    atomic_store(&df_content_number(framer->frames, content)->until, until);
    pthread_mutex_unlock(df_framer_stripe(framer, content));
}

bool df_framer_timeless(const struct df_framer *framer, unsigned index)
{
    return atomic_load_explicit(&framer->mounts[index].timeless, memory_order_relaxed);
}

bool df_framer_confirms(struct df_framer *framer, unsigned index, uint32_t content, uint64_t id)
{
    struct df_frames_ticket ticket = df_framer_ask(framer, index, content);

    if (!ticket.valid || ticket.id != id)
        return false;
    atomic_store_explicit(&framer->mounts[index].unfound, 0, memory_order_relaxed);
    return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The content of the file, with its stripe locked; 0, and nothing locked: it has none, or no longer
 * has. */
static uint32_t lock_content(struct df_framer *framer, const struct df_frames_changing *change)
{
    const struct df_body *b = &framer->bodies[change->content];

    if (!change->content)
        return 0;
    pthread_mutex_lock(df_framer_stripe(framer, change->content));
    if (b->body == change->body && b->mount == change->mount)
        return change->content;
    pthread_mutex_unlock(df_framer_stripe(framer, change->content));
    return 0;
}

void df_framer_begin(struct df_framer *framer, struct df_frames_changing *change)
{
    uint32_t n;

    if (!framer->frames || change->kind == DF_FRAMES_NOTHING)
        return;
    change->content = n = lock_content(framer, change);
    if (!n) {
        atomic_fetch_add(&framer->mounts[change->index].changing, 1);
        return;
    }
    framer->bodies[n].changing++;
    atomic_fetch_add(&df_content_number(framer->frames, n)->written, 1);
    if (change->kind == DF_FRAMES_RANGE && framer->bodies[n].any)
        df_framer_take_away(framer, n, (uint64_t)change->offset / DF_FRAME_SIZE,
                            ((uint64_t)change->offset + change->size) / DF_FRAME_SIZE);
    pthread_mutex_unlock(df_framer_stripe(framer, n));
}

static void renew_body(struct df_framer *framer, int mount, uint64_t body)
{
    uint32_t n;

    pthread_mutex_lock(&framer->lock);
    n = find(framer, mount, body);
    if (n)
        renew_locked(framer, n, true);
    pthread_mutex_unlock(&framer->lock);
}

/* The file has become known, by its body, or else any of the mount may be meant. */
static void end_unknown(struct df_framer *framer, const struct df_frames_changing *change)
{
    if (change->body)
        renew_body(framer, change->mount, change->body);
    else if (!change->known)
        renew_all(framer, change->mount);
}

void df_framer_end(struct df_framer *framer, const struct df_frames_changing *change)
{
    uint32_t n = change->content;

    if (!framer->frames || change->kind == DF_FRAMES_NOTHING)
        return;
    if (!n) {
        end_unknown(framer, change);
        atomic_fetch_sub(&framer->mounts[change->index].changing, 1);
        return;
    }
    pthread_mutex_lock(df_framer_stripe(framer, n));
    if (change->kind != DF_FRAMES_RANGE)
        renew(framer, n, true);
    framer->bodies[n].changing--;
    pthread_mutex_unlock(df_framer_stripe(framer, n));
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Sequentially consistent, as the counts of changes: who does not see this has begun its change of
 * names later than the listing was asked for, which is then not kept. */
void df_framer_lists(struct df_framer *framer, unsigned index)
{
    if (!atomic_load(&framer->mounts[index].lists))
        atomic_store(&framer->mounts[index].lists, true);
}

void df_framer_end_listing(struct df_framer *framer, unsigned index, int mount, uint64_t body)
{
    if (framer->frames && atomic_load(&framer->mounts[index].lists))
        renew_body(framer, mount, body);
}
