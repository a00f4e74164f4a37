/*
 * path.c - the name of a node. Nodes do not know what leads to them, for nearly nobody asks: the
 * directory of a directory is known, and its table is searched; for a file, all tables are.
 */
#include "nodes/path.h"

#include <errno.h>

#include "nodes/cache.h"

/* The entry of `dir` that leads to the node; NULL: none that is kept. */
static const struct df_node_entry *entry_in(const struct df_node *dir, const struct df_node *node)
{
    uintptr_t table = atomic_load_explicit(&dir->table, memory_order_acquire);

    for (uint32_t i = 0; table && i < (uint32_t)1 << (table & 63); i++) {
        const struct df_node_entry *entry =
            atomic_load_explicit(df_node_cache_chain(table, i), memory_order_acquire);

        for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_acquire))
            if (atomic_load_explicit(&entry->node, memory_order_relaxed) == node)
                return entry;
    }
    return NULL;
}

/* The same for any directory, which is stored in *dir. */
static const struct df_node_entry *
entry_anywhere(struct df_nodes *nodes, const struct df_node *node, const struct df_node **dir)
{
    const struct df_node_entry *entry = NULL;

    df_node_lock(&nodes->ring_lock);
    *dir = nodes->ring;
    if (*dir)
        do {
            entry = entry_in(*dir, node);
        } while (!entry && (*dir = (*dir)->ring[0]) != nodes->ring);
    df_node_unlock(&nodes->ring_lock);
    return entry;
}

static const struct df_node_entry *entry_to(struct df_nodes *nodes, const struct df_node *node,
                                            const struct df_node **dir)
{
    if (!df_node_is_dir(node))
        return entry_anywhere(nodes, node, dir);
    *dir = atomic_load_explicit(&node->parent, memory_order_acquire);
    return *dir && !df_node_has(node, DF_NODE_REMOVED) ? entry_in(*dir, node) : NULL;
}

/* From the end of the buffer to its start, then moved to where it is wanted. */
ssize_t df_node_path(struct df_nodes *nodes, const struct df_node *node, char *buf, size_t size)
{
    const struct df_node_entry *entry;
    size_t at = size;

    while (node != nodes->root) {
        entry = entry_to(nodes, node, &node);
        if (!entry)
            return -ENOENT;
        if (at <= entry->len)
            return -ENAMETOOLONG;
        at -= entry->len;
        memcpy(buf + at, entry->name, entry->len);
        buf[--at] = '/';
    }
    if (at == size && size > 0)
        buf[--at] = '/';
    memmove(buf, buf + at, size - at);
    return (ssize_t)(size - at);
}
