/*
 * node_lookup.c - entries that must be asked for: LOOKUP, revalidation, entering what is found.
 */
#include "host/node_lookup.h"

#include <errno.h>
#include <string.h>

/* ---- parents ------------------------------------------------------------------------------- */

/* Under parents_lock. */
static bool is_above(const struct df_node *node, const struct df_node *dir)
{
    while (dir && dir != node)
        dir = atomic_load_explicit(&dir->parent, memory_order_relaxed);
    return dir == node;
}

bool df_node_lookup_is_above(struct df_nodes *nodes, const struct df_node *node,
                             const struct df_node *dir)
{
    bool above;

    df_node_lock(&nodes->parents_lock);
    above = is_above(node, dir);
    df_node_unlock(&nodes->parents_lock);
    return above;
}

/* Under parents_lock. */
static void set_parent(struct df_node *node, struct df_node *parent, struct df_node_drops *drops)
{
    struct df_node *old = atomic_load_explicit(&node->parent, memory_order_relaxed);

    if (old == parent)
        return;
    df_node_hold(parent);
    atomic_store_explicit(&node->parent, parent, memory_order_release);
    if (old)
        df_node_cache_put_later(drops, old);
}

void df_node_lookup_move(struct df_nodes *nodes, struct df_node *node, struct df_node *parent,
                         struct df_node_drops *drops)
{
    df_node_lock(&nodes->parents_lock);
    set_parent(node, parent, drops);
    df_node_unlock(&nodes->parents_lock);
}

/*
 * A directory has one place. One that we knew and that turns up elsewhere has been moved behind our
 * back: it moves for us too, and its old entry is asked for again (d_splice_alias() in the kernel).
 */
static int adopt(struct df_nodes *nodes, struct df_node *dir, struct df_node *node,
                 struct df_node_drops *drops)
{
    struct df_node *old;
    bool loop;

    df_node_lock(&nodes->parents_lock);
    old = atomic_load_explicit(&node->parent, memory_order_relaxed);
    loop = old && is_above(node, dir);
    if (!loop)
        set_parent(node, dir, drops);
    df_node_unlock(&nodes->parents_lock);
    if (loop)
        return -ELOOP;
    if (old)
        df_node_cache_expire_other(old, node, NULL);
    return 0;
}

/* ---- entering ------------------------------------------------------------------------------ */

int df_node_lookup_enter(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry,
                         bool fresh, struct df_node *node, double entry_timeout,
                         struct df_node_drops *drops)
{
    uint64_t expiry = df_node_expiry(entry_timeout);
    int error = df_node_is_dir(node) ? adopt(nodes, dir, node, drops) : 0;

    if (error == 0 && fresh)
        error = df_node_cache_add(nodes, dir, entry, node, expiry);
    else if (error == 0)
        df_node_cache_fill(entry, node, expiry);
    if (error < 0)
        df_node_cache_put_later(drops, node);
    return error;
}

/* The entry is there already: another call has been faster, or it was absent. */
static int enter_existing(struct df_nodes *nodes, struct df_node *dir, struct df_node_entry *entry,
                          struct df_node *node, double entry_timeout, struct df_node_drops *drops)
{
    struct df_node *known = atomic_load_explicit(&entry->node, memory_order_relaxed);

    if (!known)
        return df_node_lookup_enter(nodes, dir, entry, false, node, entry_timeout, drops);
    if (known != node) {
        df_node_cache_put_later(drops, node);
        df_node_cache_expire(entry);
        return DF_LOOKUP_AGAIN;
    }
    df_node_put(nodes, node); /* not the last one: the entry has another */
    atomic_store_explicit(&entry->expiry, df_node_expiry(entry_timeout), memory_order_release);
    return 0;
}

/* Takes over the reference to `node`. *entry: the one that was found before asking, or NULL. */
static int enter_found(struct df_nodes *nodes, struct df_node *dir, const struct df_node_name *name,
                       struct df_node *node, double entry_timeout, unsigned how,
                       struct df_node_entry **entry, struct df_node_drops *drops)
{
    struct df_node_entry *made;
    int result;

    if (how & DF_LOOKUP_SHARED) {
        df_node_lock(&dir->insert_lock);
        if (!*entry)
            *entry = df_node_cache_find(dir, name);
    }
    if (*entry) {
        result = enter_existing(nodes, dir, *entry, node, entry_timeout, drops);
    } else if ((made = df_node_cache_new(name))) {
        result = df_node_lookup_enter(nodes, dir, made, true, node, entry_timeout, drops);
        if (result < 0)
            df_node_cache_discard(made);
        else
            *entry = made;
    } else {
        df_node_cache_put_later(drops, node);
        result = -ENOMEM;
    }
    if (how & DF_LOOKUP_SHARED)
        df_node_unlock(&dir->insert_lock);
    return result;
}

/* The name is absent. That is worth an entry if it may be believed later; not having the memory for
 * one costs another LOOKUP. */
static void enter_absent(struct df_nodes *nodes, struct df_node *dir,
                         const struct df_node_name *name, double entry_timeout, unsigned how,
                         struct df_node_entry **entry)
{
    uint64_t expiry = df_node_expiry(entry_timeout);
    struct df_node_entry *made;

    if (expiry == 0 && !*entry)
        return;
    if (how & DF_LOOKUP_SHARED) {
        df_node_lock(&dir->insert_lock);
        if (!*entry)
            *entry = df_node_cache_find(dir, name);
    }
    if (*entry) {
        if (!atomic_load_explicit(&(*entry)->node, memory_order_relaxed))
            atomic_store_explicit(&(*entry)->expiry, expiry, memory_order_release);
    } else if ((made = df_node_cache_new(name))) {
        if (df_node_cache_add(nodes, dir, made, NULL, expiry) == 0)
            *entry = made;
        else
            df_node_cache_discard(made);
    }
    if (how & DF_LOOKUP_SHARED)
        df_node_unlock(&dir->insert_lock);
}

/* ---- asking -------------------------------------------------------------------------------- */

/* *entry: NULL, or an absent one that has expired. */
static int ask(struct df_nodes *nodes, struct df_call *call, struct df_node *dir,
               const struct df_node_name *name, unsigned how, struct df_node_entry **entry,
               struct df_node_drops *drops)
{
    uint64_t asked = df_node_now();
    struct df_node_found found;
    struct df_node *node;
    char text[NAME_MAX + 1];
    int result;

    memcpy(text, name->text, name->len);
    text[name->len] = '\0';
    result = nodes->source->lookup(nodes, call, dir, text, &found);
    if (result < 0 && result != -ENOENT)
        return result;
    if (result < 0 || found.id == 0) {
        enter_absent(nodes, dir, name, result < 0 ? 0 : found.entry_timeout, how, entry);
        return 0;
    }
    result = df_node_get(nodes, &found, asked, &node);
    if (result < 0)
        return result;
    df_node_set(dir, DF_NODE_WANT_PLUS);
    return enter_found(nodes, dir, name, node, found.entry_timeout, how, entry, drops);
}

/* The entry has expired. 1: it is what it was; 0: it must go; or an error for the caller. */
static int revalidate(struct df_nodes *nodes, struct df_call *call, struct df_node *dir,
                      struct df_node_entry *entry, struct df_node *node)
{
    uint32_t changes = df_node_attr_changes(node);
    struct df_node_found found;
    int result = nodes->source->lookup(nodes, call, dir, entry->name, &found);

    if (result == -ENOMEM || result == -EINTR)
        return result;
    if (result < 0 || found.id == 0)
        return 0;
    if (found.id != node->id) {
        df_node_forget_one(nodes, found.id);
        return 0;
    }
    df_node_count_lookup(node);
    if (found.generation != node->generation ||
        df_node_attr_store(node, &found.attr, df_node_expiry(found.attr_timeout), changes) < 0)
        return 0;
    atomic_store_explicit(&entry->expiry, df_node_expiry(found.entry_timeout),
                          memory_order_release);
    return 1;
}

static bool is_valid(struct df_node_entry *entry, struct df_node *node)
{
    struct df_node_clock clock = {0};
    uint64_t expiry = atomic_load_explicit(&entry->expiry, memory_order_acquire);

    return df_node_live(&clock, expiry) && !(node && df_node_has(node, DF_NODE_BAD));
}

int df_node_lookup(struct df_nodes *nodes, struct df_call *call, struct df_node *dir,
                   const struct df_node_name *name, unsigned how, struct df_node_entry **entry,
                   struct df_node_drops *drops)
{
    struct df_node *node;
    int result = 0;

    *entry = df_node_cache_find(dir, name);
    if (!*entry)
        return ask(nodes, call, dir, name, how, entry, drops);
    node = atomic_load_explicit(&(*entry)->node, memory_order_acquire);
    if (is_valid(*entry, node) && (!(how & DF_LOOKUP_FRESH) || (how & DF_LOOKUP_REPLACE)))
        return 0; /* valid after all: another call has replaced it */
    if (!node)
        return ask(nodes, call, dir, name, how, entry, drops);
    if (!df_node_has(node, DF_NODE_BAD) && !(how & DF_LOOKUP_REPLACE))
        result = revalidate(nodes, call, dir, *entry, node);
    if (result != 0)
        return result < 0 ? result : 0;
    df_node_cache_expire(*entry);
    if (how & DF_LOOKUP_SHARED)
        return DF_LOOKUP_AGAIN;
    df_node_cache_remove(nodes, dir, *entry);
    df_node_cache_drop_later(drops, *entry);
    *entry = NULL;
    return ask(nodes, call, dir, name, how, entry, drops);
}

void df_node_lookup_learn(struct df_nodes *nodes, struct df_node *dir,
                          const struct df_node_name *name, const struct df_node_found *found,
                          uint64_t asked, struct df_node_drops *drops)
{
    struct df_node_entry *entry = df_node_cache_find(dir, name);
    struct df_node *node;

    if (df_node_get(nodes, found, asked, &node) < 0)
        return;
    df_node_set(node, DF_NODE_VIA_PLUS);
    enter_found(nodes, dir, name, node, found->entry_timeout, DF_LOOKUP_SHARED, &entry, drops);
}
