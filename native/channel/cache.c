/*
 * cache.c - hashes a question and reads its answer. Freestanding.
 */
#include "channel/cache.h"

#include <errno.h>

#include "channel/frames.h"
#include "channel/sys.h"
#include "core/export.h"

/* ---- the question ---------------------------------------------------------------------------- */

#define BY_CONTENT (UINT32_C(1) << 31) /* beside DF_WHERE_* */

/* The beginning of every question, and all of one about what is open. */
static DF_FLAT struct df_path_hash begin(const struct df_path_seed *seed, int32_t mount,
                                         uint32_t flags, uint64_t handle, uint64_t content)
{
    struct df_path_hash hash = {seed->word[0], seed->word[1]};

    flags |= content ? BY_CONTENT : 0;
    return df_path_mix(seed, hash, (uint64_t)(uint32_t)mount << 32 | flags,
                       content ? content : handle);
}

/* All that permission to search depends on, and how long the name is. */
static DF_FLAT struct df_path_hash mix_caller(const struct df_path_seed *seed,
                                              struct df_path_hash hash,
                                              const struct df_caller *caller, uint32_t len)
{
    hash = df_path_mix(seed, hash, (uint64_t)caller->uid << 32 | caller->gid,
                       (uint64_t)caller->group_count << 32 | len << 16 | caller->rights);
    for (uint32_t i = 0; i < caller->group_count; i++)
        hash = df_path_mix(seed, hash, caller->groups[i], i);
    return hash;
}

static DF_FLAT struct df_cache_key key_of(const struct df_cache *cache, int32_t mount,
                                          const struct df_caller *caller,
                                          const struct df_trip_where *where, uint64_t content)
{
    const struct df_path_seed *seed = &cache->seed;
    uint32_t asked = where->flags & ~(DF_WHERE_NOFOLLOW | DF_CACHE_AS_DIRECTORY);
    struct df_cache_key key = {
        .hash = begin(seed, mount, asked, where->base, content),
        .nofollow = where->flags & DF_WHERE_NOFOLLOW && !(where->flags & DF_CACHE_AS_DIRECTORY),
    };

    if (where->len > 0) { /* what is open already needs no permission to search */
        key.hash = mix_caller(seed, key.hash, caller, where->len);
        key.hash = df_path_mix_bytes(seed, key.hash, where->name, where->len);
    }
    return key;
}

void df_cache_key(const struct df_cache *cache, int32_t mount, const struct df_caller *caller,
                  const struct df_trip_where *where, uint64_t content, struct df_cache_key *key)
{
    *key = key_of(cache, mount, caller, where, content);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool is_key(const struct df_cache_entry *e, const struct df_cache_key *key)
{
    return df_cache_load(&e->hash[0]) == key->hash.low &&
           df_cache_load(&e->hash[1]) == key->hash.high;
}

/* The entry of that question, and its sequence number, which what is read of it belongs to. */
static DF_FLAT const struct df_cache_entry *find(const struct df_cache *cache,
                                                 const struct df_cache_key *key, uint32_t *seq)
{
    uint64_t last_set = atomic_load_explicit(&cache->last_set, memory_order_acquire);
    uint32_t tag = df_cache_key_tag(key);
    const struct df_cache_set *set = df_cache_set_of(cache, last_set, tag);

    for (unsigned i = 0; i < DF_CACHE_WAYS; i++) {
        uint64_t way = atomic_load_explicit(&set->ways[i], memory_order_acquire);
        const struct df_cache_entry *e = df_cache_way_entry(cache, way);

        if (df_cache_way_tag(way) != tag)
            continue;
        *seq = atomic_load_explicit(&e->seq, memory_order_acquire);
        if (!(*seq & 1) && is_key(e, key))
            return e;
    }
    return NULL;
}

/* The copy stands between two looks at the sequence number; a torn one fails the second. */
static DF_FLAT bool read_entry(const struct df_cache *cache, unsigned index,
                               const struct df_cache_key *key, int *result, struct stat *st)
{
    uint32_t seq = 0, answer;
    const struct df_cache_entry *e = find(cache, key, &seq);

    if (!e || !df_cache_believes(cache, index, e))
        return false;
    answer = atomic_load_explicit(&e->answer, memory_order_acquire);
    if (key->nofollow && !(answer & DF_CACHE_NOFOLLOW))
        return false;
    *result = answer & DF_CACHE_ABSENT ? -ENOENT : 0;
    if (*result == 0 && df_channel_user_copy_unsure(st, (const void *)e->st, sizeof(*st)) < 0)
        return false;
    df_sys_loads_before();
    return atomic_load_explicit(&e->seq, memory_order_relaxed) == seq;
}

bool df_cache_read(const struct df_trip *trip, const struct df_trip_where *where, unsigned index,
                   int *result, struct stat *st)
{
    const struct df_segment *segment = trip->link->segment;
    const struct df_cache *cache = df_cache_of(segment);
    uint64_t content = where->base ? df_content_id(segment, where->base) : 0;
    struct df_cache_key key = key_of(cache, trip->mount, trip->caller, where, content);

    return read_entry(cache, index, &key, result, st);
}

bool df_cache_read_open(const struct df_segment *segment, const struct df_ofd *ofd, uint64_t handle,
                        unsigned index, struct stat *st)
{
    const struct df_cache *cache = df_cache_of(segment);
    uint64_t content = df_content_id_of(segment, ofd, handle);
    struct df_cache_key key = {.hash = begin(&cache->seed, ofd->mount, 0, handle, content)};
    int result;

    return read_entry(cache, index, &key, &result, st) && result == 0;
}
