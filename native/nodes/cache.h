/*
 * cache.h - the entries of directories: (directory, name) -> node, or known to be absent.
 *
 * Each directory has a table of its own entries, a hash table that grows with them. Looking is free
 * of locks and may miss an entry while the table grows: a miss is certain only for who holds the
 * directory's lock (node.h says when a table may change). An entry never turns from present to
 * absent: it is removed and another one added. An absent one may turn present.
 */
#ifndef DF_NODES_CACHE_H
#define DF_NODES_CACHE_H

#include <string.h>

#include "core/path_hash.h"
#include "nodes/node.h"

/* One component of a name. */
struct df_node_name {
    const char *text; /* NUL-terminated only where that is said */
    uint32_t len;     /* 1 .. DF_NAME_MAX */
    uint32_t hash;
};

static inline uint32_t df_node_cache_hash(const struct df_nodes *nodes, const char *text,
                                          size_t len)
{
    uint64_t state = nodes->seed ^ len, a, b;

    while (len > 16) {
        memcpy(&a, text, 8);
        memcpy(&b, text + 8, 8);
        state = df_path_fold(a ^ UINT64_C(0x9e3779b97f4a7c15), b ^ state);
        text += 16;
        len -= 16;
    }
    df_path_tail(text, len, &a, &b);
    state = df_path_fold(a ^ UINT64_C(0x9e3779b97f4a7c15), b ^ state);
    return (uint32_t)(state ^ state >> 32);
}

static inline struct df_node_name df_node_cache_name(const struct df_nodes *nodes, const char *text,
                                                     size_t len)
{
    return (struct df_node_name){text, (uint32_t)len, df_node_cache_hash(nodes, text, len)};
}

/* memcmp() == 0 for 1 <= n; names are short, and a call costs more than the comparison. */
static inline bool df_node_cache_same(const char *a, const char *b, size_t n)
{
    uint64_t x, y, v, w;

    while (n > 16) {
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        if (x != y)
            return false;
        a += 8;
        b += 8;
        n -= 8;
    }
    df_path_tail(a, n, &x, &v);
    df_path_tail(b, n, &y, &w);
    return x == y && v == w;
}

/* The table's address and, in its low six bits, the logarithm of its size. */
static inline _Atomic(struct df_node_entry *) *df_node_cache_chain(uintptr_t table, uint32_t hash)
{
    _Atomic(struct df_node_entry *) *chains = (void *)(table & ~(uintptr_t)63);

    return &chains[hash & (((uint32_t)1 << (table & 63)) - 1)];
}

/* The entry of that name, present or absent, valid or not; NULL if there is none to be seen. */
static inline struct df_node_entry *df_node_cache_find(const struct df_node *dir,
                                                       const struct df_node_name *name)
{
    uintptr_t table = atomic_load_explicit(&dir->table, memory_order_acquire);
    struct df_node_entry *entry;

    if (DF_UNLIKELY(!table))
        return NULL;
    entry = atomic_load_explicit(df_node_cache_chain(table, name->hash), memory_order_acquire);
    for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_acquire))
        if (entry->hash == name->hash && entry->len == name->len &&
            df_node_cache_same(entry->name, name->text, name->len))
            return entry;
    return NULL;
}

/* Says that the entry was used; a shared line is written to once per round of eviction. */
static inline void df_node_cache_touch(struct df_node_entry *entry)
{
    if (DF_UNLIKELY(!atomic_load_explicit(&entry->used, memory_order_relaxed)))
        atomic_store_explicit(&entry->used, true, memory_order_relaxed);
}

/* The next use asks the plugin again. */
static inline void df_node_cache_expire(struct df_node_entry *entry)
{
    atomic_store_explicit(&entry->expiry, 0, memory_order_release);
}

/* ---- changing a table, under the lock of the directory ---- */

/* An entry that is in no table yet; NULL when memory is short. `fresh`: a node that nobody else has
 * seen and that the entry will lead to, or NULL. */
struct df_node_entry *df_node_cache_new(const struct df_node_name *name, struct df_node *fresh);

/* Gives back an entry that never was in a table. NULL is allowed. */
void df_node_cache_discard(struct df_node_entry *entry);

/* Puts the entry into the table, expired; it takes over the caller's reference to `node` (NULL:
 * absent). Returns 0, or -ENOMEM: nothing happened. */
int df_node_cache_add(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry,
                      struct df_node *node);

/* An absent entry turns present, and expires; takes over the caller's reference. */
void df_node_cache_fill(struct df_node_entry *entry, struct df_node *node);

/* An entry of the table is valid until `expiry`, unless the plugin has told of a name since
 * df_node_told(): the answer may be of before the change. Who tells counts that before he looks for
 * the entry. */
void df_node_cache_believe(const struct df_nodes *nodes, uint32_t told, struct df_node_entry *entry,
                           uint64_t expiry);

/* Takes the entry out of the table; it keeps its reference. Then df_node_cache_drop_later() or,
 * when the lock is released, df_node_cache_retire(). */
void df_node_cache_remove(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry);

#define DF_NODE_DROPS 8 /* a lookup or an entering leaves two at most */

/* What is to be dropped once no lock is held. Begin with df_node_cache_begin_drops(). */
struct df_node_drops {
    struct df_node_entry *dead;           /* its node has lost the last reference already */
    struct df_node_limbo *entries;        /* removed ones, with their references */
    struct df_node *nodes[DF_NODE_DROPS]; /* a reference of each */
    unsigned node_count;
};

static inline void df_node_cache_begin_drops(struct df_node_drops *drops)
{
    drops->dead = NULL;
    drops->entries = NULL;
    drops->node_count = 0;
}

void df_node_cache_drop_later(struct df_node_drops *drops, struct df_node_entry *entry);
void df_node_cache_put_later(struct df_node_drops *drops, struct df_node *node);

/* A removed entry of something else than a directory: drops its reference at once. True if others
 * hold the node; else it is buried later, and nobody will look at it again. One for each drops. */
bool df_node_cache_drop_now(struct df_node_drops *drops, struct df_node_entry *entry);

/* ---- with no lock of a directory held ---- */

/* Ends removed entries with all that is cached below them, and drops the references. */
void df_node_cache_drop_all(struct df_nodes *nodes, struct df_node_drops *drops);

static inline void df_node_cache_drop(struct df_nodes *nodes, struct df_node_drops *drops)
{
    if (drops->dead || drops->entries || drops->node_count > 0)
        df_node_cache_drop_all(nodes, drops);
}

/* Ends a removed entry whose reference went elsewhere. */
void df_node_cache_retire(struct df_nodes *nodes, struct df_node_entry *entry);

/* Drops every entry below the directory. */
void df_node_cache_prune(struct df_nodes *nodes, struct df_node *dir);

/* Expires the entry of `dir`, locked shared, that leads to `node`; rare, looks at all. Nobody has
 * an insert_lock in hand. */
void df_node_cache_expire_other(struct df_node *dir, const struct df_node *node);

/* Expires every entry of all directories, after df_node_tell(). */
void df_node_cache_expire_all(struct df_nodes *nodes);

/* ---- for node.c and evict.c ---- */

/* The directory has no entries but still its pin: takes the pin away. True: the caller drops the
 * reference, when the lock is released. Under the lock, exclusive. */
bool df_node_cache_unpin(struct df_node *dir);

void df_node_cache_leave_ring(struct df_nodes *nodes, struct df_node *dir);

/* Frees what hangs on a dead node; then it itself. */
void df_node_cache_empty_node(struct df_node *node);
void df_node_cache_free_node(struct df_node *node);
void df_node_cache_free_entry(struct df_node_limbo *limbo);

#endif
