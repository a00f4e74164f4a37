/*
 * cache.c - the tables of entries: adding, removing, growing, dropping whole trees.
 */
#include "nodes/cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "nodes/link.h"

#define FIRST_LOG 3 /* eight chains: one cache line */

/* In front of the chains, on a line of its own, so that they are aligned. */
struct table_head {
    _Alignas(64) struct df_retired retired;
};

/* ---- entries ------------------------------------------------------------------------------- */

struct df_node_entry *df_node_cache_new(const struct df_node_name *name, struct df_node *fresh)
{
    bool own = fresh && name->len < DF_NODE_OWN_NAME;
    struct df_node_entry *entry = own ? &fresh->own : malloc(sizeof(*entry) + name->len + 1);

    if (!entry)
        return NULL;
    atomic_init(&entry->used, true);
    entry->hash = name->hash;
    entry->len = (uint16_t)name->len;
    entry->own = own;
    memcpy(entry->name, name->text, name->len);
    entry->name[name->len] = '\0';
    return entry;
}

void df_node_cache_discard(struct df_node_entry *entry)
{
    if (entry && !entry->own)
        free(entry);
}

void df_node_cache_free_entry(struct df_node_limbo *limbo)
{
    free((char *)limbo - offsetof(struct df_node_entry, limbo));
}

void df_node_cache_retire(struct df_nodes *nodes, struct df_node_entry *entry)
{
    if (!entry->own)
        df_node_retire(nodes, &entry->limbo, entry->hash);
}

/* ---- tables -------------------------------------------------------------------------------- */

static void free_table(struct df_retired *retired)
{
    free(retired); /* the first member of the head */
}

static uintptr_t new_table(unsigned log)
{
    size_t size = sizeof(struct table_head) + (sizeof(void *) << log);
    char *memory = aligned_alloc(64, size);

    if (!memory)
        return 0;
    memset(memory, 0, size);
    return (uintptr_t)(memory + sizeof(struct table_head)) | log;
}

static struct table_head *head_of(uintptr_t table)
{
    return (struct table_head *)((table & ~(uintptr_t)63) - sizeof(struct table_head));
}

static void push(uintptr_t table, struct df_node_entry *entry)
{
    _Atomic(struct df_node_entry *) *chain = df_node_cache_chain(table, entry->hash);

    atomic_store_explicit(&entry->next, atomic_load_explicit(chain, memory_order_relaxed),
                          memory_order_release);
    atomic_store_explicit(chain, entry, memory_order_release);
}

/* The entries that lead to `node`; NULL: all. */
static void expire(struct df_node *dir, const struct df_node *node)
{
    uintptr_t table = atomic_load_explicit(&dir->table, memory_order_acquire);

    for (uint32_t i = 0; table && i < (uint32_t)1 << (table & 63); i++) {
        struct df_node_entry *entry =
            atomic_load_explicit(df_node_cache_chain(table, i), memory_order_acquire);

        for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_acquire))
            if (!node || atomic_load_explicit(&entry->node, memory_order_relaxed) == node)
                df_node_cache_expire(entry);
    }
}

/* Entries move to the bigger table one by one. A reader on an old chain may follow one of them into
 * a new chain and miss what he looks for; he does not go in circles. Whoever told of a name
 * meanwhile may have missed it. */
static void grow(struct df_nodes *nodes, struct df_node *dir, uintptr_t old)
{
    uint32_t told = df_node_told(nodes);
    uintptr_t table = new_table((unsigned)(old & 63) + 1);

    if (!table)
        return; /* chains get longer */
    for (uint32_t i = 0; i < (uint32_t)1 << (old & 63); i++) {
        struct df_node_entry *entry =
            atomic_load_explicit(df_node_cache_chain(old, i), memory_order_relaxed);

        while (entry) {
            struct df_node_entry *next = atomic_load_explicit(&entry->next, memory_order_relaxed);

            push(table, entry);
            entry = next;
        }
    }
    atomic_store(&dir->table, table);
    if (atomic_load(&nodes->told) != told)
        expire(dir, NULL);
    df_gate_retire_nodes(&head_of(old)->retired, free_table, 1);
}

/* Counts for the bound on all entries. A directory reports in steps of two and an eighth of what it
 * has, so that making and removing files in it does not touch a counter shared by all. */
static void publish(struct df_nodes *nodes, struct df_node *dir)
{
    int64_t delta = (int64_t)dir->entries - dir->published;
    int64_t step = 2 + dir->published / 8;

    if (delta < step && -delta < step)
        return;
    dir->published = dir->entries;
    if (atomic_fetch_add_explicit(&nodes->population, delta, memory_order_relaxed) + delta >
        atomic_load_explicit(&nodes->limit, memory_order_relaxed))
        atomic_store_explicit(&nodes->crowded, true, memory_order_relaxed);
}

/* ---- the ring of directories that eviction goes around ------------------------------------- */

static void join_ring(struct df_nodes *nodes, struct df_node *dir)
{
    df_node_lock(&nodes->ring_lock);
    if (!nodes->ring) {
        dir->ring[0] = dir->ring[1] = dir;
        nodes->ring = dir;
    } else { /* behind the hand: its entries are new */
        dir->ring[0] = nodes->ring;
        dir->ring[1] = nodes->ring->ring[1];
        dir->ring[1]->ring[0] = dir;
        nodes->ring->ring[1] = dir;
    }
    df_node_set(dir, DF_NODE_IN_RING);
    df_node_unlock(&nodes->ring_lock);
}

void df_node_cache_leave_ring(struct df_nodes *nodes, struct df_node *dir)
{
    if (!df_node_has(dir, DF_NODE_IN_RING))
        return;
    df_node_lock(&nodes->ring_lock);
    if (nodes->ring == dir)
        nodes->ring = dir->ring[0] == dir ? NULL : dir->ring[0];
    dir->ring[0]->ring[1] = dir->ring[1];
    dir->ring[1]->ring[0] = dir->ring[0];
    df_node_clear(dir, DF_NODE_IN_RING);
    df_node_unlock(&nodes->ring_lock);
}

/* ---- adding and removing ------------------------------------------------------------------- */

/* A table with room, and whatever else a directory with entries has. */
static uintptr_t table_for_one_more(struct df_nodes *nodes, struct df_node *dir)
{
    uintptr_t table = atomic_load_explicit(&dir->table, memory_order_relaxed);

    if (DF_UNLIKELY(!table)) {
        table = new_table(FIRST_LOG);
        if (!table)
            return 0;
        atomic_store_explicit(&dir->table, table, memory_order_release);
    }
    if (DF_UNLIKELY(dir->entries >= (uint32_t)1 << (table & 63))) {
        grow(nodes, dir, table);
        table = atomic_load_explicit(&dir->table, memory_order_relaxed);
    }
    if (DF_UNLIKELY(!df_node_has(dir, DF_NODE_PINNED))) {
        df_node_hold(dir);
        df_node_set(dir, DF_NODE_PINNED);
    }
    if (DF_UNLIKELY(!df_node_has(dir, DF_NODE_IN_RING)))
        join_ring(nodes, dir);
    return table;
}

int df_node_cache_add(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry,
                      struct df_node *node)
{
    uintptr_t table = table_for_one_more(nodes, dir);

    if (!table)
        return -ENOMEM;
    atomic_store_explicit(&entry->node, node, memory_order_relaxed);
    atomic_store_explicit(&entry->expiry, 0, memory_order_relaxed);
    push(table, entry);
    dir->entries++;
    publish(nodes, dir);
    return 0;
}

void df_node_cache_fill(struct df_node_entry *entry, struct df_node *node)
{
    df_node_cache_expire(entry);
    atomic_store_explicit(&entry->node, node, memory_order_release);
}

/* Exchanged, not stored, so that `told` is read behind it. */
void df_node_cache_believe(const struct df_nodes *nodes, uint32_t told, struct df_node_entry *entry,
                           uint64_t expiry)
{
    atomic_exchange(&entry->expiry, expiry);
    if (atomic_load(&nodes->told) != told)
        df_node_cache_expire(entry);
}

void df_node_cache_remove(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry)
{
    _Atomic(struct df_node_entry *) *at =
        df_node_cache_chain(atomic_load_explicit(&dir->table, memory_order_relaxed), entry->hash);
    struct df_node_entry *next;

    while ((next = atomic_load_explicit(at, memory_order_relaxed)) != entry)
        at = &next->next;
    atomic_store_explicit(at, atomic_load_explicit(&entry->next, memory_order_relaxed),
                          memory_order_release);
    dir->entries--;
    publish(nodes, dir);
}

bool df_node_cache_unpin(struct df_node *dir)
{
    if (dir->entries > 0 || !df_node_has(dir, DF_NODE_PINNED))
        return false;
    df_node_clear(dir, DF_NODE_PINNED);
    return true;
}

/* ---- dropping trees ------------------------------------------------------------------------ */

/* Empties the table; its entries go in front of *list, linked through their limbo. */
static void detach_all(struct df_nodes *nodes, struct df_node *dir, struct df_node_limbo **list)
{
    uintptr_t table;
    bool unpinned;

    df_node_lock(&dir->lock);
    table = atomic_load_explicit(&dir->table, memory_order_relaxed);
    for (uint32_t i = 0; dir->entries > 0 && i < (uint32_t)1 << (table & 63); i++) {
        _Atomic(struct df_node_entry *) *chain = df_node_cache_chain(table, i);
        struct df_node_entry *entry = atomic_load_explicit(chain, memory_order_relaxed);

        atomic_store_explicit(chain, NULL, memory_order_release);
        for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_relaxed)) {
            entry->limbo.link = *list;
            *list = &entry->limbo;
        }
    }
    dir->entries = 0;
    publish(nodes, dir);
    unpinned = df_node_cache_unpin(dir);
    df_node_unlock(&dir->lock);
    if (unpinned)
        df_node_put(nodes, dir);
}

static struct df_node_entry *entry_of(struct df_node_limbo *limbo)
{
    return (struct df_node_entry *)((char *)limbo - offsetof(struct df_node_entry, limbo));
}

/* Children before their directory: it is met again when they are gone. */
static void drop_list(struct df_nodes *nodes, struct df_node_limbo *list,
                      struct df_node_forgets *forgets)
{
    while (list) {
        struct df_node_limbo *first = list;
        struct df_node *node = atomic_load_explicit(&entry_of(first)->node, memory_order_relaxed);

        if (node && df_node_is_dir(node))
            detach_all(nodes, node, &list);
        if (list != first)
            continue;
        list = first->link;
        df_node_put_among(nodes, node, forgets, entry_of(first)->own ? NULL : first);
    }
}

void df_node_cache_drop_later(struct df_node_drops *drops, struct df_node_entry *entry)
{
    entry->limbo.link = drops->entries;
    drops->entries = &entry->limbo;
}

bool df_node_cache_drop_now(struct df_node_drops *drops, struct df_node_entry *entry)
{
    struct df_node *node = atomic_load_explicit(&entry->node, memory_order_relaxed);

    assert(!drops->dead && !df_node_is_dir(node));
    if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1) {
        drops->dead = entry;
        return false;
    }
    atomic_store_explicit(&entry->node, NULL, memory_order_release); /* its reference is gone */
    df_node_cache_drop_later(drops, entry);
    return true;
}

void df_node_cache_put_later(struct df_node_drops *drops, struct df_node *node)
{
    assert(drops->node_count < DF_NODE_DROPS);
    drops->nodes[drops->node_count++] = node;
}

void df_node_cache_drop_all(struct df_nodes *nodes, struct df_node_drops *drops)
{
    struct df_node_forgets forgets;

    forgets.count = 0;
    if (drops->dead)
        df_node_bury(nodes, atomic_load_explicit(&drops->dead->node, memory_order_relaxed),
                     &forgets, drops->dead->own ? NULL : &drops->dead->limbo);
    drop_list(nodes, drops->entries, &forgets);
    while (drops->node_count > 0)
        df_node_put_among(nodes, drops->nodes[--drops->node_count], &forgets, NULL);
    df_node_cache_begin_drops(drops);
    df_node_send_forgets(nodes, &forgets);
}

void df_node_cache_prune(struct df_nodes *nodes, struct df_node *dir)
{
    struct df_node_limbo *list = NULL;
    struct df_node_forgets forgets;

    forgets.count = 0;
    detach_all(nodes, dir, &list);
    drop_list(nodes, list, &forgets);
    df_node_send_forgets(nodes, &forgets);
}

void df_node_cache_expire_other(struct df_node *dir, const struct df_node *node)
{
    df_node_lock(&dir->insert_lock);
    expire(dir, node);
    df_node_unlock(&dir->insert_lock);
}

void df_node_cache_expire_all(struct df_nodes *nodes)
{
    df_node_lock(&nodes->ring_lock);
    struct df_node *dir = nodes->ring;
    do {
        if (dir)
            expire(dir, NULL);
        dir = dir ? dir->ring[0] : NULL;
    } while (dir && dir != nodes->ring);
    df_node_unlock(&nodes->ring_lock);
}

/* ---- memory -------------------------------------------------------------------------------- */

void df_node_cache_empty_node(struct df_node *node)
{
    uintptr_t table;

    if (df_node_is_dir(node)) {
        table = atomic_load_explicit(&node->table, memory_order_relaxed);
        if (table)
            free(head_of(table));
    } else if (S_ISLNK(node->type)) {
        df_node_link_free(node);
    }
}

void df_node_cache_free_node(struct df_node *node)
{
    df_node_cache_empty_node(node);
    free(node);
}
