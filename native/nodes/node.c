/*
 * node.c - nodes by number: references, counts of lookups, FORGET, and memory given to the gate.
 */
#include "nodes/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/sane.h"
#include "nodes/attr.h"
#include "nodes/cache.h"

#define FIRST_CHAINS 8u
#define LIMBO_WEIGHT                                                                               \
    4u /* of a batch for the gate, in objects: what it holds back stays small enough               \
          for a processor's cache */

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

/* Under the shard's lock. A node that has lost its last reference stays in its chain until it is
 * buried, before or behind the one that has its number now. */
static struct df_node *chain_find(struct df_node_shard *shard, uint64_t hash, uint64_t id)
{
    if (!shard->chains)
        return NULL;
    for (struct df_node *node = *chain_of(shard, hash); node; node = node->chain)
        if (node->id == id && df_node_alive(node))
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

static struct df_node *node_of(struct df_node_limbo *limbo)
{
    return (struct df_node *)((char *)limbo - offsetof(struct df_node, limbo));
}

/* Under the shard's lock. Making and removing files again and again should not send memory to and
 * fro between us and the system. */
static bool keep_spare(struct df_node_shard *shard, struct df_node *node)
{
    if (shard->spare_count == DF_NODE_SPARES)
        return false;
    df_node_cache_empty_node(node);
    node->chain = shard->spares;
    shard->spares = node;
    shard->spare_count++;
    return true;
}

/* Under the shard's lock: keeps what can be used again. Returns the rest of the batch. */
static struct df_node_limbo *sort_out(struct df_node_shard *shard, struct df_node_limbo *batch)
{
    struct df_node_limbo *rest = NULL;

    for (struct df_node_limbo *link; batch; batch = link) {
        link = batch->link;
        if ((batch->home & 1) && keep_spare(shard, node_of(batch)))
            continue;
        batch->link = rest;
        rest = batch;
    }
    return rest;
}

static void free_all(struct df_node_limbo *batch)
{
    for (struct df_node_limbo *link; batch; batch = link) {
        link = batch->link;
        if (batch->home & 1)
            df_node_cache_free_node(node_of(batch));
        else
            df_node_cache_free_entry(batch);
    }
}

static struct df_node_shard *home_of(const struct df_node_limbo *limbo)
{
    return (struct df_node_shard *)(limbo->home & ~(uintptr_t)1);
}

/* Readers have left. */
static void free_batch(struct df_retired *retired)
{
    struct df_node_limbo *batch =
        (struct df_node_limbo *)((char *)retired - offsetof(struct df_node_limbo, retired));
    struct df_node_shard *shard = home_of(batch);

    df_node_lock(&shard->lock);
    batch = sort_out(shard, batch);
    df_node_unlock(&shard->lock);
    free_all(batch);
}

/* Under the shard's lock. The gate takes a global lock and, at times, a system call for each object
 * it is given; sixteen at once make that cheap. Returns a full batch, for retire_batch(). */
static struct df_node_limbo *limbo_add(struct df_node_shard *shard, struct df_node_limbo *limbo,
                                       bool is_node)
{
    limbo->home = (uintptr_t)shard | is_node;
    limbo->link = shard->limbo;
    shard->limbo = limbo;
    if (++shard->limbo_count < DF_NODE_LIMBO)
        return NULL;
    shard->limbo = NULL;
    shard->limbo_count = 0;
    return limbo;
}

/* A df_gate_owns; the owner is a struct df_nodes. */
static bool is_batch_of(const struct df_retired *retired, const void *owner)
{
    const struct df_nodes *nodes = owner;

    if (retired->free != free_batch)
        return false;
    const struct df_node_limbo *batch =
        (const void *)((const char *)retired - offsetof(struct df_node_limbo, retired));
    const struct df_node_shard *home = home_of(batch);
    return home >= nodes->shards && home < nodes->shards + DF_NODE_SHARDS;
}

static void retire_batch(struct df_node_limbo *batch)
{
    if (batch)
        df_gate_retire_nodes(&batch->retired, free_batch, LIMBO_WEIGHT);
}

/* An entry and a node, or one of them; the node leaves its chain. */
static void retire(struct df_nodes *nodes, uint64_t hash, struct df_node *node,
                   struct df_node_limbo *entry)
{
    struct df_node_shard *shard = shard_of(nodes, hash);
    struct df_node_limbo *first = NULL, *second = NULL;

    df_node_lock(&shard->lock);
    if (node) {
        chain_remove(shard, hash, node);
        first = limbo_add(shard, &node->limbo, true);
    }
    if (entry)
        second = limbo_add(shard, entry, false);
    df_node_unlock(&shard->lock);
    retire_batch(first);
    retire_batch(second);
}

void df_node_retire(struct df_nodes *nodes, struct df_node_limbo *entry, uint64_t hash)
{
    retire(nodes, spread(hash), NULL, entry);
}

/* ---- making and finding -------------------------------------------------------------------- */

/* Under the shard's lock. */
static struct df_node *take_spare(struct df_node_shard *shard)
{
    struct df_node *node = shard->spares;

    if (!node)
        return malloc(sizeof(*node) + DF_NODE_OWN_NAME);
    shard->spares = node->chain;
    shard->spare_count--;
    return node;
}

static _Atomic uint64_t serials; /* nodes that were ever made */

static void node_begin(struct df_node *node, uint64_t id, uint64_t generation, mode_t type,
                       uint32_t refs)
{
    memset(node, 0, offsetof(struct df_node, own));
    node->id = id;
    node->generation = generation;
    node->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    node->type = type;
    atomic_store_explicit(&node->stale, DF_ATTR_ALL | DF_ATTR_NO_ACL, memory_order_relaxed);
    atomic_store_explicit(&node->refs, refs, memory_order_relaxed);
}

bool df_node_try_hold_many(struct df_node *node, uint32_t more)
{
    uint32_t refs = atomic_load_explicit(&node->refs, memory_order_relaxed);

    while (refs > 0)
        if (atomic_compare_exchange_weak_explicit(&node->refs, &refs, refs + more,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

struct df_node *df_node_find(struct df_nodes *nodes, uint64_t id)
{
    uint64_t hash = spread(id);
    struct df_node_shard *shard = shard_of(nodes, hash);
    struct df_node *node;

    if (id == DF_NODE_ROOT_ID)
        return nodes->root;
    df_node_lock(&shard->lock);
    node = chain_find(shard, hash, id);
    df_node_unlock(&shard->lock);
    return node;
}

/* Under the shard's lock. A node that the reply contradicts stays with whoever holds it, marked bad
 * and out of the table: the number means something else now. */
static struct df_node *find_matching(struct df_node_shard *shard, uint64_t hash,
                                     const struct df_node_found *found, uint32_t refs)
{
    struct df_node *node = chain_find(shard, hash, found->id);

    if (!node)
        return NULL;
    if (!df_node_has(node, DF_NODE_BAD) && node->generation == found->generation &&
        node->type == (found->attr.st_mode & S_IFMT)) {
        if (!df_node_try_hold_many(node, refs))
            return NULL;
        df_node_count_lookup(node);
        return node;
    }
    df_node_attr_spoil(node);
    chain_remove(shard, hash, node);
    return NULL;
}

/* Under the shard's lock. Nobody sees the node before it is complete. */
static struct df_node *add_new(struct df_node_shard *shard, uint64_t hash,
                               const struct df_node_found *found, uint32_t refs)
{
    struct df_node *node;

    make_room(shard);
    if (!shard->chains)
        return NULL;
    node = take_spare(shard);
    if (!node)
        return NULL;
    node_begin(node, found->id, found->generation, found->attr.st_mode & S_IFMT, refs);
    atomic_store_explicit(&node->lookups, 1, memory_order_relaxed);
    df_node_attr_first(node, &found->attr, df_node_expiry(found->attr_timeout));
    node->chain = *chain_of(shard, hash);
    *chain_of(shard, hash) = node;
    shard->count++;
    return node;
}

int df_node_get(struct df_nodes *nodes, const struct df_node_found *found, uint64_t asked,
                uint32_t refs, struct df_node **out, bool *is_new)
{
    uint64_t hash = spread(found->id);
    struct df_node_shard *shard = shard_of(nodes, hash);
    struct df_node *known;

    if (!df_sane(&found->attr) || found->id == DF_NODE_ROOT_ID)
        return -EIO;
    df_node_given(&nodes->shortest, found->attr_timeout);
    df_node_lock(&shard->lock);
    known = find_matching(shard, hash, found, refs);
    *out = known ? known : add_new(shard, hash, found, refs);
    *is_new = !known;
    df_node_unlock(&shard->lock);
    if (known)
        df_node_attr_meet(known, &found->attr, df_node_expiry(found->attr_timeout), asked);
    return *out ? 0 : -ENOMEM;
}

/* ---- forgetting ---------------------------------------------------------------------------- */

void df_node_forget_one(struct df_nodes *nodes, uint64_t id)
{
    struct df_node_forget forget = {id, 1};

    if (id != DF_NODE_ROOT_ID)
        nodes->source->forget(nodes, &forget, 1);
}

struct df_node *df_node_bury(struct df_nodes *nodes, struct df_node *node,
                             struct df_node_forgets *forgets, struct df_node_limbo *entry)
{
    struct df_node *parent = atomic_load_explicit(&node->parent, memory_order_relaxed);
    uint64_t lookups = atomic_load_explicit(&node->lookups, memory_order_relaxed);

    if (lookups > 0)
        forgets->list[forgets->count++] = (struct df_node_forget){node->id, lookups};
    if (df_node_is_dir(node))
        df_node_cache_leave_ring(nodes, node);
    retire(nodes, spread(node->id), node, entry);
    if (forgets->count == DF_NODE_FORGETS)
        df_node_send_forgets(nodes, forgets);
    return parent;
}

/* True for the one who buries it. */
static bool drop_ref(struct df_node *node)
{
    return atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1;
}

void df_node_put_among(struct df_nodes *nodes, struct df_node *node,
                       struct df_node_forgets *forgets, struct df_node_limbo *entry)
{
    for (; node && drop_ref(node); entry = NULL)
        node = df_node_bury(nodes, node, forgets, entry);
    if (entry)
        df_node_retire(nodes, entry, (uint64_t)(uintptr_t)entry);
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

    if (DF_LIKELY(!drop_ref(node)))
        return;
    forgets.count = 0;
    node = df_node_bury(nodes, node, &forgets, NULL);
    if (node)
        df_node_put_among(nodes, node, &forgets, NULL);
    df_node_send_forgets(nodes, &forgets);
}

/* ---- all of them --------------------------------------------------------------------------- */

int df_nodes_init(struct df_nodes *nodes, const struct df_node_source *source)
{
    memset(nodes, 0, sizeof(*nodes));
    nodes->source = source;
    nodes->shortest = nodes->shortest_absent = DF_NODE_FOREVER;
    df_nodes_set_capacity(nodes, DF_NODE_CAPACITY);
    nodes->root = malloc(sizeof(*nodes->root) + DF_NODE_OWN_NAME);
    if (!nodes->root)
        return -ENOMEM;
    node_begin(nodes->root, DF_NODE_ROOT_ID, 0, S_IFDIR, 1);
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

static void free_chain(struct df_node *node)
{
    for (struct df_node *next; node; node = next) {
        next = node->chain;
        df_node_cache_free_node(node);
    }
}

void df_nodes_destroy(struct df_nodes *nodes)
{
    df_gate_reclaim(is_batch_of, nodes); /* batches on their way come back to their shards */
    for (unsigned i = 0; i < DF_NODE_SHARDS; i++) {
        struct df_node_shard *shard = &nodes->shards[i];

        for (uint32_t c = 0; shard->chains && c <= shard->mask; c++)
            free_chain(shard->chains[c]);
        free(shard->chains);
        free_all(shard->limbo);
        for (struct df_node *spare = shard->spares, *next; spare; spare = next) {
            next = spare->chain;
            free(spare);
        }
    }
    df_node_cache_free_node(nodes->root);
}
