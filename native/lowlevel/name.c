/*
 * name.c - entries are made and removed: mknod, mkdir, symlink, link, unlink, rmdir.
 */
#include <unistd.h>

#include "host/permission.h"
#include "lowlevel/changes.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"

/* ---- making -------------------------------------------------------------------------------- */

/* What is to be made, and the request that makes it. */
struct making {
    mode_t type; /* of the node that must come back */
    mode_t mode;
    dev_t rdev;
    const char *target;   /* symlink */
    struct df_node *old;  /* link */
    struct df_file *file; /* link of an open file; else NULL */
    struct df_node *made; /* pinned by its entry */
    int (*send)(const struct df_place *place, const struct making *making,
                struct df_node_found *found);
};

/* The old node has one name more; the answer told its attributes, unless it was about another node,
 * for a file system may give each name one of its own. */
static void note_link(const struct making *making, const struct df_node_found *found)
{
    if (df_node_has(making->old, DF_NODE_LINKABLE))
        df_node_clear(making->old, DF_NODE_LINKABLE);
    if (making->made == making->old)
        df_node_attr_changed(making->old, &found->attr, df_node_expiry(found->attr_timeout));
    else
        df_node_attr_forget(making->old, DF_ATTR_ALL);
}

static int may_link(struct df_place *place, struct df_node *old, const struct stat *st)
{
    const struct df_caller *caller = place->call->caller;
    bool rights = !df_permission_link_asks(caller, st) ||
                  df_lowlevel_permit(place->lane, place->call, old, R_OK | W_OK) == 0;

    return df_permission_link(caller, st, rights);
}

/* By what is known of the old file; what that refuses is asked for once more. */
static int check_old(struct df_place *place, const struct making *making)
{
    struct stat st;
    int result;

    if (!making->old || place->call->caller->capable)
        return 0;
    df_node_attr_last(making->old, &st);
    if (may_link(place, making->old, &st) == 0)
        return 0;
    result = df_lowlevel_ask_attr(place->lane, place->call, making->old, making->file, &st);
    return result < 0 ? result : may_link(place, making->old, &st);
}

/* The name must be free, what gets it be one that may, and the directory writable; the kernel asks
 * about the name in any case. */
static int check_new(struct df_place *place, const struct making *making)
{
    int result = place->node ? -EEXIST : check_old(place, making);

    return result < 0 ? result
                      : df_lowlevel_permit(place->lane, place->call, place->dir, W_OK | X_OK);
}

static int make(struct df_place *place, void *arg)
{
    struct making *making = arg;
    struct df_node_found found;
    int result = check_new(place, making);

    if (result < 0)
        return result;
    DF_TELL_MADE(place->call, place->dir, &place->name, making->type);
    if (making->old)
        DF_TELL_ATTR(place->call, making->old, false);
    result = making->send(place, making, &found);
    if (result < 0)
        return result;
    result = df_lowlevel_enter_made(place, &found, making->type, false, &making->made);
    if (result < 0)
        df_lowlevel_disown(place, &found);
    else if (making->old)
        note_link(making, &found);
    return result;
}

static void begin(struct fuse_req *req, const struct df_place *place, struct df_node_found *found)
{
    df_request_begin(req, place->lane, place->call, DF_TAKES_ENTRY);
    req->found = found;
}

static int send_mknod(const struct df_place *place, const struct making *making,
                      struct df_node_found *found)
{
    struct fuse_req req;

    if (!place->lane->ops.mknod)
        return -ENOSYS;
    begin(&req, place, found);
    return (int)DF_REQUEST(&req, mknod, place->dir->id, place->name.text, making->mode,
                           making->rdev);
}

int df_lowlevel_mknod(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      mode_t mode, dev_t rdev)
{
    struct making making = {
        .type = mode & S_IFMT,
        .mode = df_lowlevel_mode(df_lowlevel_of(fs), call, mode),
        .rdev = rdev,
        .send = send_mknod,
    };

    return df_lowlevel_on_entry(fs, call, where, DF_LOOKUP_MAKE, make, &making);
}

static int send_mkdir(const struct df_place *place, const struct making *making,
                      struct df_node_found *found)
{
    struct fuse_req req;

    if (!place->lane->ops.mkdir)
        return -ENOSYS;
    begin(&req, place, found);
    return (int)DF_REQUEST(&req, mkdir, place->dir->id, place->name.text, making->mode);
}

int df_lowlevel_mkdir(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      mode_t mode)
{
    struct making making = {
        .type = S_IFDIR,
        .mode = df_lowlevel_mode(df_lowlevel_of(fs), call, mode),
        .send = send_mkdir,
    };

    return df_lowlevel_on_entry(fs, call, where, DF_LOOKUP_MAKE, make, &making);
}

static int send_symlink(const struct df_place *place, const struct making *making,
                        struct df_node_found *found)
{
    struct fuse_req req;

    if (!place->lane->ops.symlink)
        return -ENOSYS;
    begin(&req, place, found);
    return (int)DF_REQUEST(&req, symlink, making->target, place->dir->id, place->name.text);
}

int df_lowlevel_symlink(struct df_fs *fs, struct df_call *call, const char *target,
                        const struct df_where *where)
{
    struct making making = {.type = S_IFLNK, .target = target, .send = send_symlink};

    return df_lowlevel_on_entry(fs, call, where, DF_LOOKUP_MAKE, make, &making);
}

/* ---- link ---------------------------------------------------------------------------------- */

/* vfs_link() of the kernel: an open file whose last name is gone gets no new one, unless it is one
 * that O_TMPFILE has made, without O_EXCL. */
static int check_nameless(const struct df_place *place, const struct making *making)
{
    struct stat st;
    int result;

    if (!making->file || df_node_has(making->old, DF_NODE_LINKABLE))
        return 0;
    result =
        df_lowlevel_attr(place->lane, place->call, making->old, making->file, DF_ATTR_COUNT, &st);
    return result < 0 ? result : st.st_nlink == 0 ? -ENOENT : 0;
}

static int send_link(const struct df_place *place, const struct making *making,
                     struct df_node_found *found)
{
    struct fuse_req req;
    int result;

    if (df_node_is_dir(making->old))
        return -EPERM;
    if ((result = check_nameless(place, making)) < 0)
        return result;
    if (!place->lane->ops.link)
        return -ENOSYS;
    begin(&req, place, found);
    return (int)DF_REQUEST(&req, link, making->old->id, place->dir->id, place->name.text);
}

struct linking {
    struct df_fs *fs;
    const struct df_where *to;
};

static ssize_t link_target(const struct df_target *target, void *arg)
{
    const struct linking *linking = arg;
    struct making making = {
        .type = target->node->type, .old = target->node, .file = target->file, .send = send_link};
    int result;

    df_call_begin_second(target->call);
    result =
        df_lowlevel_on_entry(linking->fs, target->call, linking->to, DF_LOOKUP_MAKE, make, &making);
    return df_call_end_second(target->call, result);
}

int df_lowlevel_link(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                     const struct df_where *to)
{
    struct linking linking = {fs, to};

    df_lowlevel_tells(call);
    return (int)df_lowlevel_on_object(fs, call, from, link_target, &linking);
}

/* ---- removing ------------------------------------------------------------------------------ */

/* may_delete() of the kernel. */
static int check_removal(struct df_place *place, bool dir)
{
    int result;

    if (!place->node)
        return -ENOENT;
    result = df_lowlevel_permit_remove(place->lane, place->call, place->dir, place->node);
    if (result < 0)
        return result;
    if (df_node_is_dir(place->node) != dir)
        return dir ? -ENOTDIR : -EISDIR;
    return 0;
}

/* After a removal that was interrupted nobody knows whether the entry is there. */
static bool is_removed(struct df_place *place, int result)
{
    if (result == -EINTR)
        df_node_cache_expire(place->entry);
    if (result < 0)
        return false;
    df_node_attr_forget(place->dir, DF_ATTR_ENTRIES);
    df_node_cache_remove(&place->lane->nodes, place->dir, place->entry);
    return true;
}

static int unlink_here(struct df_place *place, void *arg)
{
    struct fuse_req req;
    int result = check_removal(place, false);

    (void)arg;
    if (result < 0)
        return result;
    if (!place->lane->ops.unlink)
        return -ENOSYS;
    DF_TELL_NAMES(place->call, place->dir);
    DF_TELL_LOST(place->call, place->node);
    df_request_begin(&req, place->lane, place->call, DF_TAKES_OK);
    result = (int)DF_REQUEST(&req, unlink, place->dir->id, place->name.text);
    if (is_removed(place, result) && df_node_cache_drop_now(&place->drops, place->entry))
        df_node_attr_forget(place->node, DF_ATTR_ALL);
    return result;
}

int df_lowlevel_unlink(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    return df_lowlevel_on_entry(fs, call, where, 0, unlink_here, NULL);
}

/* The victim is locked, so that nothing is made in it meanwhile, or later. */
static int rmdir_here(struct df_place *place, void *arg)
{
    struct df_node_held held;
    struct fuse_req req;
    int result = check_removal(place, true);

    (void)arg;
    if (result < 0)
        return result;
    if (!place->lane->ops.rmdir)
        return -ENOSYS;
    DF_TELL_NAMES(place->call, place->dir);
    DF_TELL_LOST(place->call, place->node);
    result = df_node_held_take(&held, &place->lane->nodes, &place->node->lock, false);
    if (result < 0)
        return result;
    df_request_begin(&req, place->lane, place->call, DF_TAKES_OK);
    result = (int)DF_REQUEST(&req, rmdir, place->dir->id, place->name.text);
    if (result == 0)
        df_node_set(place->node, DF_NODE_REMOVED);
    df_node_held_give(&held);
    if (is_removed(place, result)) {
        df_node_attr_forget(place->node, DF_ATTR_ALL);
        df_node_cache_drop_later(&place->drops, place->entry);
    }
    return result;
}

int df_lowlevel_rmdir(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    return df_lowlevel_on_entry(fs, call, where, 0, rmdir_here, NULL);
}
