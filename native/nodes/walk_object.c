/*
 * walk_object.c - the walk to an object: warm where the cache knows the way, else step by step.
 */
#include "nodes/walk.h"

static int walk_cold(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                     bool revalidate, struct df_node **node)
{
    struct df_node_walk walk;
    int result = df_node_walk_parent(&walk, nodes, call, where, revalidate);

    while (result == 0) {
        result = df_node_walk_last(&walk, node);
        if (result == 0 && df_node_try_hold(*node))
            return 0;
        if (result == 0 || result == DF_NODE_COLD)
            result = df_node_walk_again(&walk);
    }
    return result;
}

/* A final "." asks whether the directory itself may be searched. It is held by now. */
static int search_dot(struct df_node_spot *spot, struct df_nodes *nodes, struct df_call *call,
                      const struct df_where *where)
{
    int result;

    if (DF_LIKELY(!(where->flags & DF_WHERE_DOT)) || !nodes->source->search)
        return 0;
    result = nodes->source->search(nodes, call, spot->node);
    if (result != 0)
        df_node_walk_done(nodes, spot);
    return result;
}

int df_node_walk_object(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                        bool revalidate, struct df_node_spot *spot)
{
    struct df_node_clock clock = {0};
    int result = DF_NODE_COLD;

    spot->held = !where->base || where->len > 0;
    if (!spot->held) {
        spot->node = df_node_of_file(where->base);
        return search_dot(spot, nodes, call, where);
    }
    if (!revalidate)
        result = df_node_walk_warm(nodes, call, where, &clock, &spot->node);
    if (result == 0 && df_node_try_hold(spot->node))
        return 0;
    if (result < 0)
        return result;
    result = walk_cold(nodes, call, where, revalidate, &spot->node);
    return result == 0 ? search_dot(spot, nodes, call, where) : result;
}
