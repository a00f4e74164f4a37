/*
 * cache.h - answers of getattr that clients read in the segment, without a trip, a lock or a store.
 * Freestanding.
 *
 * An entry is the answer to one question: mount, start, name, flags, and who asks (search
 * permission is part of the answer). It is found by the hash of the question, 128 bits with a seed
 * of the server's. Attributes of symlinks are not kept, so what lstat was told is true for stat as
 * well, and they share an entry; not the other way round.
 *
 * Entries lie in the order in which they were first used, and a small table of sets tells which
 * have the hash: few answers take few pages, which each process that asks has to map by faults
 * (docs/decisions/064). When its sets are full, a larger table takes the place of that one
 * (docs/decisions/170). Who still looks in the old one finds what was there, or asks the server.
 *
 *   tables             the larger ones, the largest first; made when they are needed
 *   the first table    [DF_CACHE_SETS], from a multiple of DF_HUGE_SIZE (map.h) on
 *   struct df_cache    and behind it the entries, made bit by bit (room.h)
 *
 * It is believed while all of these hold:
 *   - its sequence number is even and the same before and after the copy;
 *   - the era of its mount is the one it was made in: every op that changes where names lead, or
 *     whose host does not tell what it changes (core/changes.h), begins a new one, and so do
 *     notifications of the plugin;
 *   - the count of its stripe is the one it was made at. An inode's is counted up by every op that
 *     changes what stat shows of one file (write, read: the access time; a name made or removed in
 *     a directory). An answer that there is no such name has one of its mount's stripes of absent
 *     names: that of the name which is missing, counted up by every op that makes a file of a name
 *     with this stripe, or anything else of any name; or one that every op counts up which makes a
 *     name, as what is missing may lie on the way;
 *   - its time is not over: what the plugin allowed (df_call.valid_ns).
 * Only the server writes, but for counts that a client's read ends answers by (DF_OFD_BRINGS); a
 * client that is killed while it reads has changed nothing. Memory is never given back, so there is
 * nothing to reclaim: an entry that is replaced fails the first test.
 */
#ifndef DF_CHANNEL_CACHE_H
#define DF_CHANNEL_CACHE_H

#include "channel/sys.h"
#include "channel/trip.h"
#include "core/path_hash.h"

/* Powers of two. */
#define DF_CACHE_SETS           1024 /* of the first table */
#define DF_CACHE_WAYS           8
#define DF_CACHE_ENTRIES_LEAST  (UINT64_C(1) << 15)
#define DF_CACHE_ENTRIES_MOST   (UINT64_C(1) << 24)
#define DF_CACHE_ENTRIES_OF_SET 4 /* in the largest table, if all entries are used */
#define DF_CACHE_STRIPES        4096
#define DF_CACHE_ABSENT_STRIPES 32 /* of each mount, of names that are absent */
#define DF_CACHE_ALL_STRIPES    (DF_CACHE_STRIPES + DF_MOUNT_COUNT * DF_CACHE_ABSENT_STRIPES)
#define DF_CACHE_WORDS          (sizeof(struct stat) / 8)

enum {                             /* df_cache_entry.answer */
       DF_CACHE_ABSENT = 1 << 0,   /* ENOENT; else there are attributes */
       DF_CACHE_NOFOLLOW = 1 << 1, /* true for a question with DF_WHERE_NOFOLLOW, too */
       DF_CACHE_MOUNT = 1 << 8,    /* times the index of the mount, for who puts answers in */
};

/* Flags of a question that are no part of it: what is kept of the name alone answers it, if that is
 * a directory. Its answer is one for who follows links. */
#define DF_CACHE_AS_DIRECTORY (DF_WHERE_DIRECTORY | DF_WHERE_DOT)

struct df_cache_entry {
    _Alignas(64) _Atomic uint32_t seq; /* odd: being written */
    _Atomic uint32_t answer;           /* DF_CACHE_* */
    _Atomic uint64_t hash[2];          /* 0, 0: never used */
    _Atomic uint64_t era;
    _Atomic uint64_t until; /* ticks (df_sys_ticks()); UINT64_MAX: until something changes */
    _Atomic uint32_t stripe, count;
    _Atomic uint64_t st[DF_CACHE_WORDS];
};

/* df_cache_way(). Each has an entry of its own from its first use on. One line of a processor's
 * cache. */
struct df_cache_set {
    _Alignas(64) _Atomic uint64_t ways[DF_CACHE_WAYS];
};

struct df_cache {
    struct df_path_seed seed;  /* one line with the next two */
    _Atomic uint64_t last_set; /* of the table: their count less one; it only grows */
    uint64_t last_entry;       /* the same of entries */
    struct {
        _Alignas(64) _Atomic uint64_t era; /* 0: nothing of the mount is believed */
        _Atomic uint64_t listings;         /* the same of listings (frames.h) */
    } mounts[DF_MOUNT_COUNT];
    /* Of inodes; behind them those of names that are absent. */
    _Alignas(64) _Atomic uint32_t stripes[DF_CACHE_ALL_STRIPES];
    _Alignas(4096) struct df_cache_entry entries[]; /* number 0 is none: it is never filled */
};

/* A way: the number of its entry, and 32 bits of the hash that stands there. 0: it has none. */
static inline uint64_t df_cache_way(uint32_t tag, uint32_t number)
{
    return (uint64_t)tag << 32 | number;
}

static inline uint32_t df_cache_way_tag(uint64_t way)
{
    return (uint32_t)(way >> 32);
}

static inline uint32_t df_cache_way_number(uint64_t way)
{
    return (uint32_t)way;
}

/* Clients can write to a way, so the number is not believed. */
static inline struct df_cache_entry *df_cache_way_entry(const struct df_cache *cache, uint64_t way)
{
    return (struct df_cache_entry *)&cache->entries[way & cache->last_entry];
}

/* The stripe of answers that a name is absent: of that name (core/changes.h), or, 0, of those of
 * which it is not known what is missing. */
static inline uint32_t df_cache_absent(unsigned index, uint32_t name)
{
    uint32_t which = name == 0 ? 0 : 1 + name % (DF_CACHE_ABSENT_STRIPES - 1);

    return DF_CACHE_STRIPES + index * DF_CACHE_ABSENT_STRIPES + which;
}

/* A question's hash, of all but whether the last symlink is followed. */
struct df_cache_key {
    struct df_path_hash hash;
    bool nofollow;
};

static inline uint32_t df_cache_key_tag(const struct df_cache_key *key)
{
    return (uint32_t)(key->hash.low >> 32);
}

/* The set of a tag in the table with that last set. A way's tag says which set it is in, so a table
 * can be made of a smaller one alone. Each table lies right before the one of half its size: it
 * begins as many sets before the cache as both, and all that are smaller, have. */
static inline struct df_cache_set *df_cache_set_of(const struct df_cache *cache, uint64_t last_set,
                                                   uint32_t tag)
{
    struct df_cache_set *end = (struct df_cache_set *)cache + DF_CACHE_SETS - 2;

    return end - last_set - (tag & last_set);
}

/* Bytes of all tables with as many sets and fewer. */
static inline uint64_t df_cache_tables_size(uint64_t sets)
{
    return (2 * sets - DF_CACHE_SETS) * sizeof(struct df_cache_set);
}

/* Sets of the largest table of a cache with room for so many answers. */
static inline uint64_t df_cache_most_sets(uint64_t entries)
{
    return entries / DF_CACHE_ENTRIES_OF_SET;
}

static inline struct df_cache *df_cache_of(const struct df_segment *segment)
{
    return (struct df_cache *)((char *)segment + segment->cache_at);
}

static inline uint32_t df_cache_stripe(uint64_t ino)
{
    return (uint32_t)(ino * UINT64_C(0x9e3779b97f4a7c15) >> 52) % DF_CACHE_STRIPES;
}

/* Acquired, so that the second look at the sequence number comes after it. */
static inline uint64_t df_cache_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline DF_FLAT bool df_cache_believes(const struct df_cache *cache, unsigned index,
                                             const struct df_cache_entry *e)
{
    uint32_t stripe = atomic_load_explicit(&e->stripe, memory_order_acquire);
    uint64_t until = df_cache_load(&e->until);

    return stripe < DF_CACHE_ALL_STRIPES && /* whoever shares the segment wrote it */
           df_cache_load(&e->era) == df_cache_load(&cache->mounts[index].era) &&
           atomic_load_explicit(&e->count, memory_order_acquire) ==
               atomic_load_explicit(&cache->stripes[stripe], memory_order_acquire) &&
           (until == UINT64_MAX || df_sys_ticks() < until);
}

/* `content`: id of the start's content (df_content_id()), so that the answer is found by whoever
 * has the same object open; 0: it has none, and the answer is the open file's own. */
void df_cache_key(const struct df_cache *cache, int32_t mount, const struct df_caller *caller,
                  const struct df_trip_where *where, uint64_t content, struct df_cache_key *key);

/* The answer to a trip's question, if it is there and believed: *result and, for 0, *st, which may
 * be the program's own memory (sys.h; false: it is not there). False leaves anything in *st.
 * `index`: of the mount's entry in the segment. */
bool df_cache_read(const struct df_trip *trip, const struct df_trip_where *where, unsigned index,
                   int *result, struct stat *st);

/* The same of an open file, by its handle with no name; ofd: the handle's, as it was a moment ago.
 * True for attributes only. */
bool df_cache_read_open(const struct df_segment *segment, const struct df_ofd *ofd, uint64_t handle,
                        unsigned index, struct stat *st);

#endif
