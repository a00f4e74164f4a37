/*
 * create.c - open with O_TMPFILE; and with O_CREAT: the entry is looked up first and CREATE is sent
 * only for one that is absent, so O_EXCL is answered here, as by the kernel.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lowlevel/changes.h"
#include "lowlevel/open.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"

static int send_create(const struct df_opening *opening, const struct df_place *place,
                       struct df_node_found *found, struct fuse_file_info *fi)
{
    mode_t mode = df_lowlevel_mode(opening->lane, opening->call, opening->mode);
    struct fuse_req req;
    int result;

    if (df_lowlevel_lacks(opening->lane, DF_LACKS_CREATE))
        return -ENOSYS;
    df_request_begin(&req, opening->lane, opening->call, DF_TAKES_CREATE);
    req.found = found;
    req.fi = fi;
    result = (int)DF_REQUEST(&req, create, place->dir->id, place->name.text, S_IFREG | mode, fi);
    if (result == -ENOSYS)
        df_lowlevel_note_lack(opening->lane, DF_LACKS_CREATE);
    return result;
}

/* CREATE: 0 when the file is open. */
static int create_open(const struct df_opening *opening, struct df_place *place)
{
    int flags = opening->flags & ~O_NOCTTY;
    struct df_node_found found;
    union df_file_info info;
    struct df_node *node;
    int result;

    memset(&info, 0, sizeof(info));
    info.fi.flags = flags;
    result = send_create(opening, place, &found, &info.fi);
    if (result < 0)
        return result;
    flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
    result = df_lowlevel_enter_made(place, &found, S_IFREG, true, &node);
    if (result < 0) { /* the file is open all the same */
        info.fi.flags = flags;
        df_lowlevel_send_release(opening->lane, opening->call, found.id, false, &info.fi);
        df_lowlevel_disown(place, &found);
        return result;
    }
    df_lowlevel_fill_file(opening, node, flags, &info.fi, true);
    return 0;
}

static int send_mknod(const struct df_opening *opening, const struct df_place *place,
                      struct df_node_found *found)
{
    mode_t mode = df_lowlevel_mode(opening->lane, opening->call, opening->mode);
    struct fuse_req req;

    if (!opening->lane->ops.mknod)
        return -ENOSYS;
    df_request_begin(&req, opening->lane, opening->call, DF_TAKES_ENTRY);
    req.found = found;
    return (int)DF_REQUEST(&req, mknod, place->dir->id, place->name.text, S_IFREG | mode, 0);
}

/* MKNOD: 0 and the node, with a reference, still to be opened. */
static int create_closed(const struct df_opening *opening, struct df_place *place,
                         struct df_node **node)
{
    struct df_node_found found;
    int result = send_mknod(opening, place, &found);

    if (result < 0)
        return result;
    result = df_lowlevel_enter_made(place, &found, S_IFREG, true, node);
    if (result < 0)
        df_lowlevel_disown(place, &found);
    return result;
}

/* In the locked directory. 0: open, or *node (referenced) is to be opened. */
static int create(const struct df_opening *opening, struct df_place *place, struct df_node **node)
{
    int result = df_lowlevel_permit(opening->lane, opening->call, place->dir, W_OK | X_OK);

    if (result < 0)
        return result;
    DF_TELL_MADE(opening->call, place->dir, &place->name, S_IFREG);
    result = create_open(opening, place);
    if (result == -ENOSYS)
        result = create_closed(opening, place, node);
    return result;
}

/* In the locked directory. What is there already comes back in *node, referenced. */
static int create_or_find(const struct df_opening *opening, const struct df_node_walk *walk,
                          struct df_place *place, bool *made, struct df_node **node)
{
    unsigned how =
        DF_LOOKUP_ABSENT | ((opening->flags & O_EXCL) || walk->revalidate ? DF_LOOKUP_FRESH : 0);
    int result = df_lowlevel_look_up(place, walk, how);

    if (result < 0)
        return result;
    *node = place->node;
    *made = !*node;
    if (*made)
        return create(opening, place, node);
    if (opening->flags & O_EXCL)
        return -EEXIST;
    df_node_hold(*node);
    return 0;
}

/* Opens what was found or made closed; drops the reference if that fails. 1: follow the symlink. */
static int open_found(const struct df_opening *opening, const struct df_node_walk *walk,
                      struct df_node *node, bool made)
{
    struct df_opening plain = *opening;
    int result;

    if (S_ISLNK(node->type) && !(walk->where->flags & DF_WHERE_NOFOLLOW))
        return 1;
    if (made && !opening->lane->atomic_truncate)
        plain.flags &= ~O_TRUNC; /* it is empty */
    result = made ? df_lowlevel_open_node(&plain, node) : df_lowlevel_open_existing(&plain, node);
    if (result < 0)
        df_node_put(&opening->lane->nodes, node);
    return result;
}

/* In the directory of the walk: 0 when the file is open or *node is to be opened. */
static int in_directory(const struct df_opening *opening, struct df_node_walk *walk, bool *made,
                        struct df_node **node)
{
    struct df_place place;
    int result;

    while ((result = df_node_walk_lock(walk)) == DF_NODE_COLD)
        if ((result = df_node_walk_again(walk)) != 0)
            return result;
    if (result != 0)
        return result;
    df_lowlevel_begin_place(&place, opening->lane, opening->call);
    if (walk->kind != DF_END_NAME || walk->must_be_dir)
        result = -EISDIR;
    else
        result = create_or_find(opening, walk, &place, made, node);
    df_node_walk_unlock(walk);
    df_node_cache_drop(&opening->lane->nodes, &place.drops);
    return result;
}

/* What is known to be there needs no lock of its directory; a root that is a file is in none. */
static struct df_node *peek(const struct df_opening *opening, struct df_node_walk *walk)
{
    struct df_node *node;

    if (walk->kind == DF_END_ROOT && !df_node_is_dir(walk->dir) && !(opening->flags & O_EXCL))
        return df_node_try_hold(walk->dir) ? walk->dir : NULL;
    if (walk->kind != DF_END_NAME || walk->must_be_dir || walk->revalidate ||
        (opening->flags & O_EXCL) || df_node_walk_peek(walk, &node) != 0 || !df_node_try_hold(node))
        return NULL;
    return node;
}

/* From the last component to an open file, over symlinks. */
static int create_at(const struct df_opening *opening, struct df_node_walk *walk)
{
    for (;;) {
        struct df_node *node = peek(opening, walk);
        bool made = false;
        int result = node ? 0 : in_directory(opening, walk, &made, &node);

        if (result != 0 || !node)
            return result;
        result = open_found(opening, walk, node, made);
        if (result <= 0)
            return result;
        result = df_node_walk_follow(walk, node);
        df_node_put(&opening->lane->nodes, node);
        if (result != 0)
            return result;
    }
}

int df_lowlevel_open_creating(const struct df_opening *opening, const struct df_where *where,
                              bool revalidate)
{
    struct df_node_walk walk;
    int result =
        df_node_walk_parent(&walk, &opening->lane->nodes, opening->call, where, revalidate);

    return result != 0 ? result : create_at(opening, &walk);
}

/* ---- O_TMPFILE ----------------------------------------------------------------------------- */

static int send_tmpfile(const struct df_opening *opening, const struct df_node *dir,
                        struct df_node_found *found, struct fuse_file_info *fi)
{
    mode_t mode = df_lowlevel_mode(opening->lane, opening->call, opening->mode);
    struct fuse_req req;
    int result;

    if (df_lowlevel_lacks(opening->lane, DF_LACKS_TMPFILE))
        return -EOPNOTSUPP;
    df_request_begin(&req, opening->lane, opening->call, DF_TAKES_CREATE);
    req.found = found;
    req.fi = fi;
    result = (int)DF_REQUEST_OF(&req, later.tmpfile, dir->id, S_IFREG | mode, fi);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(opening->lane, DF_LACKS_TMPFILE);
    return -EOPNOTSUPP;
}

/* The node of what was made, with a reference. No entry leads to it. */
static int enter_nameless(const struct df_opening *opening, const struct df_node_found *found,
                          struct df_node **node)
{
    struct df_nodes *nodes = &opening->lane->nodes;
    bool is_new;
    int result = -EIO;

    if (found->id != 0 && S_ISREG(found->attr.st_mode))
        result = df_node_get(nodes, found, 0, 1, node, &is_new);
    if (result == 0 && !(opening->flags & O_EXCL))
        df_node_set(*node, DF_NODE_LINKABLE);
    return result;
}

static ssize_t make_nameless(const struct df_target *target, void *arg)
{
    const struct df_opening *opening = arg;
    int flags = opening->flags & ~(O_EXCL | O_NOCTTY | O_TRUNC);
    union df_file_info info = {.fi.flags = opening->flags & ~O_NOCTTY};
    struct df_node_found found;
    struct df_node *node;
    int result = df_node_is_dir(target->node) ? 0 : -ENOTDIR;

    if (result == 0)
        result = df_lowlevel_permit(target->lane, target->call, target->node, W_OK | X_OK);
    if (result == 0)
        result = send_tmpfile(opening, target->node, &found, &info.fi);
    if (result < 0)
        return result;
    df_node_attr_forget(target->node, DF_ATTR_ENTRIES);
    result = enter_nameless(opening, &found, &node);
    if (result == 0) {
        df_lowlevel_fill_file(opening, node, flags, &info.fi, true);
    } else { /* the file is open all the same */
        info.fi.flags = flags;
        df_lowlevel_send_release(target->lane, target->call, found.id, false, &info.fi);
        if (found.id != 0)
            df_node_forget_one(&target->lane->nodes, found.id);
    }
    return result;
}

int df_lowlevel_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct df_file *file, int flags, mode_t mode)
{
    struct df_opening opening = {df_lowlevel_of(fs), call, file, flags, mode};

    df_lowlevel_tells(call);
    return (int)df_lowlevel_on_object(fs, call, where, make_nameless, &opening);
}
