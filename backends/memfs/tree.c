/*
 * tree.c - names: find, create, link and remove them.
 *
 * Every change holds the parent's lock for writing from the look at the name to the last update, so
 * that it is seen whole or not at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum {
    ENTRY_SIZE = 20,    /* what an entry adds to a directory's st_size; as tmpfs */
    SHORT_TARGET = 128, /* symlinks from this length on are charged a page; as tmpfs */
};

static inline bool is_removed(const struct inode *dir)
{
    return dir->attr.nlink == 0;
}

/* ---- lookup ----------------------------------------------------------------------------- */

int tree_lookup(struct store *store, struct inode *parent, const char *name, struct inode **out)
{
    struct name key;

    if (parent->type != DT_DIR)
        return -ENOTDIR;
    int error = dir_name(store, name, &key);
    if (error)
        return error;

    lock_read(&parent->lock);
    const struct dentry *dentry = dir_find(parent->dir, &key);
    if (dentry) {
        *out = dentry->inode;
        inode_get(*out);
    }
    lock_read_done(&parent->lock);
    return dentry ? 0 : -ENOENT;
}

/* ---- create ----------------------------------------------------------------------------- */

void tree_parent_changed(struct inode *parent, int entries, int subdirs, const struct timespec *now)
{
    struct attr attr = parent->attr;
    attr.size += entries * ENTRY_SIZE;
    attr.nlink += (uint32_t)subdirs;
    attr.mtime = attr.ctime = *now;
    inode_set_attr(parent, &attr);
}

static int give_target(struct store *store, struct inode *inode, const char *target)
{
    size_t len = strlen(target);
    int64_t used = len < SHORT_TARGET ? 0 : PAGE;

    if (used && !quota_take(&store->bytes, used))
        return -ENOSPC;
    inode->attr.size = (int64_t)len;
    inode->attr.used = used;
    inode->target = strdup(target);
    return inode->target ? 0 : -ENOMEM;
}

/* What a type needs beyond the inode. Nobody else can see the inode yet. */
static int give_contents(struct store *store, struct inode *inode, struct inode *parent,
                         const struct tree_new *what)
{
    switch (inode->type) {
    case DT_DIR:
        inode->dir = dir_new(parent);
        if (!inode->dir)
            return -ENOMEM;
        inode_get(parent);
        inode->attr.nlink = 2;
        inode->attr.size = 2 * ENTRY_SIZE;
        return 0;
    case DT_LNK:
        return give_target(store, inode, what->target);
    case DT_CHR:
    case DT_BLK:
        inode->rdev = what->rdev;
        return 0;
    default:
        return 0;
    }
}

/* A new inode below `parent`, whose lock is held: it hands down its group, see chmod(1), and the
 * list for that. */
static struct inode *make_inode(struct store *store, struct inode *parent,
                                const struct tree_new *what, const struct timespec *now, int *error)
{
    mode_t mode = what->mode;
    gid_t gid = what->gid;

    if (parent->attr.mode & S_ISGID) {
        gid = parent->attr.gid;
        if (S_ISDIR(mode))
            mode |= S_ISGID;
    }
    struct inode *inode = inode_new(store, mode, what->uid, gid, now, error);
    if (!inode)
        return NULL;
    *error = give_contents(store, inode, parent, what);
    if (*error == 0)
        *error = acl_inherit(store, inode, parent, what->umask);
    if (*error) {
        inode_put(store, inode, 1);
        return NULL;
    }
    return inode;
}

static int create_locked(struct store *store, struct inode *parent, const struct name *name,
                         const struct tree_new *what, struct inode **out)
{
    bool is_dir = S_ISDIR(what->mode);
    int error;

    if (is_removed(parent))
        return -ENOENT;
    if (dir_find(parent->dir, name))
        return -EEXIST;
    if (is_dir && parent->attr.nlink == UINT32_MAX)
        return -EMLINK;
    struct timespec now = stamp_for(store, parent);
    struct inode *inode = make_inode(store, parent, what, &now, &error);
    if (!inode)
        return error;
    atomic_store_explicit(&inode->refs, 2, memory_order_relaxed); /* its name and the caller */
    error = dir_insert(parent->dir, name, inode);
    if (error) {
        inode_put(store, inode, 2);
        return error;
    }
    tree_parent_changed(parent, 1, is_dir, &now);
    *out = inode;
    return 0;
}

int tree_create(struct store *store, struct inode *parent, const char *name,
                const struct tree_new *what, struct inode **out)
{
    struct name key;

    if (parent->type != DT_DIR)
        return -ENOTDIR;
    int error = dir_name(store, name, &key);
    if (error)
        return error;
    lock_write(&parent->lock);
    error = create_locked(store, parent, &key, what, out);
    lock_write_done(&parent->lock);
    return error;
}

int tree_nameless(struct store *store, struct inode *parent, const struct tree_new *what,
                  struct inode **out)
{
    int error = 0;

    if (parent->type != DT_DIR)
        return -ENOTDIR;
    lock_read(&parent->lock);
    struct timespec now = stamp_now(store, false);
    struct inode *inode = make_inode(store, parent, what, &now, &error);
    lock_read_done(&parent->lock);
    if (!inode)
        return error;
    inode->attr.nlink = 0; /* its one reference is the caller's */
    *out = inode;
    return 0;
}

/* ---- link ------------------------------------------------------------------------------- */

/* Both locks are held. Further names count as inodes, as in tmpfs: they need memory as well. A file
 * without a name gets one: whether it may is known to the kernel (O_TMPFILE), see tree_link(). */
static int link_locked(struct store *store, struct inode *inode, struct inode *parent,
                       const struct name *name)
{
    if (is_removed(parent))
        return -ENOENT;
    if (dir_find(parent->dir, name))
        return -EEXIST;
    if (inode->attr.nlink == UINT32_MAX)
        return -EMLINK;
    bool further = inode->attr.nlink > 0;
    if (further && !quota_take(&store->inodes, 1))
        return -ENOSPC;
    int error = dir_insert(parent->dir, name, inode);
    if (error) {
        if (further)
            quota_give(&store->inodes, 1);
        return error;
    }
    if (!further)
        inode_get(inode); /* for its name */

    struct attr attr = inode->attr;
    attr.nlink++;
    attr.ctime = stamp_for(store, inode);
    inode_set_attr(inode, &attr);
    struct timespec now = stamp_for(store, parent);
    tree_parent_changed(parent, 1, 0, &now);
    return 0;
}

int tree_link(struct store *store, struct inode *inode, struct inode *parent, const char *name)
{
    struct name key;

    if (parent->type != DT_DIR)
        return -ENOTDIR;
    if (inode->type == DT_DIR)
        return -EPERM;
    int error = dir_name(store, name, &key);
    if (error)
        return error;
    lock_write(&parent->lock);
    lock_write(&inode->lock);
    error = link_locked(store, inode, parent, &key);
    lock_write_done(&inode->lock);
    lock_write_done(&parent->lock);
    return error;
}

/* ---- remove ----------------------------------------------------------------------------- */

bool tree_drop_link(struct store *store, struct inode *inode, const struct timespec *now)
{
    struct attr attr = inode->attr;
    attr.nlink = inode->type == DT_DIR ? 0 : attr.nlink - 1;
    /* Who still has a file without names open need not tell this ctime from the last. */
    attr.ctime = attr.nlink ? stamp_for(store, inode) : *now;
    inode_set_attr(inode, &attr);
    return attr.nlink == 0;
}

void tree_put_link(struct store *store, struct inode *inode, bool last)
{
    if (last)
        inode_put(store, inode, 1);
    else
        quota_give(&store->inodes, 1);
}

/* Removes an entry that is (not) a directory; the parent's lock is held. */
static int remove_locked(struct store *store, struct inode *parent, const struct name *name,
                         bool dir, struct inode **out, bool *last)
{
    const struct dentry *dentry = dir_find(parent->dir, name);
    if (!dentry)
        return -ENOENT;
    struct inode *inode = *out = dentry->inode;
    if ((inode->type == DT_DIR) != dir)
        return dir ? -ENOTDIR : -EISDIR;

    struct timespec now = stamp_for(store, parent);
    lock_write(&inode->lock);
    bool empty = !dir || !inode->dir->live;
    if (empty)
        *last = tree_drop_link(store, inode, &now);
    lock_write_done(&inode->lock);
    if (!empty)
        return -ENOTEMPTY;

    dir_remove(parent->dir, name);
    tree_parent_changed(parent, -1, dir ? -1 : 0, &now);
    return 0;
}

static int remove_entry(struct store *store, struct inode *parent, const char *name, bool dir)
{
    struct inode *inode;
    struct name key;
    bool last;

    if (parent->type != DT_DIR)
        return -ENOTDIR;
    int error = dir_name(store, name, &key);
    if (error)
        return error;
    lock_write(&parent->lock);
    error = remove_locked(store, parent, &key, dir, &inode, &last);
    lock_write_done(&parent->lock);
    if (!error)
        tree_put_link(store, inode, last);
    return error;
}

int tree_unlink(struct store *store, struct inode *parent, const char *name)
{
    return remove_entry(store, parent, name, false);
}

int tree_rmdir(struct store *store, struct inode *parent, const char *name)
{
    return remove_entry(store, parent, name, true);
}
