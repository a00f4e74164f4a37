/*
 * rename.c - renameat2(2) inside the store.
 *
 * A rename from one directory to another holds store->rename, so that the shape of the tree stands
 * still while ancestors are compared. The order of all locks is in store.h. Whatever may fail comes
 * before the first change.
 */
#include <errno.h>
#include <stdio.h>

#include "store.h"

struct rename {
    struct inode *from, *to; /* parents */
    struct name old, new;
    struct dentry *source, *target; /* target is NULL if there is none */
    unsigned flags;
    struct inode *dropped; /* lost its name to the rename, or NULL */
    bool last;             /* which was its last */
    struct inode *parent;  /* gives back a child directory's reference, or NULL */
};

/* ---- the tree --------------------------------------------------------------------------- */

/* Is `above` the directory `below` or one of its ancestors? store->rename is held. */
static bool is_ancestor(const struct inode *above, const struct inode *below)
{
    for (;;) {
        if (above == below)
            return true;
        const struct inode *parent = below->dir->parent;
        if (parent == below)
            return false;
        below = parent;
    }
}

static void lock_parents(struct store *store, struct inode *from, struct inode *to)
{
    if (from == to) {
        lock_write(&from->lock);
        return;
    }
    lock_write(&store->rename);
    bool from_first = is_ancestor(from, to) || (!is_ancestor(to, from) && from < to);
    lock_write(from_first ? &from->lock : &to->lock);
    lock_write(from_first ? &to->lock : &from->lock);
}

static void unlock_parents(struct store *store, struct inode *from, struct inode *to)
{
    lock_write_done(&from->lock);
    if (from == to)
        return;
    lock_write_done(&to->lock);
    lock_write_done(&store->rename);
}

/* Directories before others, each by address; b may be NULL. */
static void lock_children(struct inode *a, struct inode *b)
{
    if (b && ((b->type == DT_DIR) != (a->type == DT_DIR) ? b->type == DT_DIR : b < a)) {
        lock_write(&b->lock);
        b = NULL;
    }
    lock_write(&a->lock);
    if (b)
        lock_write(&b->lock);
}

static void unlock_children(struct inode *a, struct inode *b)
{
    lock_write_done(&a->lock);
    if (b)
        lock_write_done(&b->lock);
}

/* ---- checks ----------------------------------------------------------------------------- */

/* Both parents are locked; finds the entries. In the order of Linux's do_renameat2(). */
static int find_entries(struct rename *r)
{
    if (r->from->attr.nlink == 0 || r->to->attr.nlink == 0)
        return -ENOENT;
    r->source = dir_find(r->from->dir, &r->old);
    if (!r->source)
        return -ENOENT;
    r->target = dir_find(r->to->dir, &r->new);
    if (r->target && (r->flags & RENAME_NOREPLACE))
        return -EEXIST;
    if (!r->target && (r->flags & RENAME_EXCHANGE))
        return -ENOENT;
    return 0;
}

/* No directory may come to lie below itself, nor give way while it is not empty. */
static int check_ancestors(const struct rename *r)
{
    const struct inode *source = r->source->inode;
    const struct inode *target = r->target ? r->target->inode : NULL;

    if (r->from == r->to)
        return 0; /* neither can be its own parent */
    if (source->type == DT_DIR && is_ancestor(source, r->to))
        return -EINVAL;
    if (target && target->type == DT_DIR && is_ancestor(target, r->from))
        return r->flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
    return 0;
}

static int check_types(const struct rename *r)
{
    bool source_is_dir = r->source->inode->type == DT_DIR;
    bool target_is_dir = r->target && r->target->inode->type == DT_DIR;

    if (!r->target || (r->flags & RENAME_EXCHANGE))
        return 0;
    if (source_is_dir && !target_is_dir)
        return -ENOTDIR;
    return !source_is_dir && target_is_dir ? -EISDIR : 0;
}

static int check_links(const struct rename *r)
{
    if (r->from == r->to || r->source->inode->type != DT_DIR)
        return 0;
    if (r->target && r->target->inode->type == DT_DIR)
        return 0;
    return r->to->attr.nlink == UINT32_MAX ? -EMLINK : 0;
}

/* ---- changes ---------------------------------------------------------------------------- */

static void set_ctime(struct inode *inode, const struct timespec *now)
{
    struct attr attr = inode->attr;
    attr.ctime = *now;
    inode_set_attr(inode, &attr);
}

/* The time for everything that the rename changes. All four locks are held. */
static struct timespec stamp(struct store *store, const struct rename *r)
{
    bool seen = atomic_load_explicit(&r->from->seen, memory_order_relaxed) ||
                atomic_load_explicit(&r->to->seen, memory_order_relaxed) ||
                atomic_load_explicit(&r->source->inode->seen, memory_order_relaxed) ||
                (r->target && atomic_load_explicit(&r->target->inode->seen, memory_order_relaxed));
    return stamp_now(store, seen);
}

/* The references that children hold to their parents: one moves from a directory to another. */
static void move_reference(struct rename *r, struct inode *from, struct inode *to)
{
    inode_get(to);
    r->parent = from; /* given back when no lock is held */
}

/* Two directories, or one and another file, change places between the parents. */
static void exchange_parents(struct rename *r, struct inode *source, struct inode *target,
                             const struct timespec *now)
{
    int source_is_dir = source->type == DT_DIR, target_is_dir = target->type == DT_DIR;

    if (source_is_dir)
        source->dir->parent = r->to;
    if (target_is_dir)
        target->dir->parent = r->from;
    if (source_is_dir && !target_is_dir)
        move_reference(r, r->from, r->to);
    if (target_is_dir && !source_is_dir)
        move_reference(r, r->to, r->from);
    tree_parent_changed(r->from, 0, target_is_dir - source_is_dir, now);
    tree_parent_changed(r->to, 0, source_is_dir - target_is_dir, now);
}

static int exchange(struct store *store, struct rename *r)
{
    struct inode *source = r->source->inode, *target = r->target->inode;

    lock_children(source, target);
    struct timespec now = stamp(store, r);
    r->source->inode = target;
    r->target->inode = source;
    if (r->from == r->to)
        tree_parent_changed(r->from, 0, 0, &now);
    else
        exchange_parents(r, source, target, &now);
    set_ctime(source, &now);
    set_ctime(target, &now);
    unlock_children(source, target);
    return 0;
}

/* The new name now means the source. -ENOMEM, -ENOTEMPTY */
static int take_name(struct store *store, struct rename *r, struct inode *source,
                     struct inode *target, const struct timespec *now)
{
    if (!target)
        return dir_insert(r->to->dir, &r->new, source);
    if (target->type == DT_DIR && target->dir->live)
        return -ENOTEMPTY;
    r->target->inode = source;
    r->last = tree_drop_link(store, target, now);
    r->dropped = target;
    return 0;
}

/* The old name goes. `lost`: a directory has been replaced. */
static void leave_name(struct rename *r, struct inode *source, bool new_name, int lost,
                       const struct timespec *now)
{
    int dir = source->type == DT_DIR;

    dir_remove(r->from->dir, &r->old);
    if (r->from == r->to) {
        tree_parent_changed(r->from, new_name ? 0 : -1, -lost, now);
        return;
    }
    if (dir) {
        source->dir->parent = r->to;
        move_reference(r, r->from, r->to);
    }
    tree_parent_changed(r->from, -1, -dir, now);
    tree_parent_changed(r->to, new_name, dir - lost, now);
}

static int move(struct store *store, struct rename *r)
{
    struct inode *source = r->source->inode;
    struct inode *target = r->target ? r->target->inode : NULL;
    bool lost = target && target->type == DT_DIR;

    lock_children(source, target);
    struct timespec now = stamp(store, r);
    int error = take_name(store, r, source, target, &now);
    if (!error) {
        leave_name(r, source, !target, lost, &now);
        set_ctime(source, &now);
    }
    unlock_children(source, target);
    return error;
}

/* Both parents are locked. */
static int rename_locked(struct store *store, struct rename *r)
{
    int error = find_entries(r);
    if (error)
        return error;
    if (r->target && r->target->inode == r->source->inode)
        return 0; /* two names of one file: nothing is to be done, says rename(2) */
    if ((error = check_ancestors(r)) || (error = check_types(r)) || (error = check_links(r)))
        return error;
    return r->flags & RENAME_EXCHANGE ? exchange(store, r) : move(store, r);
}

int rename_entry(struct store *store, struct inode *from, const char *old, struct inode *to,
                 const char *new, unsigned flags)
{
    struct rename r = {.from = from, .to = to, .flags = flags};
    int error;

    if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
        flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    if (from->type != DT_DIR || to->type != DT_DIR)
        return -ENOTDIR;
    if ((error = dir_name(store, old, &r.old)) || (error = dir_name(store, new, &r.new)))
        return error;

    lock_parents(store, from, to);
    error = rename_locked(store, &r);
    unlock_parents(store, from, to);
    if (r.dropped)
        tree_put_link(store, r.dropped, r.last);
    if (r.parent)
        inode_put(store, r.parent, 1);
    return error;
}
