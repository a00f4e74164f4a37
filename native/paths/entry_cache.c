/*
 * entry_cache.c - the table of verified paths: a seqlock in each slot, taken by stores alone.
 *
 * The state word of a slot:
 *
 *     63           32 31                    3  2      1      0
 *     | generation    | count of changes     | aged | bare | busy |
 *
 *   busy        a store is writing the slot's other words
 *   bare        the attributes were forgotten
 *   aged        the times among them were
 *   generation  of the cache when the content was fetched; another one: the content is dead
 *
 * A reader copies words and believes them when the state is unchanged behind them. A forget is one
 * compare-and-swap of the state, also while a store is busy: the store then finds the state
 * changed and leaves the slot dead. Nobody ever waits. All words are atomics, acquired by readers
 * and released by stores, because fences are invisible to ThreadSanitizer; on x86 both are plain
 * moves.
 */
#include "paths/entry_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/pages.h"

enum {
    STATE_BUSY = 1 << 0,
    STATE_BARE = 1 << 1,
    STATE_AGED = 1 << 2,
    STATE_STEP = 1 << 3, /* one change */
};

/* The words of a slot behind its state. */
enum {
    WORD_TAG_LOW,
    WORD_TAG_HIGH,
    WORD_EXPIRY,     /* of the entry */
    WORD_ATTRIBUTES, /* expiry of the attributes */
    WORD_MODE_NLINK, /* mode (0: absent), nlink */
    WORD_INO,
    WORD_UID_GID,
    WORD_RDEV, /* second cache line from here on: attributes alone */
    WORD_SIZE,
    WORD_BLOCKS,
    WORD_ATIME,
    WORD_MTIME,
    WORD_CTIME,
    WORD_ATIME_MTIME_NSEC,
    WORD_CTIME_NSEC_BLKSIZE,
    WORD_COUNT,
};

struct df_entry_slot {
    _Atomic uint64_t state;
    _Atomic uint64_t word[WORD_COUNT]; /* written under STATE_BUSY */
};

_Static_assert(sizeof(struct df_entry_slot) == 128, "two cache lines");

#define SLOTS_SIZE  (DF_ENTRY_SLOTS * sizeof(struct df_entry_slot))
#define PLACES_SIZE (DF_ENTRY_PLACES * sizeof(uint16_t))

/* The next slot for a place that has none. Where others were faster a number is lost; once all are
 * given out they are given again, to places that then push out each other's paths. */
static uint16_t give_slot(struct df_entry_cache *cache, _Atomic uint16_t *place)
{
    uint32_t given = atomic_fetch_add_explicit(&cache->given, 1, memory_order_relaxed);
    uint16_t number = (uint16_t)(1 + given % DF_ENTRY_SLOTS), there = 0;

    return atomic_compare_exchange_strong_explicit(place, &there, number, memory_order_relaxed,
                                                   memory_order_relaxed)
               ? number
               : there;
}

static inline struct df_entry_slot *slot_of(struct df_entry_cache *cache, struct df_path_hash key)
{
    _Atomic uint16_t *place = &cache->places[key.low % DF_ENTRY_PLACES];
    uint16_t number = atomic_load_explicit(place, memory_order_relaxed);

    return &cache->slots[(number ? number : give_slot(cache, place)) - 1];
}

static inline uint64_t get(const struct df_entry_slot *slot, int word)
{
    return atomic_load_explicit(&slot->word[word], memory_order_acquire);
}

static inline void put(struct df_entry_slot *slot, int word, uint64_t value)
{
    atomic_store_explicit(&slot->word[word], value, memory_order_release);
}

static inline uint64_t pack(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static inline bool unchanged(const struct df_entry_slot *slot, uint64_t state)
{
    return atomic_load_explicit(&slot->state, memory_order_relaxed) == state;
}

/* One more change. A store that is busy, or about to begin with an older ticket, will notice. */
static inline uint64_t bump(uint64_t state, uint32_t generation)
{
    return pack(generation, (uint32_t)state + STATE_STEP);
}

/* The same, with a new content or none. */
static inline uint64_t settle(uint64_t state, uint32_t generation)
{
    return bump(state & ~(uint64_t)(STATE_BUSY | STATE_BARE | STATE_AGED), generation);
}

static inline bool holds(const struct df_entry_slot *slot, struct df_path_hash key)
{
    return get(slot, WORD_TAG_LOW) == key.low && get(slot, WORD_TAG_HIGH) == key.high;
}

int df_entry_cache_init(struct df_entry_cache *cache)
{
    char *slots = df_pages_new(SLOTS_SIZE + PLACES_SIZE);
    if (!slots)
        return -ENOMEM;
    if (getrandom(&cache->seed, sizeof(cache->seed), 0) != sizeof(cache->seed)) {
        int error = errno;
        df_pages_free(slots, SLOTS_SIZE + PLACES_SIZE);
        return -error;
    }
    cache->slots = (struct df_entry_slot *)slots;
    cache->places = (_Atomic uint16_t *)(slots + SLOTS_SIZE);
    atomic_init(&cache->given, 0);
    atomic_init(&cache->generation, 1);
    atomic_init(&cache->listings, 0);
    atomic_init(&cache->changes, 0);
    return 0;
}

void df_entry_cache_destroy(struct df_entry_cache *cache)
{
    df_pages_free(cache->slots, SLOTS_SIZE + PLACES_SIZE);
    cache->slots = NULL;
}

void df_entry_cache_look(struct df_entry_cache *cache, struct df_path_hash key, uint64_t now,
                         struct df_entry *entry)
{
    struct df_entry_slot *slot = slot_of(cache, key);
    uint32_t generation = atomic_load_explicit(&cache->generation, memory_order_acquire);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

    *entry = (struct df_entry){.ticket = {.state = state, .generation = generation}};
    if (state >> 32 != generation || state & STATE_BUSY || !holds(slot, key))
        return;
    uint64_t expiry = get(slot, WORD_EXPIRY);
    uint64_t attributes = get(slot, WORD_ATTRIBUTES);
    uint64_t mode = get(slot, WORD_MODE_NLINK) >> 32;
    uint64_t ino = get(slot, WORD_INO);
    if (!unchanged(slot, state))
        return;
    entry->mode = (mode_t)mode;
    entry->ino = ino;
    entry->expiry = expiry;
    entry->lasting = mode != 0 && attributes > now && !(state & STATE_BARE);
    entry->attributes = entry->lasting && !(state & STATE_AGED);
    if (expiry > now)
        entry->kind = mode ? DF_ENTRY_PRESENT : DF_ENTRY_ABSENT;
}

bool df_entry_cache_stat(struct df_entry_cache *cache, struct df_path_hash key,
                         const struct df_entry *entry, struct stat *st)
{
    struct df_entry_slot *slot = slot_of(cache, key);
    uint64_t mode_nlink = get(slot, WORD_MODE_NLINK), uid_gid = get(slot, WORD_UID_GID);
    uint64_t nsec = get(slot, WORD_ATIME_MTIME_NSEC), rest = get(slot, WORD_CTIME_NSEC_BLKSIZE);

    memset(st, 0, sizeof(*st)); /* the words the kernel keeps for later */
    st->st_ino = get(slot, WORD_INO);
    st->st_mode = (mode_t)(mode_nlink >> 32);
    st->st_nlink = (uint32_t)mode_nlink;
    st->st_uid = (uid_t)(uid_gid >> 32);
    st->st_gid = (gid_t)uid_gid;
    st->st_rdev = get(slot, WORD_RDEV);
    st->st_size = (off_t)get(slot, WORD_SIZE);
    st->st_blksize = (uint32_t)rest;
    st->st_blocks = (blkcnt_t)get(slot, WORD_BLOCKS);
    st->st_atim = (struct timespec){(time_t)get(slot, WORD_ATIME), (long)(nsec >> 32)};
    st->st_mtim = (struct timespec){(time_t)get(slot, WORD_MTIME), (uint32_t)nsec};
    st->st_ctim = (struct timespec){(time_t)get(slot, WORD_CTIME), (long)(rest >> 32)};
    return unchanged(slot, entry->ticket.state);
}

/* Takes the slot for a store; false when the ticket is no longer true or another store is busy. */
static bool begin(struct df_entry_slot *slot, uint64_t state)
{
    return !(state & STATE_BUSY) &&
           atomic_compare_exchange_strong_explicit(&slot->state, &state, state | STATE_BUSY,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Publishes what was written since begin(), or, when the slot was told to forget meanwhile, leaves
 * it dead. */
static void commit(struct df_entry_slot *slot, uint64_t state, uint32_t generation)
{
    uint64_t seen = state | STATE_BUSY;
    uint64_t next = settle(state, generation);

    while (!atomic_compare_exchange_weak_explicit(&slot->state, &seen, next, memory_order_release,
                                                  memory_order_relaxed)) {
        if (seen != (state | STATE_BUSY))
            next = settle(seen, 0);
    }
}

static void put_stat(struct df_entry_slot *slot, const struct stat *st)
{
    put(slot, WORD_UID_GID, pack(st->st_uid, st->st_gid));
    put(slot, WORD_RDEV, st->st_rdev);
    put(slot, WORD_SIZE, (uint64_t)st->st_size);
    put(slot, WORD_BLOCKS, (uint64_t)st->st_blocks);
    put(slot, WORD_ATIME, (uint64_t)st->st_atim.tv_sec);
    put(slot, WORD_MTIME, (uint64_t)st->st_mtim.tv_sec);
    put(slot, WORD_CTIME, (uint64_t)st->st_ctim.tv_sec);
    put(slot, WORD_ATIME_MTIME_NSEC,
        pack((uint32_t)st->st_atim.tv_nsec, (uint32_t)st->st_mtim.tv_nsec));
    put(slot, WORD_CTIME_NSEC_BLKSIZE,
        pack((uint32_t)st->st_ctim.tv_nsec, (uint32_t)st->st_blksize));
}

void df_entry_cache_store(struct df_entry_cache *cache, struct df_path_hash key,
                          struct df_entry_ticket ticket, const struct stat *st, uint64_t expiry,
                          uint64_t attributes)
{
    struct df_entry_slot *slot = slot_of(cache, key);

    if (!begin(slot, ticket.state))
        return;
    put(slot, WORD_TAG_LOW, key.low);
    put(slot, WORD_TAG_HIGH, key.high);
    put(slot, WORD_EXPIRY, expiry);
    put(slot, WORD_ATTRIBUTES, attributes);
    put(slot, WORD_MODE_NLINK, pack(st->st_mode, (uint32_t)st->st_nlink));
    put(slot, WORD_INO, st->st_ino);
    if (attributes)
        put_stat(slot, st);
    commit(slot, ticket.state, ticket.generation);
}

void df_entry_cache_store_absent(struct df_entry_cache *cache, struct df_path_hash key,
                                 struct df_entry_ticket ticket, uint64_t expiry)
{
    static const struct stat absent;
    df_entry_cache_store(cache, key, ticket, &absent, expiry, 0);
}

/* ---- listings ---- */

uint32_t df_entry_cache_list_begin(struct df_entry_cache *cache)
{
    atomic_fetch_add(&cache->listings, 1);
    return atomic_load(&cache->changes);
}

bool df_entry_cache_listed(const struct df_entry_cache *cache, uint32_t begin)
{
    return atomic_load(&cache->changes) == begin;
}

void df_entry_cache_list_end(struct df_entry_cache *cache)
{
    atomic_fetch_sub(&cache->listings, 1);
}

/* Before a slot is told to forget. Whoever sees no listing here has changed the plugin's state
 * before that listing began. */
static void tell_listings(struct df_entry_cache *cache)
{
    if (atomic_load(&cache->listings))
        atomic_fetch_add(&cache->changes, 1);
}

/* ---- forgetting ---- */

bool df_entry_cache_forget(struct df_entry_cache *cache, struct df_path_hash key)
{
    struct df_entry_slot *slot = slot_of(cache, key);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire), next;
    bool held;

    tell_listings(cache);
    do {
        held = holds(slot, key);
        next = bump(state, held ? 0 : (uint32_t)(state >> 32));
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &state, next,
                                                    memory_order_acq_rel, memory_order_acquire));
    return held && state >> 32 == atomic_load_explicit(&cache->generation, memory_order_relaxed);
}

static void mark(struct df_entry_cache *cache, struct df_path_hash key, uint64_t bit)
{
    struct df_entry_slot *slot = slot_of(cache, key);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire), next;

    tell_listings(cache);
    do {
        next = bump(state, (uint32_t)(state >> 32));
        if (holds(slot, key))
            next |= bit;
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &state, next,
                                                    memory_order_acq_rel, memory_order_acquire));
}

void df_entry_cache_forget_attributes(struct df_entry_cache *cache, struct df_path_hash key)
{
    mark(cache, key, STATE_BARE);
}

void df_entry_cache_accessed(struct df_entry_cache *cache, struct df_path_hash key)
{
    const struct df_entry_slot *slot = slot_of(cache, key);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

    if (state >> 32 && !(state & (STATE_BARE | STATE_AGED)) && holds(slot, key))
        mark(cache, key, STATE_AGED);
}

void df_entry_cache_flush(struct df_entry_cache *cache)
{
    uint32_t old = atomic_load_explicit(&cache->generation, memory_order_relaxed), next;

    tell_listings(cache);
    do {
        next = old + 1 ? old + 1 : 1;
    } while (!atomic_compare_exchange_weak_explicit(&cache->generation, &old, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
}
