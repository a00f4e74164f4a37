/*
 * rename.c - rename: two entries in one or two directories, moved, replaced or exchanged.
 *
 * As do_renameat2() and vfs_rename() of the kernel: both directories are locked (under rename_lock
 * when they differ, so that no two renames change the tree at a time), both names are looked up,
 * what cannot be is refused before the plugin is asked.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lowlevel/changes.h"
#include "lowlevel/request.h"

#define TRIES_MAX 100 /* as in a walk */

/* One of the two names. */
struct side {
    struct df_node_walk walk;
    struct df_node *dir;
    struct df_node_entry *entry; /* NULL: absent and not cached */
    struct df_node *node;        /* NULL: absent */
    struct df_node_entry *spare; /* in no table: for the name's next node */
    struct df_node_entry *left;  /* out of its table, its reference has moved on */
};

struct renaming {
    struct df_lowlevel *lane;
    struct df_call *call;
    unsigned flags;
    uint32_t told; /* df_node_told() */
    struct side from, to;
    struct df_node_held held[3]; /* the locks of both directories, and rename_lock */
    unsigned held_count;
    struct df_node_drops drops;
};

/* ---- the two directories ------------------------------------------------------------------- */

/* References to both, which the walks had bare pointers to. */
static bool hold_dirs(struct renaming *renaming)
{
    if (!df_node_try_hold(renaming->from.dir))
        return false;
    if (df_node_try_hold(renaming->to.dir))
        return true;
    df_node_put(&renaming->lane->nodes, renaming->from.dir);
    return false;
}

static void put_dirs(struct renaming *renaming)
{
    df_node_put(&renaming->lane->nodes, renaming->from.dir);
    df_node_put(&renaming->lane->nodes, renaming->to.dir);
}

static int take(struct renaming *renaming, struct df_node_lock *lock)
{
    int result = df_node_held_take(&renaming->held[renaming->held_count], &renaming->lane->nodes,
                                   lock, false);

    if (result == 0)
        renaming->held_count++;
    return result;
}

/* Parent before child; two that are not above each other in any order. Under rename_lock. */
static int lock_both(struct renaming *renaming)
{
    struct df_node *first = renaming->from.dir, *second = renaming->to.dir;
    int result;

    if (df_node_lookup_is_above(&renaming->lane->nodes, second, first)) {
        first = renaming->to.dir;
        second = renaming->from.dir;
    }
    result = take(renaming, &first->lock);
    return result == 0 ? take(renaming, &second->lock) : result;
}

/* 0, or -EDEADLK: as of df_node_held_take(). What it has taken is unlocked by unlock_dirs(). */
static int lock_dirs(struct renaming *renaming)
{
    int result;

    renaming->held_count = 0;
    if (renaming->from.dir == renaming->to.dir)
        return take(renaming, &renaming->from.dir->lock);
    result = take(renaming, &renaming->lane->nodes.rename_lock);
    return result == 0 ? lock_both(renaming) : result;
}

static void unlock_dirs(struct renaming *renaming)
{
    while (renaming->held_count > 0)
        df_node_held_give(&renaming->held[--renaming->held_count]);
}

/* ---- what may be --------------------------------------------------------------------------- */

static int look_up(struct renaming *renaming, struct side *side, unsigned how)
{
    struct df_node_search search = {
        .nodes = &renaming->lane->nodes,
        .dir = side->dir,
        .name = &side->walk.last,
        .drops = &renaming->drops,
    };
    int result;

    if (side->walk.kind != DF_END_NAME)
        return -EBUSY; /* the core has an answer of its own to these */
    result = df_node_lookup(&search, renaming->call, how);
    side->entry = search.entry;
    side->node = result == 0 && side->entry
                     ? atomic_load_explicit(&side->entry->node, memory_order_relaxed)
                     : NULL;
    return result;
}

static bool is_same_name(const struct renaming *renaming)
{
    const struct df_node_name *from = &renaming->from.walk.last, *to = &renaming->to.walk.last;

    return renaming->from.dir == renaming->to.dir && renaming->to.walk.kind == DF_END_NAME &&
           from->len == to->len && memcmp(from->text, to->text, from->len) == 0;
}

static bool contains(struct renaming *renaming, struct df_node *node, struct df_node *dir)
{
    return df_node_is_dir(node) && df_node_lookup_is_above(&renaming->lane->nodes, node, dir);
}

static int check_places(struct renaming *renaming)
{
    bool exchange = renaming->flags & RENAME_EXCHANGE;

    if (!renaming->from.node)
        return -ENOENT;
    if ((renaming->flags & RENAME_NOREPLACE) && renaming->to.node)
        return -EEXIST;
    if (exchange && !renaming->to.node)
        return -ENOENT;
    if (contains(renaming, renaming->from.node, renaming->to.dir))
        return -EINVAL;
    if (renaming->to.node && contains(renaming, renaming->to.node, renaming->from.dir))
        return exchange ? -EINVAL : -ENOTEMPTY;
    return 0;
}

/* A directory that gets another parent is changed itself: its "..". */
static int check_moving(struct renaming *renaming, struct df_node *node)
{
    if (!df_node_is_dir(node) || renaming->from.dir == renaming->to.dir)
        return 0;
    return df_lowlevel_permit(renaming->lane, renaming->call, node, W_OK);
}

static int check_target(struct renaming *renaming)
{
    struct df_node *from = renaming->from.node, *to = renaming->to.node;
    int result;

    if (!to)
        return df_lowlevel_permit(renaming->lane, renaming->call, renaming->to.dir, W_OK | X_OK);
    result = df_lowlevel_permit_remove(renaming->lane, renaming->call, renaming->to.dir, to);
    if (result < 0)
        return result;
    if (renaming->flags & RENAME_EXCHANGE)
        return check_moving(renaming, to);
    if (df_node_is_dir(from) != df_node_is_dir(to))
        return df_node_is_dir(from) ? -ENOTDIR : -EISDIR;
    return 0;
}

static int check_permissions(struct renaming *renaming)
{
    int result = df_lowlevel_permit_remove(renaming->lane, renaming->call, renaming->from.dir,
                                           renaming->from.node);

    if (result == 0)
        result = check_target(renaming);
    if (result == 0)
        result = check_moving(renaming, renaming->from.node);
    return result;
}

/* ---- doing it ------------------------------------------------------------------------------ */

static int send_rename(struct renaming *renaming)
{
    struct df_lowlevel *lane = renaming->lane;
    struct fuse_req req;
    int result = -ENOSYS;

    if (renaming->flags && df_lowlevel_lacks(lane, DF_LACKS_RENAME_FLAGS))
        return -EINVAL;
    if (lane->ops.rename) {
        df_request_begin(&req, lane, renaming->call, DF_TAKES_OK);
        result =
            (int)DF_REQUEST(&req, rename, renaming->from.dir->id, renaming->from.walk.last.text,
                            renaming->to.dir->id, renaming->to.walk.last.text, renaming->flags);
    }
    if (result == -ENOSYS && renaming->flags) {
        df_lowlevel_note_lack(lane, DF_LACKS_RENAME_FLAGS);
        result = -EINVAL;
    }
    return result;
}

/* A directory that is replaced is locked, as for rmdir. */
static int send_locked(struct renaming *renaming)
{
    struct df_node *victim = renaming->to.node;
    struct df_node_held held;
    int result;

    if (!victim || !df_node_is_dir(victim) || (renaming->flags & RENAME_EXCHANGE))
        return send_rename(renaming);
    result = df_node_held_take(&held, &renaming->lane->nodes, &victim->lock, false);
    if (result < 0)
        return result;
    result = send_rename(renaming);
    if (result == 0)
        df_node_set(victim, DF_NODE_REMOVED);
    df_node_held_give(&held);
    return result;
}

/* The node gets the name of this side, as valid as its old one was. */
static void enter(struct renaming *renaming, struct side *side, struct df_node *node,
                  uint64_t expiry)
{
    struct df_nodes *nodes = &renaming->lane->nodes;
    struct df_node_entry *entry = side->spare ? side->spare : side->entry;

    if (df_node_is_dir(node) && renaming->from.dir != renaming->to.dir)
        df_node_lookup_move(nodes, node, side->dir, &renaming->drops);
    if (!side->spare) {
        df_node_cache_fill(entry, node);
    } else if (df_node_cache_add(nodes, side->dir, entry, node) == 0) {
        side->spare = NULL;
    } else {
        df_node_cache_put_later(&renaming->drops, node); /* will be looked up again */
        return;
    }
    df_node_cache_believe(nodes, renaming->told, entry, expiry);
}

/* Takes the entry out of its table; its reference moves on. */
static uint64_t leave(struct renaming *renaming, struct side *side)
{
    df_node_cache_remove(&renaming->lane->nodes, side->dir, side->entry);
    side->left = side->entry;
    return atomic_load_explicit(&side->entry->expiry, memory_order_relaxed);
}

static void move(struct renaming *renaming)
{
    uint64_t expiry = leave(renaming, &renaming->from), other;

    if (renaming->flags & RENAME_EXCHANGE) {
        other = leave(renaming, &renaming->to);
        enter(renaming, &renaming->from, renaming->to.node, other);
    } else if (renaming->to.node) {
        df_node_cache_remove(&renaming->lane->nodes, renaming->to.dir, renaming->to.entry);
        df_node_cache_drop_later(&renaming->drops, renaming->to.entry);
    }
    enter(renaming, &renaming->to, renaming->from.node, expiry);
}

static void renamed(struct renaming *renaming)
{
    df_node_attr_forget(renaming->from.node, DF_ATTR_ALL);
    df_node_attr_forget(renaming->from.dir, DF_ATTR_ENTRIES);
    if (renaming->to.dir != renaming->from.dir)
        df_node_attr_forget(renaming->to.dir, DF_ATTR_ENTRIES);
    if (renaming->to.node)
        df_node_attr_forget(renaming->to.node, DF_ATTR_ALL);
    move(renaming);
}

/* The entry that a name will need, before the plugin is asked; an absent one that is there turns
 * present. */
static int make_spare(struct side *side)
{
    if (side->entry && !side->node)
        return 0;
    side->spare = df_node_cache_new(&side->walk.last, NULL);
    return side->spare ? 0 : -ENOMEM;
}

static int make_spares(struct renaming *renaming)
{
    int result = make_spare(&renaming->to);

    if (result == 0 && (renaming->flags & RENAME_EXCHANGE))
        result = make_spare(&renaming->from);
    return result;
}

/* Of what stands at both names, and of both directories. */
static void tell(const struct renaming *renaming)
{
    struct df_call *call = renaming->call;

    DF_TELL_NAMES(call, renaming->from.dir);
    if (renaming->to.dir != renaming->from.dir)
        DF_TELL_NAMES(call, renaming->to.dir);
    DF_TELL_LOST(call, renaming->from.node);
    if (renaming->to.node)
        DF_TELL_LOST(call, renaming->to.node);
    else if (call->changes)
        df_changes_made(call->changes, renaming->to.walk.last.hash);
}

static int rename_locked(struct renaming *renaming, unsigned how)
{
    int result = df_node_dir_error(renaming->from.dir);

    if (result == 0)
        result = df_node_dir_error(renaming->to.dir);
    if (result == 0)
        result = look_up(renaming, &renaming->from, how);
    if (result == 0 && is_same_name(renaming))
        renaming->to.node = renaming->from.node;
    else if (result == 0)
        result = look_up(renaming, &renaming->to,
                         renaming->flags & RENAME_EXCHANGE ? how : DF_LOOKUP_FRESH);
    if (result == 0)
        result = check_places(renaming);
    if (result < 0 || renaming->from.node == renaming->to.node)
        return result; /* two names of one file: rename(2) does nothing */
    result = check_permissions(renaming);
    if (result == 0)
        result = make_spares(renaming);
    if (result == 0) {
        tell(renaming);
        result = send_locked(renaming);
    }
    if (result == 0) {
        renamed(renaming);
    } else if (result == -EINTR) { /* nobody knows whether it took place */
        df_node_cache_expire(renaming->from.entry);
        if (renaming->to.entry)
            df_node_cache_expire(renaming->to.entry);
    }
    return result;
}

/* ---- the operation ------------------------------------------------------------------------- */

static int walk_both(struct renaming *renaming, const struct df_where *from,
                     const struct df_where *to, bool revalidate)
{
    struct df_nodes *nodes = &renaming->lane->nodes;
    int result = df_node_walk_parent(&renaming->from.walk, nodes, renaming->call, from, revalidate);

    if (result == 0) {
        df_call_begin_second(renaming->call);
        result = df_node_walk_parent(&renaming->to.walk, nodes, renaming->call, to, revalidate);
        result = (int)df_call_end_second(renaming->call, result);
    }
    renaming->from.dir = renaming->from.walk.dir;
    renaming->to.dir = renaming->to.walk.dir;
    return result;
}

static void clean_up(struct renaming *renaming, struct side *side)
{
    df_node_cache_discard(side->spare);
    if (side->left)
        df_node_cache_retire(&renaming->lane->nodes, side->left);
    side->spare = side->left = NULL;
}

static int rename_once(struct renaming *renaming, const struct df_where *from,
                       const struct df_where *to, bool revalidate)
{
    int result = walk_both(renaming, from, to, revalidate);

    if (result != 0)
        return result;
    if (!hold_dirs(renaming))
        return DF_NODE_COLD;
    result = lock_dirs(renaming);
    renaming->told = df_node_told(&renaming->lane->nodes);
    if (result == 0)
        result = rename_locked(renaming, revalidate ? DF_LOOKUP_FRESH : 0);
    unlock_dirs(renaming);
    put_dirs(renaming);
    clean_up(renaming, &renaming->from);
    clean_up(renaming, &renaming->to);
    df_node_cache_drop(&renaming->lane->nodes, &renaming->drops);
    return result;
}

/* A directory that is being forgotten when its turn comes is walked to again. */
static int rename_alive(struct renaming *renaming, const struct df_where *from,
                        const struct df_where *to, bool revalidate)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        int result = rename_once(renaming, from, to, revalidate);

        if (result != DF_NODE_COLD)
            return result;
    }
    return -ESTALE;
}

int df_lowlevel_rename(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                       const struct df_where *to, unsigned flags)
{
    struct renaming renaming;
    int result;

    renaming.lane = df_lowlevel_of(fs);
    renaming.call = call;
    renaming.flags = flags;
    renaming.from.spare = renaming.from.left = NULL;
    renaming.to.spare = renaming.to.left = NULL;
    df_node_cache_begin_drops(&renaming.drops);
    df_lowlevel_tells(call);
    result = df_lowlevel_enter(renaming.lane, call);
    if (result < 0)
        return result;
    result = rename_alive(&renaming, from, to, false);
    if (result == -ESTALE)
        result = rename_alive(&renaming, from, to, true);
    df_lowlevel_leave(renaming.lane);
    return result;
}
