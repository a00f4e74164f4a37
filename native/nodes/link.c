/*
 * link.c - targets of symlinks: asking, keeping, forgetting.
 */
#include "nodes/link.h"

#include <stdlib.h>
#include <string.h>

#include "nodes/attr.h"

/* Immutable; readers inside the gate may see it after it was replaced. */
struct df_node_link {
    struct df_retired retired;
    size_t len;
    char target[];
};

static void free_link(struct df_retired *retired)
{
    free((char *)retired - offsetof(struct df_node_link, retired));
}

static void replace(struct df_node *node, struct df_node_link *link)
{
    struct df_node_link *old = atomic_exchange_explicit(&node->link, link, memory_order_acq_rel);

    if (old)
        df_gate_retire_nodes(&old->retired, free_link, 1);
}

/* Without memory it is asked for again next time. Who tells of a change counts it before he forgets
 * the link: either he finds this one, or the count shows that it may be of before the change. */
static void keep(struct df_node *node, const char *target, size_t len, uint32_t changes)
{
    struct df_node_link *link = malloc(sizeof(*link) + len);

    if (!link)
        return;
    link->len = len;
    memcpy(link->target, target, len);
    replace(node, link);
    if (atomic_load_explicit(&node->changes, memory_order_acquire) != changes)
        replace(node, NULL);
}

static ssize_t ask_and_keep(struct df_nodes *nodes, struct df_call *call, struct df_node *node,
                            char *buf, size_t size)
{
    uint32_t changes = df_node_attr_changes(node);
    char target[PATH_MAX];
    ssize_t len = nodes->source->readlink(nodes, call, node, target, sizeof(target));

    if (len < 0)
        return len;
    keep(node, target, (size_t)len, changes);
    size = (size_t)len < size ? (size_t)len : size;
    memcpy(buf, target, size);
    return (ssize_t)size;
}

ssize_t df_node_link_read(struct df_nodes *nodes, struct df_call *call, struct df_node *node,
                          char *buf, size_t size)
{
    const struct df_node_link *link =
        nodes->keep_links ? atomic_load_explicit(&node->link, memory_order_acquire) : NULL;
    ssize_t len;

    if (link) {
        size = link->len < size ? link->len : size;
        memcpy(buf, link->target, size);
        return (ssize_t)size;
    }
    len = nodes->keep_links ? ask_and_keep(nodes, call, node, buf, size)
                            : nodes->source->readlink(nodes, call, node, buf, size);
    df_node_attr_accessed(nodes, node);
    return len;
}

void df_node_link_forget(struct df_node *node)
{
    if (S_ISLNK(node->type))
        replace(node, NULL);
}

void df_node_link_free(struct df_node *node)
{
    free(atomic_load_explicit(&node->link, memory_order_relaxed));
}
