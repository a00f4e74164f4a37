/*
 * cache.c - fills the cache in the segment, and ends belief in what has changed.
 */
#include "segment/cache.h"

#include <string.h>
#include <sys/random.h>

#include "channel/sys.h"
#include "core/clock.h"

#define CALIBRATION_NS INT64_C(10000000) /* the two clocks are compared over at least that time */

/* For want of chance: each word another, and none 0. */
static struct df_path_seed seed_by_time(uint64_t ticks)
{
    struct df_path_seed seed;

    for (unsigned i = 0; i < 4; i++)
        seed.word[i] = (ticks + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    return seed;
}

void df_cacher_init(struct df_cacher *cacher, struct df_segment *segment)
{
    bool again;

    memset(cacher, 0, sizeof(*cacher));
    cacher->segment = segment;
    if (segment->cache_size == 0)
        return;
    cacher->cache = df_cache_of(segment);
    cacher->begun_ns = df_clock();
    cacher->begun_ticks = df_sys_ticks();
    again = cacher->cache->seed.word[0] != 0; /* of a server that has died */
    df_cache_ways_init(&cacher->ways, segment, again);
    if (!again && getrandom(&cacher->cache->seed, sizeof(cacher->cache->seed), 0) < 0)
        cacher->cache->seed = seed_by_time(cacher->begun_ticks);
}

void df_cacher_free(struct df_cacher *cacher)
{
    if (cacher->cache)
        df_cache_ways_free(&cacher->ways);
}

void df_cacher_mount(struct df_cacher *cacher, unsigned index)
{
    if (!cacher->cache)
        return;
    atomic_fetch_add(&cacher->cache->mounts[index].listings, 1); /* of none that was before */
    atomic_fetch_add(&cacher->cache->mounts[index].era, 1);
}

/* ---- changes --------------------------------------------------------------------------------- */

void df_cacher_begin(struct df_cacher *cacher, unsigned index, enum df_cache_change change)
{
    if (change != DF_CACHE_NOTHING)
        atomic_fetch_add(&cacher->mounts[index].changes[change].under_way, 1);
}

static void end_absent(struct df_cache *cache, unsigned index, uint32_t name)
{
    if (name != 0) {
        atomic_fetch_add(&cache->stripes[df_cache_absent(index, 0)], 1);
        atomic_fetch_add(&cache->stripes[df_cache_absent(index, name)], 1);
        return;
    }
    for (unsigned i = 0; i < DF_CACHE_ABSENT_STRIPES; i++)
        atomic_fetch_add(&cache->stripes[df_cache_absent(index, 0) + i], 1);
}

/* A change that is no file's: everything, or what was told. */
static void end_names(struct df_cache *cache, unsigned index, const struct df_changes *changes)
{
    if (!changes->listings)
        atomic_fetch_add(&cache->mounts[index].listings, 1);
    if (!changes->answers || changes->moved) {
        atomic_fetch_add(&cache->mounts[index].era, 1);
        return;
    }
    for (uint32_t i = 0; i < changes->object_count; i++)
        atomic_fetch_add(&cache->stripes[df_cache_stripe(changes->objects[i])], 1);
    if (changes->made)
        end_absent(cache, index, changes->name);
}

void df_cacher_end_told(struct df_cacher *cacher, unsigned index, const struct df_changes *changes)
{
    struct df_cache_state *state = &cacher->mounts[index];

    atomic_fetch_add(&state->changes[DF_CACHE_NAMES].ended, 1);
    if (cacher->cache)
        end_names(cacher->cache, index, changes);
    atomic_fetch_sub(&state->changes[DF_CACHE_NAMES].under_way, 1);
}

void df_cacher_end(struct df_cacher *cacher, unsigned index, enum df_cache_change change,
                   uint64_t ino)
{
    const struct df_changes nothing_told = {.listings = change == DF_CACHE_FILE};
    struct df_cache *cache = cacher->cache;

    if (change == DF_CACHE_NOTHING)
        return;
    atomic_fetch_add(&cacher->mounts[index].changes[change].ended, 1);
    if (cache && change == DF_CACHE_FILE && ino != 0)
        atomic_fetch_add(&cache->stripes[df_cache_stripe(ino)], 1);
    else if (cache)
        end_names(cache, index, &nothing_told);
    atomic_fetch_sub(&cacher->mounts[index].changes[change].under_way, 1);
}

static void forget_mount(struct df_cacher *cacher, unsigned index)
{
    atomic_fetch_add(&cacher->mounts[index].changes[DF_CACHE_NAMES].ended, 1);
    if (atomic_load(&cacher->cache->mounts[index].era) == 0)
        return;
    atomic_fetch_add(&cacher->cache->mounts[index].listings, 1);
    atomic_fetch_add(&cacher->cache->mounts[index].era, 1);
}

void df_cacher_forget(struct df_cacher *cacher)
{
    for (unsigned i = 0; cacher->cache && i < DF_MOUNT_COUNT; i++)
        forget_mount(cacher, i);
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Of the kinds from `first` on. */
static bool changing(const struct df_cache_state *state, enum df_cache_change first)
{
    return (first == DF_CACHE_FILE && atomic_load(&state->changes[DF_CACHE_FILE].under_way) > 0) ||
           atomic_load(&state->changes[DF_CACHE_NAMES].under_way) > 0;
}

static uint64_t ended(const struct df_cache_state *state, enum df_cache_change first)
{
    return atomic_load(&state->changes[DF_CACHE_NAMES].ended) +
           (first == DF_CACHE_FILE ? atomic_load(&state->changes[DF_CACHE_FILE].ended) : 0);
}

static struct df_cacher_ticket ask(struct df_cacher *cacher, unsigned index,
                                   enum df_cache_change first)
{
    const struct df_cache_state *state = &cacher->mounts[index];
    struct df_cacher_ticket ticket = {.changes = ended(state, first)};
    struct df_cache *cache = cacher->cache;

    if (!cache || changing(state, first))
        return ticket;
    ticket.era = first == DF_CACHE_NAMES ? atomic_load(&cache->mounts[index].listings)
                                         : atomic_load(&cache->mounts[index].era);
    ticket.valid = ticket.era != 0;
    return ticket;
}

struct df_cacher_ticket df_cacher_ask(struct df_cacher *cacher, unsigned index)
{
    return ask(cacher, index, DF_CACHE_FILE);
}

struct df_cacher_ticket df_cacher_ask_names(struct df_cacher *cacher, unsigned index)
{
    return ask(cacher, index, DF_CACHE_NAMES);
}

bool df_cacher_same_names(struct df_cacher *cacher, unsigned index, struct df_cacher_ticket ticket)
{
    struct df_cache_state *state = &cacher->mounts[index];

    if (!ticket.valid || changing(state, DF_CACHE_NAMES) ||
        ended(state, DF_CACHE_NAMES) != ticket.changes)
        return false;
    atomic_store_explicit(&state->kept, true, memory_order_relaxed);
    return true;
}

uint64_t df_cacher_until(const struct df_cacher *cacher, uint64_t valid_ns)
{
    int64_t elapsed;
    uint64_t ticks;

    if (valid_ns == UINT64_MAX || valid_ns == 0)
        return valid_ns;
    elapsed = df_clock() - cacher->begun_ns;
    ticks = df_sys_ticks();
    if (elapsed < CALIBRATION_NS)
        return 0;
    return ticks +
           (uint64_t)((double)valid_ns * (double)(ticks - cacher->begun_ticks) / (double)elapsed);
}

/* Released, so that none is seen before the odd sequence number. */
static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

static void fill(struct df_cache_entry *e, const struct df_cache_key *key, uint32_t answer,
                 uint64_t era, uint64_t until, uint32_t stripe, uint32_t count,
                 const struct stat *st)
{
    uint64_t words[DF_CACHE_WORDS];

    memcpy(words, st, sizeof(words));
    store(&e->hash[0], key->hash.low);
    store(&e->hash[1], key->hash.high);
    store(&e->era, era);
    store(&e->until, until);
    atomic_store_explicit(&e->answer, answer, memory_order_release);
    atomic_store_explicit(&e->stripe, stripe, memory_order_release);
    atomic_store_explicit(&e->count, count, memory_order_release);
    for (unsigned i = 0; !(answer & DF_CACHE_ABSENT) && i < DF_CACHE_WORDS; i++)
        store(&e->st[i], words[i]);
}

/* Before the first answer is there; who has not seen it asks once more. */
static void note_kept(struct df_cacher *cacher, unsigned index)
{
    _Atomic uint32_t *shared = &df_segment_mounts(cacher->segment)[index].kept;

    atomic_store_explicit(&cacher->mounts[index].kept, true, memory_order_relaxed);
    if (atomic_load_explicit(shared, memory_order_relaxed) == 0)
        atomic_store_explicit(shared, 1, memory_order_relaxed);
}

static uint32_t answer_of(unsigned index, const struct df_cache_key *key, int result)
{
    return (result == 0 ? 0 : DF_CACHE_ABSENT) | (key->nofollow ? DF_CACHE_NOFOLLOW : 0) |
           index * DF_CACHE_MOUNT;
}

/* Somebody else is writing the entry: then theirs is as good. */
void df_cacher_keep(struct df_cacher *cacher, unsigned index, struct df_cacher_ticket ticket,
                    const struct df_cache_key *key, int result, const struct stat *st,
                    uint64_t valid_ns)
{
    struct df_cache_state *state = &cacher->mounts[index];
    uint64_t until = ticket.valid ? df_cacher_until(cacher, valid_ns) : 0;
    uint32_t stripe =
        result == 0 ? df_cache_stripe(st->st_ino) : df_cache_absent(index, ticket.absent);
    struct df_cache_entry *e;
    struct df_cache_found found;
    uint32_t count, seq;

    if (until == 0)
        return;
    count = atomic_load(&cacher->cache->stripes[stripe]);
    if (changing(state, DF_CACHE_FILE) || ended(state, DF_CACHE_FILE) != ticket.changes)
        return;
    note_kept(cacher, index);
    if (!df_cache_ways_choose(&cacher->ways, key, &found))
        return;
    e = df_cache_way_entry(cacher->cache, found.way);
    seq = atomic_load(&e->seq);
    if (seq & 1 || !atomic_compare_exchange_strong(&e->seq, &seq, seq + 1))
        return;
    fill(e, key, answer_of(index, key, result), ticket.era, until, stripe, count, st);
    df_cache_ways_show(&found, key);
    atomic_store_explicit(&e->seq, seq + 2, memory_order_release);
}
