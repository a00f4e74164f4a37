/*
 * evict.c - keeps the number of entries bounded: a clock hand goes around the directories that
 * have entries and drops those that nobody has used since it last came by.
 *
 * Whoever notices that there are too many does a little of the work at the end of his call, with no
 * lock held; others go on meanwhile. What is in use (open files, directories with entries below
 * them) stays, and if that is all there is, the bound gives way.
 *
 * What the plugin would like forgotten (NOTIFY_PRUNE) is marked, and goes when the hand comes by: a
 * node does not know its names.
 */
#include "nodes/evict.h"

#include "nodes/attr.h"
#include "nodes/cache.h"

#define STEP_DROPPED 64u   /* entries dropped in one call, at most */
#define STEP_SEEN    1024u /* entries looked at in one call, about */

/* One turn of the hand. */
struct turn {
    struct df_nodes *nodes;
    struct df_node_drops drops;
    unsigned seen;
    unsigned dropped;
    bool pruning; /* there is room: only what is marked goes */
};

/* A hard link may go although other names hold its node. */
static bool has_other_names(const struct df_node *node)
{
    struct stat st;

    df_node_attr_last(node, &st);
    return !df_node_is_dir(node) && st.st_nlink > 1;
}

static bool is_used(const struct turn *turn, struct df_node_entry *entry,
                    const struct df_node *node)
{
    if (node && df_node_has(node, DF_NODE_PRUNE))
        return false;
    if (turn->pruning)
        return true;
    if (atomic_load_explicit(&entry->used, memory_order_relaxed)) {
        atomic_store_explicit(&entry->used, false, memory_order_relaxed);
        return true;
    }
    return false;
}

static bool may_go(const struct turn *turn, struct df_node_entry *entry)
{
    struct df_node *node = atomic_load_explicit(&entry->node, memory_order_relaxed);

    if (is_used(turn, entry, node))
        return false;
    return !node || atomic_load_explicit(&node->refs, memory_order_relaxed) == 1 ||
           has_other_names(node);
}

static void sweep_chain(struct turn *turn, struct df_node *dir, uintptr_t table, uint32_t chain)
{
    struct df_node_entry *entry, *next;

    entry = atomic_load_explicit(df_node_cache_chain(table, chain), memory_order_relaxed);
    for (; entry; entry = next) {
        next = atomic_load_explicit(&entry->next, memory_order_relaxed);
        turn->seen++;
        if (!may_go(turn, entry))
            continue;
        df_node_cache_remove(turn->nodes, dir, entry);
        df_node_cache_drop_later(&turn->drops, entry);
        turn->dropped++;
    }
}

static bool has_done_enough(const struct turn *turn)
{
    return turn->seen >= STEP_SEEN || turn->dropped >= STEP_DROPPED;
}

/* In the locked directory, from where the hand stands. True: it has been all around in it. */
static bool sweep_dir(struct turn *turn, struct df_node *dir)
{
    uintptr_t table = atomic_load_explicit(&dir->table, memory_order_relaxed);
    uint32_t chains = (uint32_t)1 << (table & 63);

    while (dir->entries > 0 && dir->hand < chains && !has_done_enough(turn))
        sweep_chain(turn, dir, table, dir->hand++);
    if (dir->entries > 0 && dir->hand < chains)
        return false;
    dir->hand = 0;
    return true;
}

/* The directory under the hand, referenced; NULL: there is none, or it is going away. */
static struct df_node *dir_at_hand(struct df_nodes *nodes)
{
    struct df_node *dir;

    df_node_lock(&nodes->ring_lock);
    dir = nodes->ring;
    if (dir && !df_node_try_hold(dir)) {
        nodes->ring = dir->ring[0];
        dir = NULL;
    }
    df_node_unlock(&nodes->ring_lock);
    return dir;
}

static void move_hand(struct df_nodes *nodes, const struct df_node *dir)
{
    df_node_lock(&nodes->ring_lock);
    if (nodes->ring == dir)
        nodes->ring = dir->ring[0];
    df_node_unlock(&nodes->ring_lock);
}

/* One directory. One whose lock somebody holds is passed over; so is every look, in the count, lest
 * the hand goes around for ever. */
static void sweep(struct turn *turn)
{
    struct df_node *dir = dir_at_hand(turn->nodes);
    bool done = true, unpinned = false;

    turn->seen++;
    if (!dir)
        return;
    if (df_node_trylock(&dir->lock)) {
        done = sweep_dir(turn, dir);
        unpinned = df_node_cache_unpin(dir);
        df_node_unlock(&dir->lock);
    }
    if (done)
        move_hand(turn->nodes, dir);
    if (unpinned)
        df_node_put(turn->nodes, dir);
    df_node_cache_drop(turn->nodes, &turn->drops);
    df_node_put(turn->nodes, dir);
}

/* After two rounds without a find all is in use; then an eighth more is allowed. */
static void settle(struct df_nodes *nodes, const struct turn *turn)
{
    int64_t population = atomic_load_explicit(&nodes->population, memory_order_relaxed);

    nodes->idle_turns = turn->dropped > 0 ? 0 : nodes->idle_turns + turn->seen;
    if (population > nodes->limit && nodes->idle_turns <= 2 * (uint64_t)population)
        return;
    nodes->limit = population > nodes->limit ? population + population / 8 : nodes->limit;
    if (nodes->limit > (int64_t)nodes->capacity && population < (int64_t)nodes->capacity)
        nodes->limit = nodes->capacity;
    nodes->idle_turns = 0;
    if (atomic_load(&nodes->to_prune) > 0)
        return;
    atomic_store(&nodes->crowded, false);
    if (atomic_load(&nodes->to_prune) > 0) /* asked for just now */
        atomic_store(&nodes->crowded, true);
}

void df_node_evict(struct df_nodes *nodes)
{
    struct turn turn = {.nodes = nodes};

    if (!df_node_trylock(&nodes->evict_lock))
        return; /* somebody is at it */
    turn.pruning = atomic_load_explicit(&nodes->population, memory_order_relaxed) <=
                   atomic_load_explicit(&nodes->limit, memory_order_relaxed);
    while (!has_done_enough(&turn))
        sweep(&turn);
    if (atomic_load(&nodes->to_prune) > 0)
        atomic_fetch_sub(&nodes->to_prune, turn.seen);
    settle(nodes, &turn);
    df_node_unlock(&nodes->evict_lock);
}

/* The hand may have passed a node's name, and may find a directory's lock taken: it goes around
 * twice, and a little more. */
void df_node_prune(struct df_nodes *nodes, const uint64_t ids[], uint32_t count)
{
    int64_t population = atomic_load_explicit(&nodes->population, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        struct df_node *node = df_node_find(nodes, ids[i]);

        if (node)
            df_node_set(node, DF_NODE_PRUNE);
    }
    atomic_store(&nodes->to_prune, 5 * population + STEP_SEEN);
    atomic_store(&nodes->crowded, true);
}
