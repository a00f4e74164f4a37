/*
 * door_list.c - FUSE low-level requests that list directories.
 *
 * There are no handles: an offset is the cookie of the last entry told (dir.c), good for ever.
 */
#include "door.h"

#include <errno.h>

enum { LISTING = 32768 }; /* bytes of one reply at most; asking again is cheap */

struct listing {
    fuse_req_t req;
    const struct door *door;
    bool plus; /* with attributes, and a reference for each entry */
    size_t size, used, entries;
    _Alignas(8) char buf[LISTING]; /* libfuse writes records of that alignment */
};

/* False when it does not fit. */
static bool add_plain(struct listing *list, const char *name, const struct inode *inode, off_t off)
{
    struct stat st;
    st.st_ino = inode->ino; /* all that is looked at */
    st.st_mode = DTTOIF(inode->type);
    size_t room = list->size - list->used;
    size_t len = fuse_add_direntry(list->req, list->buf + list->used, room, name, &st, off);
    if (len > room)
        return false;
    list->used += len;
    return true;
}

static bool add_full(struct listing *list, const char *name, const struct fuse_entry_param *entry,
                     off_t off)
{
    size_t room = list->size - list->used;
    size_t len = fuse_add_direntry_plus(list->req, list->buf + list->used, room, name, entry, off);
    if (len > room)
        return false;
    list->used += len;
    return true;
}

/* "." and "..", which carry no node. */
static bool add_dots(struct listing *list, const struct inode *dir, off_t *off)
{
    for (; *off < DIR_DOTDOT; ++*off) {
        const struct inode *inode = *off < DIR_DOT ? dir : dir->dir->parent;
        const char *name = *off < DIR_DOT ? "." : "..";
        struct fuse_entry_param bare = {
            .attr = {.st_ino = inode->ino, .st_mode = S_IFDIR},
        };
        if (!(list->plus ? add_full(list, name, &bare, *off + 1)
                         : add_plain(list, name, inode, *off + 1)))
            return false;
    }
    return true;
}

static bool add_entry(struct listing *list, const struct dentry *dentry, uint64_t cookie)
{
    if (!list->plus)
        return add_plain(list, dentry->name, dentry->inode, (off_t)cookie);

    struct fuse_entry_param entry;
    door_entry(list->door, dentry->inode, &entry);
    if (!add_full(list, dentry->name, &entry, (off_t)cookie))
        return false;
    inode_get(dentry->inode);
    list->entries++;
    return true;
}

/* The kernel did not take the reply: the references it would have had are given back. */
static void undo(const struct listing *list, const struct dir *dir, uint32_t pos)
{
    uint64_t cookie;
    for (size_t i = 0; i < list->entries; i++)
        inode_put(list->door->store, dir_step(dir, &pos, &cookie)->inode, 1);
}

/* The directory is locked for reading until the reply is sent, so that undo() finds the same. */
static void list_locked(struct listing *list, const struct inode *dir, off_t off)
{
    if (dir->attr.nlink == 0) {
        fuse_reply_err(list->req, ENOENT);
        return;
    }
    if (add_dots(list, dir, &off)) {
        uint32_t start = dir_seek(dir->dir, (uint64_t)off), pos = start;
        uint64_t cookie;
        const struct dentry *dentry;
        while ((dentry = dir_step(dir->dir, &pos, &cookie)) && add_entry(list, dentry, cookie))
            ;
        if (fuse_reply_buf(list->req, list->buf, list->used) != 0)
            undo(list, dir->dir, start);
        return;
    }
    fuse_reply_buf(list->req, list->buf, list->used);
}

static void list_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
    struct listing list; /* too large to clear */
    list.req = req;
    list.door = door_of(req);
    list.plus = plus;
    list.size = size < LISTING ? size : LISTING;
    list.used = list.entries = 0;

    struct inode *dir = door_inode(list.door, ino);
    if (dir->type != DT_DIR || off < 0) {
        fuse_reply_err(req, dir->type != DT_DIR ? ENOTDIR : EINVAL);
        return;
    }
    inode_lock_accessed(list.door->store, dir, 0);
    list_locked(&list, dir, off);
    lock_read_done(&dir->lock);
}

void door_list_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    bool cached = door_of(req)->timeout > 0;
    (void)ino;
    fi->cache_readdir = cached; /* only the kernel changes directories, and it knows when */
    fi->keep_cache = cached;
    fuse_reply_open(req, fi);
}

void door_list_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)fi;
    list_dir(req, ino, size, off, false);
}

void door_list_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    (void)fi;
    list_dir(req, ino, size, off, true);
}
