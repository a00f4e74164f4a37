/*
 * acl.c - POSIX access control lists, see acl(5): what they do to mode bits and to new files.
 *
 * A list is kept as the extended attribute that it is set by. Who consults it is the kernel, or
 * whoever plays its part (FUSE_CAP_POSIX_ACL); what is set has passed it, so it is a valid list.
 * Three of its entries stand for the classes of mode bits, and are always the same as these.
 */
#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define ACCESS   "system.posix_acl_access"
#define INHERITS "system.posix_acl_default"

typedef struct posix_acl_xattr_entry entry_t;

/* The bytes of a list, which are aligned to nothing. */
struct acl {
    char *entries;
    size_t count;
    bool masked; /* one of them is the mask */
};

static entry_t entry_at(const struct acl *acl, size_t index)
{
    entry_t entry;
    memcpy(&entry, acl->entries + index * sizeof(entry), sizeof(entry));
    return entry;
}

static void put_entry(const struct acl *acl, size_t index, const entry_t *entry)
{
    memcpy(acl->entries + index * sizeof(*entry), entry, sizeof(*entry));
}

/* -EINVAL: so many bytes are no list. */
static int parse(const void *list, size_t size, struct acl *acl)
{
    const size_t header = sizeof(struct posix_acl_xattr_header);

    if (size <= header || (size - header) % sizeof(entry_t) != 0)
        return -EINVAL;
    *acl = (struct acl){(char *)(uintptr_t)list + header, (size - header) / sizeof(entry_t), false};
    for (size_t i = 0; i < acl->count; i++)
        acl->masked |= le16toh(entry_at(acl, i).e_tag) == ACL_MASK;
    return 0;
}

/* Whose class of mode bits the entry stands for: how far these lie to the left. -1: no class. */
static int shift_of(const struct acl *acl, const entry_t *entry)
{
    switch (le16toh(entry->e_tag)) {
    case ACL_USER_OBJ:
        return 6;
    case ACL_GROUP_OBJ:
        return acl->masked ? -1 : 3;
    case ACL_MASK:
        return 3;
    case ACL_OTHER:
        return 0;
    default:
        return -1;
    }
}

/* The mode with the rights of the list in place of its own. */
static uint32_t mode_of(const struct acl *acl, uint32_t mode)
{
    for (size_t i = 0; i < acl->count; i++) {
        entry_t entry = entry_at(acl, i);
        int shift = shift_of(acl, &entry);
        if (shift >= 0)
            mode = (mode & ~(7u << shift)) | (le16toh(entry.e_perm) & 7u) << shift;
    }
    return mode;
}

/* The list with the rights of the mode: of `kept`, those that it had as well. */
static void follow_mode(const struct acl *acl, uint32_t mode, bool kept)
{
    for (size_t i = 0; i < acl->count; i++) {
        entry_t entry = entry_at(acl, i);
        int shift = shift_of(acl, &entry);
        if (shift < 0)
            continue;
        unsigned rights = mode >> shift & 7 & (kept ? le16toh(entry.e_perm) : 7);
        entry.e_perm = htole16((uint16_t)rights);
        put_entry(acl, i, &entry);
    }
}

/* Mode bits say all of it. */
static bool is_minimal(const struct acl *acl)
{
    return acl->count == 3 && !acl->masked;
}

bool acl_is_name(const char *name)
{
    return strcmp(name, ACCESS) == 0 || strcmp(name, INHERITS) == 0;
}

static int set_access(struct store *store, struct inode *inode, const void *list, size_t size,
                      struct attr *attr)
{
    struct acl acl;
    int error = parse(list, size, &acl);

    if (!error && is_minimal(&acl))
        xattr_drop(store, inode, ACCESS);
    else if (!error)
        error = xattr_put(store, inode, ACCESS, list, size, 0);
    if (!error)
        attr->mode = mode_of(&acl, attr->mode);
    return error;
}

int acl_set(struct store *store, struct inode *inode, const char *name, const void *list,
            size_t size, bool keeps_sgid)
{
    bool access = strcmp(name, ACCESS) == 0;
    int error;

    if (inode->type == DT_LNK)
        return -EOPNOTSUPP;
    lock_write(&inode->lock);
    struct attr attr = inode->attr;
    if (access)
        error = set_access(store, inode, list, size, &attr);
    else
        error = inode->type == DT_DIR ? xattr_put(store, inode, INHERITS, list, size, 0) : -EACCES;
    if (!error) {
        if (access && !keeps_sgid)
            attr.mode &= ~(uint32_t)S_ISGID;
        attr.ctime = stamp_for(store, inode);
        inode_set_attr(inode, &attr);
    }
    lock_write_done(&inode->lock);
    return error;
}

void acl_chmod(const struct inode *inode, uint32_t mode)
{
    const void *list;
    struct acl acl;
    size_t size;

    if (inode->xattrs && xattr_get(inode, ACCESS, &list, &size) == 0 &&
        parse(list, size, &acl) == 0)
        follow_mode(&acl, mode, false);
}

/* A list for a new file from its directory's: no right that was not asked for. `copy` is changed.
 */
static int inherit(struct store *store, struct inode *inode, void *copy, size_t size)
{
    struct acl acl;
    int error = parse(copy, size, &acl);

    if (error)
        return error;
    if (inode->type == DT_DIR)
        error = xattr_put(store, inode, INHERITS, copy, size, 0);
    follow_mode(&acl, inode->attr.mode, true);
    inode->attr.mode = mode_of(&acl, inode->attr.mode);
    if (!error && !is_minimal(&acl))
        error = xattr_put(store, inode, ACCESS, copy, size, 0);
    return error;
}

int acl_inherit(struct store *store, struct inode *inode, const struct inode *parent, mode_t umask)
{
    const void *list;
    size_t size;

    if (inode->type == DT_LNK)
        return 0;
    if (!parent->xattrs || xattr_get(parent, INHERITS, &list, &size) != 0) {
        inode->attr.mode &= ~umask;
        return 0;
    }
    void *copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, list, size);
    int error = inherit(store, inode, copy, size);
    free(copy);
    return error;
}
