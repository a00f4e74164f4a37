/*
 * entry_cache.h - paths that were verified lately: what stands there (or that nothing does), until
 * when that may be believed, and its attributes until when those may. What the kernel's dentry and
 * inode caches are to a FUSE file system, keyed by whole paths (docs/decisions/003).
 *
 * A fixed table of slots, one possible slot for each path: lossy, so a miss only costs a question
 * to the plugin. No locks, no allocation. Any thread. Slots are given out in the order in which
 * paths come, so that a few hundred paths touch a few pages of memory: the first touch of a page
 * costs as much as a question (docs/decisions/145).
 *
 * Staleness. Two rules keep an answer that was fetched before a change from being stored after it:
 *   - df_entry_cache_look() gives a ticket, the state of the slot. Only a store whose ticket is
 *     still true succeeds; every forget changes the state, also of a slot that holds another path.
 *   - df_entry_cache_flush() starts a new generation; a ticket carries the generation it saw.
 * So: look, ask the plugin, store - and: change through the plugin, then forget.
 * A listing brings attributes of objects that nobody has looked for; it takes no tickets before it
 * asks, so it stores nothing any more once something was forgotten meanwhile.
 */
#ifndef DF_PATHS_ENTRY_CACHE_H
#define DF_PATHS_ENTRY_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/path_hash.h"

#define DF_ENTRY_PLACES (1u << 16)            /* of two bytes; a path's hash tells its own */
#define DF_ENTRY_SLOTS  (DF_ENTRY_PLACES - 1) /* of 128 bytes; untouched ones take no memory */

/* Times are nanoseconds of one monotonic clock; 0 is in the past, this is never. */
#define DF_ENTRY_FOREVER UINT64_MAX

struct df_entry_slot;

struct df_entry_cache {
    struct df_entry_slot *slots;
    _Atomic uint16_t *places;    /* 1 + the slot of the paths of that hash; 0: none yet. Set once */
    _Atomic uint32_t given;      /* slots that were given out */
    struct df_path_seed seed;    /* random, fixed */
    _Atomic uint32_t generation; /* never 0: that marks a dead slot */
    _Atomic uint32_t listings;   /* listings in progress */
    _Atomic uint32_t changes;    /* forgets that met a listing; else not written to */
};

struct df_entry_ticket {
    uint64_t state;
    uint32_t generation;
};

enum df_entry_kind {
    DF_ENTRY_UNKNOWN, /* ask the plugin */
    DF_ENTRY_ABSENT,  /* known not to exist */
    DF_ENTRY_PRESENT,
};

/* What a look found. Without attributes of its own: see df_entry_cache_stat(). */
struct df_entry {
    struct df_entry_ticket ticket; /* always valid */
    enum df_entry_kind kind;       /* by the entry's own expiry */
    bool attributes;               /* attributes are stored and live, whatever the kind says */
    bool lasting;                  /* those that df_entry_cache_accessed() leaves are */
    mode_t mode;                   /* PRESENT: the type; permission bits only if `lasting` */
    ino_t ino;                     /* PRESENT */
    uint64_t expiry;               /* PRESENT or ABSENT: when that ends */
};

/* Returns 0, or -ENOMEM or what getrandom(2) says. */
int df_entry_cache_init(struct df_entry_cache *cache);
void df_entry_cache_destroy(struct df_entry_cache *cache);

static inline struct df_path_hash df_entry_cache_key(const struct df_entry_cache *cache,
                                                     const char *path, size_t len)
{
    return df_path_hash(&cache->seed, path, len);
}

/* What is known of `key` at `now`. */
void df_entry_cache_look(struct df_entry_cache *cache, struct df_path_hash key, uint64_t now,
                         struct df_entry *entry);

/* The attributes that the look saw, live or not; false when the slot has changed since. */
bool df_entry_cache_stat(struct df_entry_cache *cache, struct df_path_hash key,
                         const struct df_entry *entry, struct stat *st);

/* Stores what the plugin answered: the entry until `expiry` and the attributes until `attributes`
 * (a time in the past: do not store that part). Does nothing when the ticket is no longer true. */
void df_entry_cache_store(struct df_entry_cache *cache, struct df_path_hash key,
                          struct df_entry_ticket ticket, const struct stat *st, uint64_t expiry,
                          uint64_t attributes);

void df_entry_cache_store_absent(struct df_entry_cache *cache, struct df_path_hash key,
                                 struct df_entry_ticket ticket, uint64_t expiry);

/* Around a listing: the result of begin goes to df_entry_cache_listed(), which is asked between
 * look and store whether the listing is still true. */
uint32_t df_entry_cache_list_begin(struct df_entry_cache *cache);
bool df_entry_cache_listed(const struct df_entry_cache *cache, uint32_t begin);
void df_entry_cache_list_end(struct df_entry_cache *cache);

/* Forgets the entry and its attributes; true if something live (by its generation) was there. */
bool df_entry_cache_forget(struct df_entry_cache *cache, struct df_path_hash key);

/* Forgets the attributes alone: the object has changed, its name has not. */
void df_entry_cache_forget_attributes(struct df_entry_cache *cache, struct df_path_hash key);

/* The object was read: its times are no longer known, what else is known of it is. Cheap when they
 * are not in any case. An answer that is on its way is believed, as if it had come before. */
void df_entry_cache_accessed(struct df_entry_cache *cache, struct df_path_hash key);

/* Forgets everything: a directory was renamed, and nobody can enumerate what was below. */
void df_entry_cache_flush(struct df_entry_cache *cache);

#endif
