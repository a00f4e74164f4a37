/*
 * lookup.c - entries that must be asked for: LOOKUP, revalidation, entering what is found.
 */
#include "nodes/lookup.h"

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

/* Under parents_lock. The reference to the parent it had goes to `drops`. */
static void set_parent(struct df_node *node, struct df_node *parent, struct df_node_drops *drops)
{
    struct df_node *was = atomic_load_explicit(&node->parent, memory_order_relaxed);

    if (was)
        df_node_cache_put_later(drops, was);
    df_node_hold(parent);
    atomic_store_explicit(&node->parent, parent, memory_order_release);
}

void df_node_lookup_move(struct df_nodes *nodes, struct df_node *node, struct df_node *parent,
                         struct df_node_drops *drops)
{
    df_node_lock(&nodes->parents_lock);
    set_parent(node, parent, drops);
    df_node_unlock(&nodes->parents_lock);
}

/* Under parents_lock, from a parent that is locked shared then: *old. A place below itself is
 * refused, so that parents always end at the root. */
static int move_from(struct df_node *was, struct df_node_search *search, struct df_node *node,
                     struct df_node **old)
{
    if (is_above(node, search->dir))
        return -ELOOP;
    if (!df_node_trylock_shared(&was->lock))
        return -ESTALE;
    set_parent(node, search->dir, search->drops);
    *old = was;
    return 0;
}

/* Under parents_lock. */
static int move_here(struct df_node_search *search, struct df_node *node, struct df_node **old)
{
    struct df_node_lock *renames = &search->nodes->rename_lock;
    struct df_node *was = atomic_load_explicit(&node->parent, memory_order_relaxed);
    int result;

    if (!was)
        set_parent(node, search->dir, search->drops);
    if (!was || was == search->dir)
        return 0;
    if (!df_node_trylock_shared(renames))
        return -ESTALE;
    result = move_from(was, search, node, old);
    df_node_unlock_shared(renames);
    return result;
}

/*
 * A directory has one place. One that we knew and that turns up elsewhere has been moved behind our
 * back: it moves for us too, and its old entry is asked for again (d_splice_alias() in the kernel).
 *
 * Who holds a directory and waits for one below it relies on what is above what. So no rename
 * between directories may be under way, and nobody may be changing the old parent. They are not
 * waited for, with a directory in hand: then the name is stale, which makes the call try again.
 */
static int adopt(struct df_node_search *search, struct df_node *node)
{
    struct df_node *old = NULL;
    int result;

    if (!df_node_is_dir(node) ||
        atomic_load_explicit(&node->parent, memory_order_relaxed) == search->dir)
        return 0;
    df_node_lock(&search->nodes->parents_lock);
    result = move_here(search, node, &old);
    df_node_unlock(&search->nodes->parents_lock);
    if (old) {
        df_node_cache_expire_other(old, node);
        df_node_unlock_shared(&old->lock);
    }
    return result;
}

/* ---- entering ------------------------------------------------------------------------------ */

/* search->entry is set only if it goes well. */
static int add(struct df_node_search *search, struct df_node *node, bool is_new)
{
    struct df_node_entry *made = df_node_cache_new(search->name, is_new ? node : NULL);
    int error = made ? df_node_cache_add(search->nodes, search->dir, made, node) : -ENOMEM;

    if (error < 0)
        df_node_cache_discard(made);
    else
        search->entry = made;
    return error;
}

/* The entry leads to a node, as the plugin has just said. */
static void believe(const struct df_node_search *search, double entry_timeout)
{
    df_node_given(&search->nodes->shortest, entry_timeout);
    df_node_cache_believe(search->nodes, search->told, search->entry,
                          df_node_expiry(entry_timeout));
}

/* Takes over the reference, if it goes well. */
static int enter(struct df_node_search *search, struct df_node *node, bool is_new,
                 double entry_timeout)
{
    if (search->entry)
        df_node_cache_fill(search->entry, node);
    else if (add(search, node, is_new) < 0)
        return -ENOMEM;
    believe(search, entry_timeout);
    return 0;
}

int df_node_lookup_enter(struct df_node_search *search, struct df_node *node, bool is_new,
                         double entry_timeout)
{
    int error = adopt(search, node);

    if (error == 0)
        error = enter(search, node, is_new, entry_timeout);
    if (error < 0)
        df_node_cache_put_later(search->drops, node);
    return error;
}

/* Before something is entered: under a shared lock, another call may have been faster. */
static void begin_entering(struct df_node_search *search, bool shared)
{
    if (!shared)
        return;
    df_node_lock(&search->dir->insert_lock);
    if (!search->entry)
        search->entry = df_node_cache_find(search->dir, search->name);
}

static void end_entering(struct df_node_search *search, bool shared)
{
    if (shared)
        df_node_unlock(&search->dir->insert_lock);
}

/* Takes over the reference. search->entry: the one that was found before asking, or NULL. `shared`:
 * how the directory is locked. */
static int enter_found(struct df_node_search *search, struct df_node *node, bool is_new,
                       double entry_timeout, bool shared)
{
    struct df_node *known;
    int result = adopt(search, node);

    if (result < 0) {
        df_node_cache_put_later(search->drops, node);
        return result;
    }
    begin_entering(search, shared);
    known = search->entry ? atomic_load_explicit(&search->entry->node, memory_order_relaxed) : NULL;
    if (!known) {
        result = enter(search, node, is_new, entry_timeout);
        if (result < 0)
            df_node_cache_put_later(search->drops, node);
    } else if (known == node) {
        df_node_put(search->nodes, node); /* not the last one: the entry has another */
        believe(search, entry_timeout);
    } else {
        df_node_cache_put_later(search->drops, node);
        df_node_cache_expire(search->entry);
        result = DF_LOOKUP_AGAIN;
    }
    end_entering(search, shared);
    return result;
}

/* The name is absent. That is worth an entry if it may be believed later; not having the memory for
 * one costs another LOOKUP. */
static void enter_absent(struct df_node_search *search, double entry_timeout, bool shared)
{
    uint64_t expiry = df_node_expiry(entry_timeout);

    df_node_given(&search->nodes->shortest_absent, entry_timeout);
    if (expiry == 0 && !search->entry)
        return;
    begin_entering(search, shared);
    if (!search->entry)
        add(search, NULL, false);
    if (search->entry && !atomic_load_explicit(&search->entry->node, memory_order_relaxed))
        df_node_cache_believe(search->nodes, search->told, search->entry, expiry);
    end_entering(search, shared);
}

/* ---- asking -------------------------------------------------------------------------------- */

/* search->entry: NULL, or an absent one that is not believed. */
static int ask(struct df_node_search *search, struct df_call *call, unsigned how)
{
    struct df_nodes *nodes = search->nodes;
    bool shared = how & DF_LOOKUP_SHARED;
    uint64_t asked = df_node_attr_asking();
    struct df_node_found found;
    struct df_node *node;
    bool is_new;
    int result = nodes->source->lookup(nodes, call, search->dir, search->name->text, &found);

    if (result < 0 && result != -ENOENT)
        return result;
    if (result < 0 || found.id == 0) {
        if (!(how & DF_LOOKUP_ABSENT))
            enter_absent(search, result < 0 ? 0 : found.entry_timeout, shared);
        return 0;
    }
    result = df_node_get(nodes, &found, asked, 1, &node, &is_new);
    if (result < 0) {
        df_node_forget_one(nodes, found.id);
        return result;
    }
    df_node_set(search->dir, DF_NODE_WANT_PLUS);
    return enter_found(search, node, is_new, found.entry_timeout, shared);
}

/* The entry has expired. 1: it is what it was; 0: it must go; or an error for the caller. */
static int revalidate(struct df_node_search *search, struct df_call *call, struct df_node *node)
{
    struct df_nodes *nodes = search->nodes;
    uint32_t changes = df_node_attr_changes(node);
    struct df_node_found found;
    int result = nodes->source->lookup(nodes, call, search->dir, search->entry->name, &found);

    if (result == -ENOMEM || result == -EINTR)
        return result;
    if (result < 0 || found.id == 0)
        return 0;
    if (found.id != node->id) {
        df_node_forget_one(nodes, found.id);
        return 0;
    }
    df_node_count_lookup(node);
    df_node_given(&nodes->shortest, found.attr_timeout);
    if (found.generation != node->generation ||
        df_node_attr_store(node, &found.attr, df_node_expiry(found.attr_timeout), changes) < 0)
        return 0;
    result = adopt(search, node);
    if (result < 0)
        return result;
    believe(search, found.entry_timeout);
    return 1;
}

static bool is_valid(struct df_node_entry *entry, struct df_node *node)
{
    struct df_node_clock clock = {0};
    uint64_t expiry = atomic_load_explicit(&entry->expiry, memory_order_acquire);

    return df_node_live(&clock, expiry) && !(node && df_node_has(node, DF_NODE_BAD));
}

/* What is to be done about a present entry: 0: nothing, it is good; 1: it must go; or an error. */
static int judge(struct df_node_search *search, struct df_call *call, struct df_node *node,
                 unsigned how)
{
    int same;

    if (df_node_has(node, DF_NODE_BAD) || (how & DF_LOOKUP_REPLACE))
        return 1;
    same = revalidate(search, call, node);
    return same < 0 ? same : !same;
}

int df_node_lookup(struct df_node_search *search, struct df_call *call, unsigned how)
{
    struct df_node_entry *entry = df_node_cache_find(search->dir, search->name);
    struct df_node *node = entry ? atomic_load_explicit(&entry->node, memory_order_acquire) : NULL;
    int result;

    search->entry = entry;
    search->told = df_node_told(search->nodes);
    if (entry && is_valid(entry, node) && (!(how & DF_LOOKUP_FRESH) || (how & DF_LOOKUP_REPLACE)))
        return 0; /* perhaps after all: another call has replaced it */
    if (node) {
        result = judge(search, call, node, how);
        if (result <= 0)
            return result;
        df_node_cache_expire(entry);
        if (how & DF_LOOKUP_SHARED)
            return DF_LOOKUP_AGAIN;
        df_node_cache_remove(search->nodes, search->dir, entry);
        df_node_cache_drop_later(search->drops, entry);
        search->entry = NULL;
    }
    return ask(search, call, how);
}

void df_node_lookup_learn(struct df_node_search *search, const struct df_node_found *found,
                          uint64_t asked)
{
    struct df_node *node;
    bool is_new;

    search->entry = NULL;
    if (df_node_get(search->nodes, found, asked, 1, &node, &is_new) < 0) {
        df_node_forget_one(search->nodes, found->id);
        return;
    }
    df_node_set(node, DF_NODE_VIA_PLUS);
    enter_found(search, node, is_new, found->entry_timeout, true);
}
