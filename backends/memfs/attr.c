/*
 * attr.c - changes of attributes that a caller asks for: chmod, chown, truncate, utimensat.
 */
#include <errno.h>

#include "store.h"

void attr_drop_suid(struct attr *attr)
{
    if (S_ISDIR(attr->mode))
        return;
    attr->mode &= ~(uint32_t)S_ISUID;
    if (attr->mode & S_IXGRP)
        attr->mode &= ~(uint32_t)S_ISGID; /* without it, sgid means mandatory locking */
}

static int resize(struct store *store, struct inode *inode, const struct attr_change *change,
                  struct attr *attr, const struct timespec *now)
{
    if (inode->type == DT_DIR)
        return -EISDIR;
    if (inode->type != DT_REG || change->to.size < 0)
        return -EINVAL;
    data_resize(store, inode, change->to.size, attr);
    if (change->caller != 0)
        attr_drop_suid(attr);
    attr->mtime = *now; /* also when the size stays, as on Linux's own file systems */
    return 0;
}

static void change_owner(struct attr *attr, const struct attr_change *change)
{
    if (change->valid & ATTR_UID)
        attr->uid = change->to.uid;
    if (change->valid & ATTR_GID)
        attr->gid = change->to.gid;
    attr_drop_suid(attr); /* whoever asks, see chown(2); a mode given along wins */
}

static void change_times(struct attr *attr, const struct attr_change *change,
                         const struct timespec *now)
{
    if (change->valid & ATTR_ATIME_NOW)
        attr->atime = *now;
    else if (change->valid & ATTR_ATIME)
        attr->atime = change->to.atime;
    if (change->valid & ATTR_MTIME_NOW)
        attr->mtime = *now;
    else if (change->valid & ATTR_MTIME)
        attr->mtime = change->to.mtime;
    attr->ctime = change->valid & ATTR_CTIME ? change->to.ctime : *now;
}

int attr_set(struct store *store, struct inode *inode, const struct attr_change *change)
{
    int error = 0;

    lock_write(&inode->lock);
    struct attr attr = inode->attr;
    struct timespec now = stamp_for(store, inode);
    if (change->valid & ATTR_SIZE)
        error = resize(store, inode, change, &attr, &now);
    if (!error) {
        if (change->valid & (ATTR_UID | ATTR_GID))
            change_owner(&attr, change);
        if (change->valid & ATTR_MODE) {
            attr.mode = (attr.mode & S_IFMT) | (change->to.mode & ~(uint32_t)S_IFMT);
            acl_chmod(inode, attr.mode);
        }
        change_times(&attr, change, &now);
        inode_set_attr(inode, &attr);
    }
    lock_write_done(&inode->lock);
    return error;
}
