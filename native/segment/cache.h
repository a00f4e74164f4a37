/*
 * cache.h - the server's side of the cache in the segment: what is put in, and what ends belief.
 *
 * Why no stale answer is put in: an op that changes something is announced before it begins, and
 * counted when it has ended. An answer is kept only if no change was under way when it was asked
 * for, nor when it had come, and none ended in between; its era and count were read within that
 * time. A change that begins later ends that era, or that count, before its caller is answered.
 */
#ifndef DF_SEGMENT_CACHE_H
#define DF_SEGMENT_CACHE_H

#include <pthread.h>

#include "channel/cache.h"
#include "core/changes.h"
#include "segment/cache_ways.h"

enum df_cache_change {
    DF_CACHE_NOTHING, /* getattr and the like */
    DF_CACHE_FILE,    /* what stat shows of one file */
    DF_CACHE_NAMES,   /* names, owners, modes: everything, or what is told of it (df_changes) */
    DF_CACHE_CHANGES, /* how many kinds */
};

/* Of one mount; private to the server. */
struct df_cache_state {
    struct {
        _Alignas(64) _Atomic uint64_t ended; /* changes */
        _Atomic uint32_t under_way;
    } changes[DF_CACHE_CHANGES];
    _Atomic bool kept; /* some answer has been kept */
};

struct df_cacher {
    struct df_cache *cache; /* NULL: none */
    struct df_cache_state mounts[DF_MOUNT_COUNT];
    int64_t begun_ns; /* the two clocks at one moment */
    uint64_t begun_ticks;

    struct df_segment *segment;
    struct df_cache_ways ways;
};

void df_cacher_init(struct df_cacher *cacher, struct df_segment *segment);
void df_cacher_free(struct df_cacher *cacher);

/* A mount (its index) is there: from now on its answers may be kept. */
void df_cacher_mount(struct df_cacher *cacher, unsigned index);

/* Around an op. */
void df_cacher_begin(struct df_cacher *cacher, unsigned index, enum df_cache_change change);
/* ino: of the file; 0: not known. */
void df_cacher_end(struct df_cacher *cacher, unsigned index, enum df_cache_change change,
                   uint64_t ino);

/* After an op that changes names, of which the host has told what; what it has not told may be
 * anything. */
void df_cacher_end_told(struct df_cacher *cacher, unsigned index, const struct df_changes *changes);

/* Nothing of any mount is believed any more. */
void df_cacher_forget(struct df_cacher *cacher);

/* Before a getattr whose answer may be kept, or a readdir: only changes of names matter to it. */
struct df_cacher_ticket {
    bool valid;
    uint32_t absent;       /* by who keeps that there is no such name: df_call.absent */
    uint64_t changes, era; /* era: of the answers, or of the listings */
};
struct df_cacher_ticket df_cacher_ask(struct df_cacher *cacher, unsigned index);
struct df_cacher_ticket df_cacher_ask_names(struct df_cacher *cacher, unsigned index);

/* After a readdir: nothing has changed, what was listed is of the ticket's era and may be kept. */
bool df_cacher_same_names(struct df_cacher *cacher, unsigned index, struct df_cacher_ticket ticket);

/* The end of a time that begins now, in ticks; 0: there is none, or it cannot be told yet. */
uint64_t df_cacher_until(const struct df_cacher *cacher, uint64_t valid_ns);

/* Keeps the answer: result 0 with *st, or -ENOENT. valid_ns: df_call.valid_ns. */
void df_cacher_keep(struct df_cacher *cacher, unsigned index, struct df_cacher_ticket ticket,
                    const struct df_cache_key *key, int result, const struct stat *st,
                    uint64_t valid_ns);

#endif
