/*
 * xattr.c - extended attributes: a short list for each inode.
 *
 * Namespaces: user, trusted and security, whose rules the kernel enforces before it asks us. Of
 * system.* there are access control lists (acl.c), which are set there.
 * Attributes are charged to the quota of bytes. Everything is under the inode's lock.
 */
#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "store.h"

enum { VALUES_LIMIT = 1 << 20 }; /* bytes of all values of an inode */

static int64_t cost(const struct xattr *xattr)
{
    return (int64_t)(sizeof(*xattr) + xattr->len + 1 + xattr->size);
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* As xattr_resolve_name() in the kernel's fs/xattr.c, which leaves FUSE's names alone. */
static int check_name(const char *name)
{
    static const char *const namespaces[] = {"user.", "trusted.", "security."};

    if (strlen(name) > XATTR_NAME_MAX)
        return -ERANGE;
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
        if (has_prefix(name, namespaces[i]))
            return name[strlen(namespaces[i])] ? 0 : -EINVAL;
    return -EOPNOTSUPP;
}

/* As what is not there is answered. */
static int absent(const struct inode *inode, const char *name)
{
    if (acl_is_name(name))
        return inode->type == DT_LNK ? -EOPNOTSUPP : -ENODATA;
    int error = check_name(name);
    return error ? error : -ENODATA;
}

/* Where the attribute hangs, or where a new one would. */
static struct xattr **find(struct inode *inode, const char *name)
{
    struct xattr **at = &inode->xattrs;
    size_t len = strlen(name);

    while (*at && !((*at)->len == len && memcmp((*at)->data, name, len) == 0))
        at = &(*at)->next;
    return at;
}

static struct xattr *new_xattr(const char *name, const void *value, size_t size)
{
    size_t len = strlen(name);
    struct xattr *xattr = malloc(sizeof(*xattr) + len + 1 + size);
    if (!xattr)
        return NULL;
    xattr->size = (uint32_t)size;
    xattr->len = (uint8_t)len;
    memcpy(xattr->data, name, len + 1);
    if (size)
        memcpy(xattr->data + len + 1, value, size);
    return xattr;
}

/* Would the inode have more than listxattr(2) can tell, or more than its share? */
static bool is_too_much(const struct inode *inode, const struct xattr *added,
                        const struct xattr *removed)
{
    size_t names = added->len + 1u, values = added->size;

    for (const struct xattr *x = inode->xattrs; x; x = x->next) {
        if (x == removed)
            continue;
        names += x->len + 1u;
        values += x->size;
    }
    return names > XATTR_LIST_MAX || values > VALUES_LIMIT;
}

static void changed(struct store *store, struct inode *inode)
{
    struct attr attr = inode->attr;
    attr.ctime = stamp_for(store, inode);
    inode_set_attr(inode, &attr);
}

static void release(struct store *store, struct xattr *xattr)
{
    quota_give(&store->bytes, cost(xattr));
    free(xattr);
}

/* Puts `added` in the place `at`. */
static int replace(struct store *store, struct inode *inode, struct xattr **at, struct xattr *added,
                   int flags)
{
    struct xattr *old = *at;

    if (old && (flags & XATTR_CREATE))
        return -EEXIST;
    if (!old && (flags & XATTR_REPLACE))
        return -ENODATA;
    if (is_too_much(inode, added, old) || !quota_take(&store->bytes, cost(added)))
        return -ENOSPC;
    added->next = old ? old->next : NULL;
    *at = added;
    if (old)
        release(store, old);
    return 0;
}

int xattr_put(struct store *store, struct inode *inode, const char *name, const void *value,
              size_t size, int flags)
{
    struct xattr *added = new_xattr(name, value, size);
    int error = added ? replace(store, inode, find(inode, name), added, flags) : -ENOMEM;

    if (error)
        free(added);
    return error;
}

bool xattr_drop(struct store *store, struct inode *inode, const char *name)
{
    struct xattr **at = find(inode, name), *removed = *at;

    if (!removed)
        return false;
    *at = removed->next;
    release(store, removed);
    return true;
}

int xattr_set(struct store *store, struct inode *inode, const char *name, const void *value,
              size_t size, int flags)
{
    int error = check_name(name);

    if (error)
        return error;
    if (size > XATTR_SIZE_MAX)
        return -E2BIG;
    if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
        return -EINVAL;
    lock_write(&inode->lock);
    error = xattr_put(store, inode, name, value, size, flags);
    if (!error)
        changed(store, inode);
    lock_write_done(&inode->lock);
    return error;
}

int xattr_get(const struct inode *inode, const char *name, const void **value, size_t *size)
{
    size_t len = strlen(name);

    for (const struct xattr *x = inode->xattrs; x; x = x->next) {
        if (x->len == len && memcmp(x->data, name, len) == 0) {
            *value = x->data + len + 1;
            *size = x->size;
            return 0;
        }
    }
    return absent(inode, name);
}

size_t xattr_list(const struct inode *inode, char *list, bool privileged)
{
    size_t size = 0;

    for (const struct xattr *x = inode->xattrs; x; x = x->next) {
        if (!privileged && has_prefix(x->data, "trusted."))
            continue;
        if (list)
            memcpy(list + size, x->data, x->len + 1u);
        size += x->len + 1u;
    }
    return size;
}

int xattr_remove(struct store *store, struct inode *inode, const char *name)
{
    lock_write(&inode->lock);
    bool removed = xattr_drop(store, inode, name);
    if (removed)
        changed(store, inode);
    lock_write_done(&inode->lock);
    return removed ? 0 : absent(inode, name);
}

void xattr_free_all(struct store *store, struct inode *inode)
{
    while (inode->xattrs) {
        struct xattr *xattr = inode->xattrs;
        inode->xattrs = xattr->next;
        release(store, xattr);
    }
}
