/*
 * door_xattr.c - FUSE low-level requests about extended attributes, and access control lists among
 * them: these are for a kernel that consults them, and others are told that there are none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "door.h"

enum { GROUPS = 64 };

/* May whoever asks set the sgid bit, as of chmod(2)? */
static bool keeps_sgid(fuse_req_t req, struct inode *inode)
{
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    struct attr attr = inode_attr(inode);
    gid_t groups[GROUPS];

    if (!(attr.mode & S_ISGID) || caller->uid == 0 || caller->gid == attr.gid)
        return true;
    int count = fuse_req_getgroups(req, GROUPS, groups);
    for (int i = 0; i < count && i < GROUPS; i++)
        if (groups[i] == attr.gid)
            return true;
    return false;
}

static bool is_refused(const struct door *door, const char *name)
{
    return !door->acls && acl_is_name(name);
}

static int set_xattr(fuse_req_t req, struct inode *inode, const char *name, const char *value,
                     size_t size, int flags)
{
    const struct door *door = door_of(req);

    if (!acl_is_name(name))
        return xattr_set(door->store, inode, name, value, size, flags);
    if (!door->acls)
        return -EOPNOTSUPP;
    return acl_set(door->store, inode, name, value, size, keeps_sgid(req, inode));
}

void door_xattr_set(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                    size_t size, int flags)
{
    struct inode *inode = door_inode(door_of(req), ino);
    fuse_reply_err(req, -set_xattr(req, inode, name, value, size, flags));
}

void door_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);
    const void *value;
    size_t have;

    lock_read(&inode->lock);
    int error = is_refused(door, name) ? -EOPNOTSUPP : xattr_get(inode, name, &value, &have);
    if (!error && size && size < have)
        error = -ERANGE;
    if (error)
        fuse_reply_err(req, -error);
    else if (size == 0)
        fuse_reply_xattr(req, have);
    else
        fuse_reply_buf(req, value, have);
    lock_read_done(&inode->lock);
}

void door_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct inode *inode = door_inode(door_of(req), ino);
    bool privileged = fuse_req_ctx(req)->uid == 0;
    char *list = NULL;

    lock_read(&inode->lock);
    size_t have = xattr_list(inode, NULL, privileged);
    if (size >= have && have && (list = malloc(have)))
        xattr_list(inode, list, privileged);
    lock_read_done(&inode->lock);

    if (size == 0)
        fuse_reply_xattr(req, have);
    else if (size < have)
        fuse_reply_err(req, ERANGE);
    else if (have && !list)
        fuse_reply_err(req, ENOMEM);
    else
        fuse_reply_buf(req, list, have);
    free(list);
}

void door_xattr_remove(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    const struct door *door = door_of(req);
    int error = is_refused(door, name) ? -EOPNOTSUPP
                                       : xattr_remove(door->store, door_inode(door, ino), name);
    fuse_reply_err(req, -error);
}
