/*
 * target.c - what operations by name have in common: the walk to an object or an entry,
 * the second try after ESTALE, entering what was made.
 */
#include <string.h>

#include "lowlevel/changes.h"
#include "lowlevel/target.h"

/* ---- objects ------------------------------------------------------------------------------- */

static ssize_t on_object(struct df_target *target, const struct df_where *where, bool revalidate,
                         ssize_t (*act)(const struct df_target *, void *), void *arg)
{
    struct df_nodes *nodes = &target->lane->nodes;
    struct df_node_spot spot;
    ssize_t result = df_node_walk_object(nodes, target->call, where, revalidate, &spot);

    if (result != 0)
        return result;
    target->node = spot.node;
    result = DF_UNLIKELY(df_node_has(spot.node, DF_NODE_BAD)) ? -EIO : act(target, arg);
    df_node_walk_done(nodes, &spot);
    return result;
}

ssize_t df_lowlevel_on_object(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              ssize_t (*act)(const struct df_target *target, void *arg), void *arg)
{
    struct df_target target = {
        .lane = df_lowlevel_of(fs), .call = call, .file = where->len == 0 ? where->base : NULL};
    ssize_t result = df_lowlevel_enter(target.lane, call);

    if (result < 0)
        return result;
    result = on_object(&target, where, false, act, arg);
    if (result == -ESTALE && where->len > 0)
        result = on_object(&target, where, true, act, arg);
    df_lowlevel_leave(target.lane);
    return result;
}

/* ---- entries ------------------------------------------------------------------------------- */

void df_lowlevel_begin_place(struct df_place *place, struct df_lowlevel *lane, struct df_call *call)
{
    place->lane = lane;
    place->call = call;
    place->told = df_node_told(&lane->nodes);
    df_node_cache_begin_drops(&place->drops);
}

static struct df_node_search search_at(struct df_place *place)
{
    return (struct df_node_search){
        .nodes = &place->lane->nodes,
        .dir = place->dir,
        .name = &place->name,
        .drops = &place->drops,
        .entry = place->entry,
        .told = place->told,
    };
}

int df_lowlevel_look_up(struct df_place *place, const struct df_node_walk *walk, unsigned how)
{
    struct df_node_search search;
    int result;

    place->dir = walk->dir;
    place->name = walk->last;
    place->entry = NULL;
    search = search_at(place);
    result = df_node_lookup(&search, place->call, how);
    place->entry = search.entry;
    place->node = result == 0 && place->entry
                      ? atomic_load_explicit(&place->entry->node, memory_order_relaxed)
                      : NULL;
    return result;
}

static int on_entry(struct df_place *place, const struct df_where *where, bool revalidate,
                    unsigned how, int (*act)(struct df_place *, void *), void *arg)
{
    struct df_nodes *nodes = &place->lane->nodes;
    struct df_node_walk walk;
    int result = df_node_walk_parent(&walk, nodes, place->call, where, revalidate);

    while (result == 0 && (result = df_node_walk_lock(&walk)) == DF_NODE_COLD)
        result = df_node_walk_again(&walk);
    if (result != 0)
        return result;
    if (walk.kind == DF_END_NAME)
        result = df_lowlevel_look_up(place, &walk, how | (revalidate ? DF_LOOKUP_FRESH : 0));
    else
        result = -EBUSY; /* the core has an answer of its own to these */
    if (result == 0)
        result = act(place, arg);
    df_node_walk_unlock(&walk);
    df_node_cache_drop(nodes, &place->drops);
    return result;
}

int df_lowlevel_on_entry(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         unsigned how, int (*act)(struct df_place *place, void *arg), void *arg)
{
    struct df_place place;
    int result;

    df_lowlevel_begin_place(&place, df_lowlevel_of(fs), call);
    df_lowlevel_tells(call);
    result = df_lowlevel_enter(place.lane, call);
    if (result < 0)
        return result;
    result = on_entry(&place, where, false, how, act, arg);
    if (result == -ESTALE)
        result = on_entry(&place, where, true, how, act, arg);
    df_lowlevel_leave(place.lane);
    return result;
}

/* ---- what was made ------------------------------------------------------------------------- */

int df_lowlevel_enter_made(struct df_place *place, const struct df_node_found *found, mode_t type,
                           bool hold, struct df_node **node)
{
    struct df_nodes *nodes = &place->lane->nodes;
    struct df_node_search search = search_at(place);
    bool is_new;
    int result = -EIO;

    df_node_attr_forget(place->dir, DF_ATTR_ENTRIES);
    if (found->id != 0 && (found->attr.st_mode & S_IFMT) == type)
        result = df_node_get(nodes, found, 0, hold ? 2 : 1, node, &is_new);
    place->disowned = result < 0 && found->id != 0;
    if (result < 0)
        return result;
    result = df_node_lookup_enter(&search, *node, is_new, found->entry_timeout);
    place->entry = search.entry;
    if (result < 0 && hold)
        df_node_cache_put_later(&place->drops, *node);
    return result;
}

void df_lowlevel_disown(const struct df_place *place, const struct df_node_found *found)
{
    if (place->disowned)
        df_node_forget_one(&place->lane->nodes, found->id);
}
