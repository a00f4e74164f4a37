/*
 * walk_warm.c - the way that the cache knows: names looked up in it, with nothing asked, locked or
 * referenced. It is most of a warm call.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "nodes/walk_warm.h"

/* A node that came with READDIRPLUS is used for the first time: it was worth it. */
static void used_after_plus(struct df_node *dir, struct df_node *node)
{
    df_node_clear(node, DF_NODE_VIA_PLUS);
    df_node_set(dir, DF_NODE_WANT_PLUS);
}

/* What the cache says for certain about the name in dir: 0 and the child, -ENOENT or COLD. */
static inline int peek(struct df_node *dir, const struct df_node_name *name,
                       struct df_node_clock *clock, struct df_node **child)
{
    struct df_node_entry *entry = df_node_cache_find(dir, name);
    struct df_node *node;

    if (DF_UNLIKELY(!entry) ||
        !df_node_live(clock, atomic_load_explicit(&entry->expiry, memory_order_acquire)))
        return DF_NODE_COLD;
    df_node_cache_touch(entry);
    node = atomic_load_explicit(&entry->node, memory_order_acquire);
    if (!node)
        return -ENOENT;
    if (DF_UNLIKELY(df_node_has(node, DF_NODE_BAD | DF_NODE_VIA_PLUS))) {
        if (df_node_has(node, DF_NODE_BAD))
            return DF_NODE_COLD;
        if (!clock->unused)
            used_after_plus(dir, node);
    }
    *child = node;
    return 0;
}

/* A walk that knows its way. */
struct stroll {
    struct df_nodes *nodes;
    struct df_call *call;
    struct df_node_clock *clock;
    struct df_node *dir;
    const char *at; /* what remains: names with one slash between them */
    size_t left;
};

/* Up to the last component, which is at `at` then, or until the cache does not know. */
static inline int stroll_to_last(struct stroll *s)
{
    for (;;) {
        size_t len = df_node_component_len(s->at, s->left);
        struct df_node_name name;
        int result;

        if (!df_node_is_dir(s->dir))
            return DF_NODE_COLD;
        if (s->nodes->source->search &&
            (result = s->nodes->source->search(s->nodes, s->call, s->dir)) != 0)
            return result;
        if (len == s->left)
            return 0;
        name = df_node_cache_name(s->nodes, s->at, len);
        result = peek(s->dir, &name, s->clock, &s->dir);
        if (result != 0)
            return result;
        s->at += len + 1;
        s->left -= len + 1;
    }
}

static inline struct stroll begin_stroll(struct df_nodes *nodes, struct df_call *call,
                                         const struct df_where *where, struct df_node_clock *clock)
{
    size_t skip = where->base ? 0 : 1;

    return (struct stroll){
        .nodes = nodes,
        .call = call,
        .clock = clock,
        .dir = where->base ? df_node_of_file(where->base) : nodes->root,
        .at = where->name + skip,
        .left = where->len - skip,
    };
}

int df_node_walk_warm(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                      struct df_node_clock *clock, struct df_node **out)
{
    struct stroll s = begin_stroll(nodes, call, where, clock);
    struct df_node *node = s.dir;
    struct df_node_name name;
    int result;

    if (DF_UNLIKELY(where->flags & (DF_WHERE_DOTDOT | DF_WHERE_DOT)))
        return DF_NODE_COLD;
    if (s.left > 0) {
        result = stroll_to_last(&s);
        if (result != 0)
            return result;
        name = df_node_cache_name(nodes, s.at, s.left);
        result = peek(s.dir, &name, clock, &node);
        if (DF_UNLIKELY(result == -ENOENT))
            call->absent = df_changes_name(name.hash);
        if (result != 0)
            return result;
    }
    if (DF_UNLIKELY(S_ISLNK(node->type)) &&
        (!(where->flags & DF_WHERE_NOFOLLOW) || (where->flags & DF_WHERE_DIRECTORY)))
        return DF_NODE_COLD;
    if (DF_UNLIKELY(where->flags & DF_WHERE_DIRECTORY) && !df_node_is_dir(node))
        return -ENOTDIR;
    *out = node;
    return 0;
}

/* ---- the rest of a walk that begins warm ---------------------------------------------------- */

bool df_node_walk_known(struct df_node_walk *walk)
{
    struct stroll s = begin_stroll(walk->nodes, walk->call, walk->where, &walk->clock);

    if (walk->revalidate || (walk->where->flags & DF_WHERE_DOTDOT) || s.left == 0 ||
        stroll_to_last(&s) != 0)
        return false;
    walk->dir = s.dir;
    walk->kind = DF_END_NAME;
    walk->last = df_node_cache_name(walk->nodes, s.at, s.left);
    walk->at = walk->end;
    return true;
}

int df_node_walk_peek_at(struct df_node_walk *walk, const struct df_node_name *name,
                         struct df_node **node)
{
    return peek(walk->dir, name, &walk->clock, node);
}

int df_node_walk_peek(struct df_node_walk *walk, struct df_node **node)
{
    return peek(walk->dir, &walk->last, &walk->clock, node);
}
