/*
 * cache_ways.c - which entry of the cache in the segment an answer is put in.
 */
#include "segment/cache_ways.h"

#include "channel/map.h"
#include "channel/room.h"
#include "channel/sys.h"

#define GROWTH  340 /* entries whose memory is made together: 64 KiB */
#define CROWDED 2   /* entries for each set, at least, before there is a larger table */
#define TRIES   64  /* sets that may have nothing to be robbed of */

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* They are used in turn. */
static unsigned count_used(const struct df_cache_set *set)
{
    unsigned used = 0;

    while (used < DF_CACHE_WAYS && df_cache_load(&set->ways[used]) != 0)
        used++;
    return used;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t offset_of(const struct df_cache_ways *ways, const void *at)
{
    return (uint64_t)((const char *)at - (const char *)ways->segment);
}

static void make_huge(struct df_cache_ways *ways, uint64_t offset)
{
    df_room_make_huge((char *)ways->segment + offset, DF_HUGE_SIZE);
}

/* Memory for entries. The first in a stretch of DF_HUGE_SIZE make all of it, if that can be had; to
 * make again what is there takes no time. */
static uint32_t make_entries(void *owner, uint32_t made)
{
    struct df_cache_ways *ways = owner;
    uint64_t left = ways->cache->last_entry - made, count = left < GROWTH ? left : GROWTH;
    struct df_cache_entry *from = &ways->cache->entries[made + 1];
    uint64_t huge = df_huge_aligned(offset_of(ways, from));

    if (count > 0 && huge < offset_of(ways, from + count))
        make_huge(ways, huge);
    return count > 0 && df_room_make(ways->segment, from, count * sizeof(*from)) ? (uint32_t)count
                                                                                 : 0;
}

/* Memory for the next table, before the others; in stretches likewise. */
static uint32_t make_table(void *owner, uint32_t made)
{
    struct df_cache_ways *ways = owner;
    uint32_t count = made + DF_CACHE_SETS;
    struct df_cache_set *end = (struct df_cache_set *)ways->cache - made, *from = end - count;
    uint64_t at = offset_of(ways, end) & ~(DF_HUGE_SIZE - 1);

    for (; at > offset_of(ways, from); at -= DF_HUGE_SIZE)
        make_huge(ways, at - DF_HUGE_SIZE);
    return df_room_make(ways->segment, from, count * sizeof(*from)) ? count : 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Under the lock, as what follows. */
static void show_table(struct df_cache_ways *ways, uint64_t last_set)
{
    store(&ways->last_set, last_set);
    store(&ways->cache->last_set, last_set);
}

/* Those ways of a set of the present table which the next has in a set of that number. */
static void fill_set(const struct df_cache_ways *ways, uint64_t last_set, uint32_t number)
{
    const struct df_cache_set *old =
        df_cache_set_of(ways->cache, df_cache_load(&ways->last_set), number);
    struct df_cache_set *set = df_cache_set_of(ways->cache, last_set, number);
    unsigned used = 0;

    for (unsigned i = 0; i < DF_CACHE_WAYS; i++) {
        uint64_t way = df_cache_load(&old->ways[i]);

        if (way != 0 && (df_cache_way_tag(way) & last_set) == number)
            store(&set->ways[used++], way);
    }
    while (used < DF_CACHE_WAYS)
        store(&set->ways[used++], 0);
}

static bool make_larger(struct df_cache_ways *ways)
{
    uint64_t sets = df_cache_load(&ways->last_set) + 1, last_set = 2 * sets - 1;

    if (2 * sets > df_cache_most_sets(ways->cache->last_entry + 1) ||
        ways->entries.used < CROWDED * sets ||
        !df_growth_reach(&ways->sets, (uint32_t)(4 * sets - DF_CACHE_SETS), make_table, ways))
        return false;
    for (uint32_t i = 0; i <= last_set; i++)
        fill_set(ways, last_set, i);
    show_table(ways, last_set);
    return true;
}

/* There is a larger table than that. */
static bool outgrow(struct df_cache_ways *ways, uint64_t last_set)
{
    bool larger;

    pthread_mutex_lock(&ways->entries.lock);
    larger = df_cache_load(&ways->last_set) != last_set || make_larger(ways);
    pthread_mutex_unlock(&ways->entries.lock);
    return larger;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* All entries are in use: one of another set, round and round. Under the lock. 0: none was found.
 */
static uint32_t rob(struct df_cache_ways *ways)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct df_cache_set *set =
            df_cache_set_of(ways->cache, df_cache_load(&ways->last_set), (uint32_t)ways->hand++);
        unsigned used = count_used(set);

        if (used > 0)
            return df_cache_way_number(atomic_exchange(&set->ways[used - 1], 0));
    }
    return 0;
}

/* Under the lock. 0: there is none. */
static uint32_t take_entry(struct df_cache_ways *ways)
{
    uint32_t number = df_growth_take(&ways->entries, make_entries, ways);

    return number > 0 ? number : rob(ways);
}

/* Another way of the tag's set becomes used. False: all are, or there is no entry for it. */
static bool begin_way(struct df_cache_ways *ways, uint32_t tag, struct df_cache_found *found)
{
    uint32_t number = 0;
    struct df_cache_set *set;

    pthread_mutex_lock(&ways->entries.lock);
    set = df_cache_set_of(ways->cache, df_cache_load(&ways->last_set), tag);
    if (count_used(set) < DF_CACHE_WAYS)
        number = take_entry(ways);
    if (number > 0) {
        found->at = &set->ways[count_used(set)]; /* it may have been robbed itself */
        found->way = df_cache_way(tag, number);
        store(found->at, found->way);
    }
    pthread_mutex_unlock(&ways->entries.lock);
    return number > 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool is_of(const struct df_cache *cache, uint64_t way, const struct df_cache_key *key)
{
    const struct df_cache_entry *e = df_cache_way_entry(cache, way);

    return df_cache_way_tag(way) == df_cache_key_tag(key) &&
           atomic_load_explicit(&e->hash[0], memory_order_relaxed) == key->hash.low &&
           atomic_load_explicit(&e->hash[1], memory_order_relaxed) == key->hash.high;
}

static bool find_own(const struct df_cache *cache, struct df_cache_set *set,
                     const struct df_cache_key *key, struct df_cache_found *found)
{
    for (unsigned i = 0; i < DF_CACHE_WAYS; i++) {
        *found = (struct df_cache_found){&set->ways[i], df_cache_load(&set->ways[i])};
        if (found->way != 0 && is_of(cache, found->way, key))
            return true;
    }
    return false;
}

/* Nobody would believe it. */
static bool is_dead(const struct df_cache *cache, uint64_t way)
{
    const struct df_cache_entry *e = df_cache_way_entry(cache, way);
    unsigned index = atomic_load_explicit(&e->answer, memory_order_relaxed) / DF_CACHE_MOUNT;

    return !df_cache_believes(cache, index % DF_MOUNT_COUNT, e);
}

static bool find_dead(const struct df_cache *cache, struct df_cache_set *set,
                      struct df_cache_found *found)
{
    for (unsigned i = 0; i < DF_CACHE_WAYS; i++) {
        *found = (struct df_cache_found){&set->ways[i], df_cache_load(&set->ways[i])};
        if (found->way != 0 && is_dead(cache, found->way))
            return true;
    }
    return false;
}

/* Round and round by the clock. */
static bool any(struct df_cache_set *set, struct df_cache_found *found)
{
    unsigned used = count_used(set);

    if (used == 0)
        return false;
    found->at = &set->ways[(df_sys_ticks() >> 8) % used];
    found->way = df_cache_load(found->at);
    return found->way != 0;
}

bool df_cache_ways_choose(struct df_cache_ways *ways, const struct df_cache_key *key,
                          struct df_cache_found *found)
{
    uint32_t tag = df_cache_key_tag(key);
    struct df_cache_set *set;
    uint64_t last_set;

    do {
        last_set = df_cache_load(&ways->last_set);
        set = df_cache_set_of(ways->cache, last_set, tag);
        if (find_own(ways->cache, set, key, found) || begin_way(ways, tag, found) ||
            find_dead(ways->cache, set, found))
            return true;
    } while (outgrow(ways, last_set));
    return any(set, found);
}

/* Unless it was robbed of its entry meanwhile. */
void df_cache_ways_show(const struct df_cache_found *found, const struct df_cache_key *key)
{
    uint64_t way = df_cache_way(df_cache_key_tag(key), df_cache_way_number(found->way));
    uint64_t expected = found->way;

    atomic_compare_exchange_strong(found->at, &expected, way);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void begin_table(struct df_cache_ways *ways, uint64_t sets)
{
    ways->sets.made = ways->sets.used = (uint32_t)(2 * sets - DF_CACHE_SETS);
    show_table(ways, sets - 1);
}

static bool is_table(const struct df_cache_ways *ways, uint64_t sets)
{
    return sets >= DF_CACHE_SETS && (sets & (sets - 1)) == 0 &&
           sets <= df_cache_most_sets(ways->cache->last_entry + 1);
}

/* What a server that has died has shown, unless a client has written to it. */
static void take_up(struct df_cache_ways *ways)
{
    uint64_t sets = df_cache_load(&ways->cache->last_set) + 1;

    begin_table(ways, is_table(ways, sets) ? sets : DF_CACHE_SETS);
    for (uint32_t i = 0; i <= df_cache_load(&ways->last_set); i++) {
        struct df_cache_set *set = df_cache_set_of(ways->cache, df_cache_load(&ways->last_set), i);

        for (unsigned w = 0; w < DF_CACHE_WAYS; w++) {
            uint32_t number = df_cache_way_number(df_cache_load(&set->ways[w]));

            if (ways->entries.used < number && number <= ways->cache->last_entry)
                ways->entries.used = ways->entries.made = number;
        }
    }
}

void df_cache_ways_init(struct df_cache_ways *ways, struct df_segment *segment, bool again)
{
    *ways = (struct df_cache_ways){.segment = segment, .cache = df_cache_of(segment)};
    pthread_mutex_init(&ways->entries.lock, NULL);
    if (again)
        take_up(ways);
    else
        begin_table(ways, DF_CACHE_SETS);
}

void df_cache_ways_free(struct df_cache_ways *ways)
{
    pthread_mutex_destroy(&ways->entries.lock);
}
