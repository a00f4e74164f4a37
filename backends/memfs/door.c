/*
 * door.c - FUSE low-level requests about names and attributes.
 *
 * Every request is answered before the op returns. What is left to the kernel, or to whoever plays
 * its part:
 *   - permissions: the mount option default_permissions is always set, and access control lists are
 *     consulted there (FUSE_CAP_POSIX_ACL; a kernel that cannot gets none);
 *   - clearing suid and sgid where capabilities decide: FUSE_CAP_HANDLE_KILLPRIV is declined, for
 *     with it the kernel would go on to run a file by its stale mode. What can be told by the
 *     caller's uid is done here all the same;
 *   - POSIX and flock locks: nobody but this one kernel sees the files, so its own locks are right,
 *     and they cost no request;
 *   - flush, release, fsync, access: there is nothing to do, so there is no op.
 */
#include "door.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

/* ---- replies ---------------------------------------------------------------------------- */

/*
 * The fields that matter, in a struct that was cleared by halves: in one piece, GCC would clear it
 * with "rep stos", which takes longer than the rest of the op.
 */
static void fill_stat(struct stat *st, struct inode *inode)
{
    enum { HALF = sizeof(*st) / 2 };
    struct attr attr = inode_attr(inode);

    memset(st, 0, HALF);
    memset((char *)st + HALF, 0, sizeof(*st) - HALF);
    st->st_ino = inode->ino;
    st->st_mode = attr.mode;
    st->st_nlink = attr.nlink;
    st->st_uid = attr.uid;
    st->st_gid = attr.gid;
    if (inode->type == DT_CHR || inode->type == DT_BLK)
        st->st_rdev = inode->rdev;
    st->st_size = attr.size;
    st->st_blksize = PAGE;
    st->st_blocks = attr.used / 512;
    st->st_atim = attr.atime;
    st->st_mtim = attr.mtime;
    st->st_ctim = attr.ctime;
}

void door_entry(const struct door *door, struct inode *inode, struct fuse_entry_param *entry)
{
    entry->ino = (fuse_ino_t)(uintptr_t)inode;
    entry->generation = inode->ino;
    entry->attr_timeout = door->timeout;
    entry->entry_timeout = door->timeout;
    fill_stat(&entry->attr, inode);
}

/* Hands the caller's reference to the kernel, if it still wants it. */
static void reply_entry(fuse_req_t req, const struct door *door, struct inode *inode)
{
    struct fuse_entry_param entry;
    door_entry(door, inode, &entry);
    if (fuse_reply_entry(req, &entry) != 0)
        inode_put(door->store, inode, 1);
}

static void reply_attr(fuse_req_t req, const struct door *door, struct inode *inode)
{
    struct stat st;
    fill_stat(&st, inode);
    fuse_reply_attr(req, &st, door->timeout);
}

/* Entry or error, after `error` and inode of a tree_* call. */
static void reply_new(fuse_req_t req, const struct door *door, int error, struct inode *inode)
{
    if (error)
        fuse_reply_err(req, -error);
    else
        reply_entry(req, door, inode);
}

/* ---- session ---------------------------------------------------------------------------- */

static void want(struct fuse_conn_info *conn, unsigned capability, bool wanted)
{
    conn->want &= ~capability;
    if (wanted)
        conn->want |= conn->capable & capability;
}

static void door_init(void *userdata, struct fuse_conn_info *conn)
{
    const unsigned both = FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;
    struct door *door = userdata;

    door->acls = (conn->capable & both) == both;
    want(conn, both, door->acls);
    want(conn, FUSE_CAP_HANDLE_KILLPRIV, false);
    want(conn, FUSE_CAP_WRITEBACK_CACHE, door->writeback);
    want(conn, FUSE_CAP_CACHE_SYMLINKS, door->timeout > 0); /* a target never changes */
    /* Data changes only through the kernel, so a new mtime is no reason to drop its pages. */
    want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
    want(conn, FUSE_CAP_EXPLICIT_INVAL_DATA, true);
    /* Replies come from memory: a pipe would only add a copy. */
    want(conn, FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, false);
}

/* ---- nodes ------------------------------------------------------------------------------ */

static void door_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct door *door = door_of(req);
    struct inode *inode;
    int error = tree_lookup(door->store, door_inode(door, parent), name, &inode);

    if (error == -ENOENT && door->timeout > 0) {
        fuse_reply_entry(req, &door->absent);
        return;
    }
    reply_new(req, door, error, inode);
}

static void forget(const struct door *door, fuse_ino_t ino, uint64_t count)
{
    if (ino != FUSE_ROOT_ID && count)
        inode_put(door->store, door_inode(door, ino), count);
}

static void door_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    forget(door_of(req), ino, count);
    fuse_reply_none(req);
}

static void door_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    const struct door *door = door_of(req);
    for (size_t i = 0; i < count; i++)
        forget(door, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void door_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    (void)fi;
    reply_attr(req, door, door_inode(door, ino));
}

static struct statx_timestamp statx_time(struct timespec time)
{
    return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec};
}

static void door_statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask,
                       struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);
    struct stat st;
    (void)flags, (void)mask, (void)fi; /* everything is at hand */

    fill_stat(&st, inode);
    struct statx stx = {
        .stx_mask = STATX_BASIC_STATS | STATX_BTIME,
        .stx_blksize = (uint32_t)st.st_blksize,
        .stx_nlink = (uint32_t)st.st_nlink,
        .stx_uid = st.st_uid,
        .stx_gid = st.st_gid,
        .stx_mode = (uint16_t)st.st_mode,
        .stx_ino = st.st_ino,
        .stx_size = (uint64_t)st.st_size,
        .stx_blocks = (uint64_t)st.st_blocks,
        .stx_atime = statx_time(st.st_atim),
        .stx_btime = statx_time(inode_born(door->store, inode)),
        .stx_ctime = statx_time(st.st_ctim),
        .stx_mtime = statx_time(st.st_mtim),
        .stx_rdev_major = major(st.st_rdev),
        .stx_rdev_minor = minor(st.st_rdev),
    };
    fuse_reply_statx(req, 0, &stx, door->timeout);
}

/* FUSE_SET_ATTR_* as ATTR_*. */
static unsigned change_of(int to_set)
{
    static const struct {
        int fuse;
        unsigned ours;
    } pairs[] = {
        {FUSE_SET_ATTR_MODE, ATTR_MODE},   {FUSE_SET_ATTR_UID, ATTR_UID},
        {FUSE_SET_ATTR_GID, ATTR_GID},     {FUSE_SET_ATTR_SIZE, ATTR_SIZE},
        {FUSE_SET_ATTR_ATIME, ATTR_ATIME}, {FUSE_SET_ATTR_ATIME_NOW, ATTR_ATIME_NOW},
        {FUSE_SET_ATTR_MTIME, ATTR_MTIME}, {FUSE_SET_ATTR_MTIME_NOW, ATTR_MTIME_NOW},
        {FUSE_SET_ATTR_CTIME, ATTR_CTIME},
    };
    unsigned valid = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        valid |= to_set & pairs[i].fuse ? pairs[i].ours : 0;
    return valid;
}

static void door_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
                         struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);
    struct attr_change change = {
        .valid = change_of(to_set),
        .to = {.size = st->st_size,
               .mode = st->st_mode,
               .uid = st->st_uid,
               .gid = st->st_gid,
               .atime = st->st_atim,
               .mtime = st->st_mtim,
               .ctime = st->st_ctim},
        .caller = fuse_req_ctx(req)->uid,
    };
    int error = attr_set(door->store, inode, &change);
    (void)fi;

    if (error)
        fuse_reply_err(req, -error);
    else
        reply_attr(req, door, inode);
}

static void door_readlink(fuse_req_t req, fuse_ino_t ino)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);

    if (inode->type != DT_LNK) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    inode_lock_accessed(door->store, inode, 0);
    lock_read_done(&inode->lock); /* the target never changes */
    fuse_reply_readlink(req, inode->target);
}

static void door_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;
    (void)ino;
    store_statfs(door_of(req)->store, &st);
    fuse_reply_statfs(req, &st);
}

/* ---- names ------------------------------------------------------------------------------ */

/* Without lists it was the kernel's to apply. */
static mode_t umask_for(const struct door *door, const struct fuse_ctx *caller)
{
    return door->acls ? caller->umask : 0;
}

static int create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev,
                  const char *target, struct inode **out)
{
    const struct door *door = door_of(req);
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    struct tree_new what = {mode, caller->uid, caller->gid, rdev, target, umask_for(door, caller)};
    return tree_create(door->store, door_inode(door, parent), name, &what, out);
}

static void door_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct inode *inode;
    int error =
        create(req, parent, name, mode & S_IFMT ? mode : S_IFREG | mode, rdev, NULL, &inode);
    reply_new(req, door_of(req), error, inode);
}

static void door_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct inode *inode;
    int error = create(req, parent, name, S_IFDIR | (mode & 07777), 0, NULL, &inode);
    reply_new(req, door_of(req), error, inode);
}

static void door_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct inode *inode;
    int error = create(req, parent, name, S_IFLNK | 0777, 0, target, &inode);
    reply_new(req, door_of(req), error, inode);
}

/* Another thread may have made the file since the kernel found none: then open that one. */
static int open_existing(fuse_req_t req, fuse_ino_t parent, const char *name, int flags,
                         struct inode **out)
{
    const struct door *door = door_of(req);
    int error = tree_lookup(door->store, door_inode(door, parent), name, out);
    if (error)
        return error;
    if ((*out)->type == DT_REG)
        error = door_data_truncate(req, *out, flags);
    else
        error = (*out)->type == DT_DIR ? -EISDIR : -EEXIST;
    if (error)
        inode_put(door->store, *out, 1);
    return error;
}

/* If whoever asked has gone nobody will forget the inode. */
static void reply_opened(fuse_req_t req, struct inode *inode, struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    struct fuse_entry_param entry;

    door_entry(door, inode, &entry);
    door_data_file_info(door, fi);
    if (fuse_reply_create(req, &entry, fi) != 0)
        inode_put(door->store, inode, 1);
}

static void door_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                        struct fuse_file_info *fi)
{
    struct inode *inode;
    int error = create(req, parent, name, S_IFREG | (mode & 07777), 0, NULL, &inode);

    if (error == -EEXIST && !(fi->flags & O_EXCL))
        error = open_existing(req, parent, name, fi->flags, &inode);
    if (error) {
        fuse_reply_err(req, -error);
        return;
    }
    reply_opened(req, inode, fi);
}

/* O_EXCL, no name ever, is the kernel's to keep. */
static void door_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    struct tree_new what = {S_IFREG | (mode & 07777), caller->uid, caller->gid, 0, NULL,
                            umask_for(door, caller)};
    struct inode *inode;
    int error = tree_nameless(door->store, door_inode(door, parent), &what, &inode);

    if (error) {
        fuse_reply_err(req, -error);
        return;
    }
    reply_opened(req, inode, fi);
}

static void door_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);
    int error = tree_link(door->store, inode, door_inode(door, parent), name);

    if (!error)
        inode_get(inode); /* the kernel's, whatever happens to the new name meanwhile */
    reply_new(req, door, error, inode);
}

static void door_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct door *door = door_of(req);
    fuse_reply_err(req, -tree_unlink(door->store, door_inode(door, parent), name));
}

static void door_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct door *door = door_of(req);
    fuse_reply_err(req, -tree_rmdir(door->store, door_inode(door, parent), name));
}

static void door_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                        const char *newname, unsigned flags)
{
    const struct door *door = door_of(req);
    fuse_reply_err(req, -rename_entry(door->store, door_inode(door, parent), name,
                                      door_inode(door, newparent), newname, flags));
}

/* ---- the table -------------------------------------------------------------------------- */

const struct later_ops door_ops = {
    .ops =
        {
            .init = door_init,
            .lookup = door_lookup,
            .forget = door_forget,
            .forget_multi = door_forget_multi,
            .getattr = door_getattr,
            .setattr = door_setattr,
            .readlink = door_readlink,
            .mknod = door_mknod,
            .mkdir = door_mkdir,
            .unlink = door_unlink,
            .rmdir = door_rmdir,
            .symlink = door_symlink,
            .rename = door_rename,
            .link = door_link,
            .create = door_create,
            .open = door_data_open,
            .read = door_data_read,
            .write_buf = door_data_write_buf,
            .fallocate = door_data_fallocate,
            .copy_file_range = door_data_copy,
            .lseek = door_data_lseek,
            .opendir = door_list_opendir,
            .readdir = door_list_readdir,
            .readdirplus = door_list_readdirplus,
            .statfs = door_statfs,
            .setxattr = door_xattr_set,
            .getxattr = door_xattr_get,
            .listxattr = door_xattr_list,
            .removexattr = door_xattr_remove,
        },
    .LATER_TMPFILE = door_tmpfile,
    .LATER_STATX = door_statx,
};
