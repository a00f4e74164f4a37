/*
 * cache_ways.h - which entry of the cache in the segment an answer is put in: its own, one that was
 * never used, or one of an answer that gives way.
 *
 * The table of sets doubles when a set is full of answers that are believed, as long as there are
 * entries for so many sets. The new one is filled from the old before it is shown, and the old one
 * is not written to any more; but who has chosen a way there before may still do so. Then the
 * answer is not found, and the next who asks puts it in.
 */
#ifndef DF_SEGMENT_CACHE_WAYS_H
#define DF_SEGMENT_CACHE_WAYS_H

#include "channel/cache.h"
#include "segment/growth.h"

struct df_cache_ways {
    struct df_segment *segment;
    struct df_cache *cache;
    _Atomic uint64_t last_set; /* of the table: clients can write to the one in the segment */
    struct df_growth entries;  /* its lock protects the rest, and ways that get entries */
    struct df_growth sets;     /* of all tables */
    uint64_t hand;             /* the set that was last robbed of an entry */
};

/* `again`: after a server that has died. Its table stays in use, and ways have their entries. */
void df_cache_ways_init(struct df_cache_ways *ways, struct df_segment *segment, bool again);
void df_cache_ways_free(struct df_cache_ways *ways);

struct df_cache_found {
    _Atomic uint64_t *at;
    uint64_t way; /* what stood there; it has an entry */
};

/* The way for the answer to that question. False: there is no memory. */
bool df_cache_ways_choose(struct df_cache_ways *ways, const struct df_cache_key *key,
                          struct df_cache_found *found);

/* Its entry has that answer now. */
void df_cache_ways_show(const struct df_cache_found *found, const struct df_cache_key *key);

#endif
