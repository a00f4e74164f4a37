/*
 * cache.c - hashes a question and reads its answer. Freestanding.
 */
#include "channel/cache.h"

#include <errno.h>

#include "channel/sys.h"

/* ---- the question ---------------------------------------------------------------------------- */

/* The two halves of a 128-bit product folded: each bit of both factors matters. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define M1 UINT64_C(0xa0761d6478bd642f)
#define M2 UINT64_C(0xe7037ed1a0b428db)

static void mix(struct df_cache_key *key, uint64_t word)
{
    key->hash[0] = fold(key->hash[0] ^ word, M1);
    key->hash[1] = fold(key->hash[1] ^ word, M2);
}

static void mix_name(struct df_cache_key *key, const char *name, uint32_t len)
{
    uint64_t word = 0;

    for (; len >= 8; len -= 8, name += 8) {
        __builtin_memcpy(&word, name, 8);
        mix(key, word);
    }
    word = 0;
    for (uint32_t i = 0; i < len; i++)
        word |= (uint64_t)(unsigned char)name[i] << 8 * i;
    mix(key, word | (uint64_t)(len + 1) << 56);
}

/* All that permission to search depends on. */
static void mix_caller(struct df_cache_key *key, const struct df_caller *caller)
{
    mix(key, (uint64_t)caller->uid << 32 | caller->gid);
    mix(key, (uint64_t)caller->group_count << 1 | caller->capable);
    for (uint32_t i = 0; i < caller->group_count; i++)
        mix(key, caller->groups[i]);
}

#define BY_CONTENT (UINT32_C(1) << 31) /* beside DF_WHERE_* */

void df_cache_key(const struct df_cache *cache, int32_t mount, const struct df_caller *caller,
                  const struct df_trip_where *where, uint64_t content, struct df_cache_key *key)
{
    uint32_t asked = where->flags & ~(DF_WHERE_NOFOLLOW | DF_CACHE_AS_DIRECTORY);
    uint32_t flags = asked | (content ? BY_CONTENT : 0);

    key->nofollow = where->flags & DF_WHERE_NOFOLLOW && !(where->flags & DF_CACHE_AS_DIRECTORY);
    key->hash[0] = cache->seed[0];
    key->hash[1] = cache->seed[1];
    mix(key, (uint64_t)(uint32_t)mount << 32 | flags);
    mix(key, content ? content : where->base);
    if (where->len == 0) /* what is open already needs no permission to search */
        return;
    mix_caller(key, caller);
    mix_name(key, where->name, where->len);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Acquired, so that the second look at the sequence number comes after it. */
static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static bool is_key(const struct df_cache_entry *e, const struct df_cache_key *key)
{
    return load(&e->hash[0]) == key->hash[0] && load(&e->hash[1]) == key->hash[1];
}

static bool is_believed(const struct df_cache *cache, unsigned index,
                        const struct df_cache_entry *e)
{
    uint32_t stripe = atomic_load_explicit(&e->stripe, memory_order_acquire) %
                      (DF_CACHE_STRIPES + DF_MOUNT_COUNT);
    uint64_t until = load(&e->until);

    return load(&e->era) == atomic_load_explicit(&cache->mounts[index].era, memory_order_acquire) &&
           atomic_load_explicit(&e->count, memory_order_acquire) ==
               atomic_load_explicit(&cache->stripes[stripe], memory_order_acquire) &&
           (until == UINT64_MAX || df_sys_ticks() < until);
}

/* The copy stands between two looks at the sequence number; a torn one fails the second. */
static bool read_entry(const struct df_cache *cache, unsigned index, const struct df_cache_entry *e,
                       const struct df_cache_key *key, int *result, struct stat *st)
{
    uint32_t seq = atomic_load_explicit(&e->seq, memory_order_acquire);
    uint32_t answer = atomic_load_explicit(&e->answer, memory_order_acquire);

    if (seq & 1 || !is_key(e, key) || !is_believed(cache, index, e) ||
        (key->nofollow && !(answer & DF_CACHE_NOFOLLOW)))
        return false;
    *result = answer & DF_CACHE_ABSENT ? -ENOENT : 0;
    if (*result == 0 && df_channel_user_copy_unsure(st, (const void *)e->st, sizeof(*st)) < 0)
        return false;
    df_sys_loads_before();
    return atomic_load_explicit(&e->seq, memory_order_relaxed) == seq;
}

bool df_cache_read(const struct df_cache *cache, unsigned index, const struct df_cache_key *key,
                   int *result, struct stat *st)
{
    const _Atomic uint32_t *set = cache->ways[df_cache_key_set(key)];
    uint16_t tag = df_cache_key_tag(key);

    for (unsigned i = 0; i < DF_CACHE_WAYS; i++) {
        uint32_t way = atomic_load_explicit(&set[i], memory_order_acquire);
        const struct df_cache_entry *e = df_cache_way_entry(cache, way);

        if (way != 0 && df_cache_way_tag(way) == tag && is_key(e, key))
            return read_entry(cache, index, e, key, result, st);
    }
    return false;
}
