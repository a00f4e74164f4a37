/*
 * node.c - nodes by number: references, counts of lookups, FORGET, and memory given to the gate.
 */
#include "host/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/node_attr.h"
#include "host/node_cache.h"

#define ROOT_ID     1u
#define FIRST_CHAINS 8u

/* ---- shards -------------------------------------------------------------------------------- */

/* Numbers are small integers or addresses; their product with this has good high bits. */
static uint64_t spread(uint64_t id)
{
    return id * UINT64_C(0x9e3779b97f4a7c15);
}

static struct df_node_shard *shard_of(struct df_nodes *nodes, uint64_t hash)
{
    return &nodes->shards[hash >> 58];
}

static struct df_node **chain_of(struct df_node_shard *shard, uint64_t hash)
{
    return &shard->chains[(hash >> 26) & shard->mask];
}

/* Doubles the chains when they are full; without memory they stay and grow longer. */
static void make_room(struct df_node_shard *shard)
{
    uint32_t old_count = shard->chains ? shard->mask + 1 : 0;
    uint32_t count = old_count ? old_count * 2 : FIRST_CHAINS;
    struct df_node **old = shard->chains, **chains;

    if (shard->count < old_count)
        return;
    chains = calloc(count, sizeof(struct df_node *));
    if (!chains)
        return;
    shard->chains = chains;
    shard->mask = count - 1;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct df_node *node = old[i], *next; node; node = next) {
            struct df_node **chain = chain_of(shard, spread(node->id));

            next = node->chain;
            node->chain = *chain;
            *chain = node;
        }
    }
    free(old);
}

static struct df_node *chain_find(struct df_node_shard *shard, uint64_t hash, uint64_t id)
{
    if (!shard->chains)
        return NULL;
    for (struct df_node *node = *chain_of(shard, hash); node; node = node->chain)
        if (node->id == id)
            return node;
    return NULL;
}

/* Under the shard's lock; a node that is not there is left alone. */
static void chain_remove(struct df_node_shard *shard, uint64_t hash, struct df_node *node)
{
    for (struct df_node **at = chain_of(shard, hash); *at; at = &(*at)->chain) {
        if (*at == node) {
            *at = node->chain;
            shard->count--;
            return;
        }
    }
}

/* ---- limbo: dead objects that readers may still see ---------------------------------------- */

static void free_object(struct df_node_limbo *limbo)
{
    if (limbo->is_node)
        df_node_cache_free_node((struct df_node *)((char *)limbo - offsetof(struct df_node, limbo)));
    else
        df_node_cache_free_entry(limbo);
}

static void free_batch(struct df_node_limbo *batch)
{
    while (batch) {
        struct df_node_limbo *link = batch->link;

        free_object(batch);
        batch = link;
    }
}

static void free_retired(struct df_retired *retired)
{
    free_batch((struct df_node_limbo *)((char *)retired - offsetof(struct df_node_limbo, retired)));
}

/* Under the shard's lock. The gate takes a global lock and, at times, a system call for each object
 * it is given; sixteen at once make that cheap. Returns a full batch, for df_gate_retire_node(). */
static struct df_node_limbo *limbo_add(struct df_node_shard *shard, struct df_node_limbo *limbo)
{
    limbo->link = shard->limbo;
    shard->limbo = limbo;
    if (++shard->limbo_count < DF_NODE_LIMBO)
        return NULL;
    shard->limbo = NULL;
    shard->limbo_count = 0;
    return limbo;
}

static void retire_batch(struct df_node_limbo *batch)
{
    if (batch)
        df_gate_retire_node(&batch->retired, free_retired);
}

void df_node_retire(struct df_nodes *nodes, struct df_node_limbo *limbo, uint64_t hash)
{
    struct df_node_shard *shard = shard_of(nodes, spread(hash));
    struct df_node_limbo *batch;

    df_node_lock(&shard->lock);
    batch = limbo_add(shard, limbo);
    df_node_unlock(&shard->lock);
    retire_batch(batch);
}

/* ---- making and finding -------------------------------------------------------------------- */

static struct df_node *node_new(uint64_t id, uint64_t generation, mode_t type)
{
    struct df_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->id = id;
    node->generation = generation;
    node->type = type;
    node->limbo.is_node = true;
    atomic_store_explicit(&node->stale, DF_ATTR_ALL, memory_order_relaxed);
    atomic_store_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

bool df_node_try_hold(struct df_node *node)
{
    uint32_t refs = atomic_load_explicit(&node->refs, memory_order_relaxed);

    while (refs > 0)
        if (atomic_compare_exchange_weak_explicit(&node->refs, &refs, refs + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

struct df_node *df_node_find(struct df_nodes *nodes, uint64_t id)
{
    uint64_t hash = spread(id);
    struct df_node_shard *shard = shard_of(nodes, hash);
    struct df_node *node;

    if (id == ROOT_ID)
        return nodes->root;
    df_node_lock(&shard->lock);
    node = chain_find(shard, hash, id);
    if (node && !df_node_alive(node))
        node = NULL;
    df_node_unlock(&shard->lock);
    return node;
}

void df_node_unhash(struct df_nodes *nodes, struct df_node *node)
{
    uint64_t hash = spread(node->id);
    struct df_node_shard *shard = shard_of(nodes, hash);

    df_node_lock(&shard->lock);
    chain_remove(shard, hash, node);
    df_node_unlock(&shard->lock);
}

bool df_node_sane(const struct stat *attr)
{
    switch (attr->st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
        return attr->st_size >= 0;
    default:
        return false;
    }
}

/* Under the shard's lock. A node that the reply contradicts stays with whoever holds it, marked bad
 * and out of the table: the number means something else now. */
static struct df_node *find_matching(struct df_node_shard *shard, uint64_t hash,
                                     const struct df_node_found *found)
{
    struct df_node *node = chain_find(shard, hash, found->id);

    if (!node)
        return NULL;
    if (!df_node_has(node, DF_NODE_BAD) && node->generation == found->generation &&
        node->type == (found->attr.st_mode & S_IFMT))
        return df_node_try_hold(node) ? node : NULL;
    df_node_attr_spoil(node);
    chain_remove(shard, hash, node);
    return NULL;
}

static struct df_node *find_or_add(struct df_node_shard *shard, uint64_t hash,
                                   const struct df_node_found *found, bool *is_new)
{
    struct df_node *node;

    df_node_lock(&shard->lock);
    make_room(shard);
    node = find_matching(shard, hash, found);
    *is_new = !node;
    if (!node && shard->chains)
        node = node_new(found->id, found->generation, found->attr.st_mode & S_IFMT);
    if (node && *is_new) {
        node->chain = *chain_of(shard, hash);
        *chain_of(shard, hash) = node;
        shard->count++;
    }
    if (node)
        df_node_count_lookup(node);
    df_node_unlock(&shard->lock);
    return node;
}

int df_node_get(struct df_nodes *nodes, const struct df_node_found *found, uint64_t asked,
                struct df_node **out)
{
    uint64_t hash = spread(found->id);
    struct df_node *node;
    bool is_new;

    if (!df_node_sane(&found->attr)) {
        df_node_forget_one(nodes, found->id);
        return -EIO;
    }
    if (found->id == ROOT_ID)
        return -EIO;
    node = find_or_add(shard_of(nodes, hash), hash, found, &is_new);
    if (!node) {
        df_node_forget_one(nodes, found->id);
        return -ENOMEM;
    }
    df_node_attr_meet(node, &found->attr, df_node_expiry(found->attr_timeout), asked, is_new);
    *out = node;
    return 0;
}

/* ---- forgetting ---------------------------------------------------------------------------- */

void df_node_forget_one(struct df_nodes *nodes, uint64_t id)
{
    struct df_node_forget forget = {id, 1};

    if (id != ROOT_ID)
        nodes->source->forget(nodes, &forget, 1);
}

/* True for the one who may bury it. A directory may have got a reference again from the holder of
 * its lock, and several may come here for it one after the other. */
static bool die(struct df_node *node)
{
    bool mine;

    if (!df_node_is_dir(node))
        return true;
    df_node_lock(&node->lock);
    mine = !df_node_alive(node) && !df_node_has(node, DF_NODE_DEAD);
    if (mine)
        df_node_set(node, DF_NODE_DEAD);
    df_node_unlock(&node->lock);
    return mine;
}

/* Takes a dead node away; returns the parent whose reference it held. */
static struct df_node *bury(struct df_nodes *nodes, struct df_node *node,
                            struct df_node_forgets *forgets)
{
    uint64_t hash = spread(node->id);
    struct df_node_shard *shard = shard_of(nodes, hash);
    struct df_node *parent = atomic_load_explicit(&node->parent, memory_order_relaxed);
    uint64_t lookups = atomic_load_explicit(&node->lookups, memory_order_relaxed);
    struct df_node_limbo *batch;

    if (lookups > 0)
        forgets->list[forgets->count++] = (struct df_node_forget){node->id, lookups};
    if (df_node_is_dir(node))
        df_node_cache_leave_ring(nodes, node);
    df_node_lock(&shard->lock);
    chain_remove(shard, hash, node);
    batch = limbo_add(shard, &node->limbo);
    df_node_unlock(&shard->lock);
    retire_batch(batch);
    if (forgets->count == DF_NODE_FORGETS)
        df_node_send_forgets(nodes, forgets);
    return parent;
}

void df_node_put_among(struct df_nodes *nodes, struct df_node *node,
                       struct df_node_forgets *forgets)
{
    while (node && atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1)
        node = die(node) ? bury(nodes, node, forgets) : NULL;
}

void df_node_send_forgets(struct df_nodes *nodes, struct df_node_forgets *forgets)
{
    if (forgets->count > 0)
        nodes->source->forget(nodes, forgets->list, forgets->count);
    forgets->count = 0;
}

void df_node_put(struct df_nodes *nodes, struct df_node *node)
{
    struct df_node_forgets forgets;

    if (DF_LIKELY(atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) > 1) ||
        !die(node))
        return;
    forgets.count = 0;
    node = bury(nodes, node, &forgets);
    if (node)
        df_node_put_among(nodes, node, &forgets);
    df_node_send_forgets(nodes, &forgets);
}

/* ---- all of them --------------------------------------------------------------------------- */

int df_nodes_init(struct df_nodes *nodes, const struct df_node_source *source)
{
    memset(nodes, 0, sizeof(*nodes));
    nodes->source = source;
    df_nodes_set_capacity(nodes, DF_NODE_CAPACITY);
    nodes->root = node_new(ROOT_ID, 0, S_IFDIR);
    if (!nodes->root)
        return -ENOMEM;
    if (getrandom(&nodes->seed, sizeof(nodes->seed), GRND_NONBLOCK) != sizeof(nodes->seed))
        nodes->seed = spread((uint64_t)(uintptr_t)nodes); /* early at boot: layout is random too */
    return 0;
}

void df_nodes_set_capacity(struct df_nodes *nodes, uint32_t entries)
{
    nodes->capacity = entries;
    atomic_store_explicit(&nodes->limit, entries, memory_order_relaxed);
}

void df_nodes_forget_all(struct df_nodes *nodes)
{
    df_node_cache_prune(nodes, nodes->root);
}

void df_nodes_destroy(struct df_nodes *nodes)
{
    for (unsigned i = 0; i < DF_NODE_SHARDS; i++) {
        struct df_node_shard *shard = &nodes->shards[i];

        for (uint32_t c = 0; shard->chains && c <= shard->mask; c++)
            for (struct df_node *node = shard->chains[c], *next; node; node = next) {
                next = node->chain;
                df_node_cache_free_node(node);
            }
        free(shard->chains);
        free_batch(shard->limbo);
    }
    df_node_cache_free_node(nodes->root);
}
