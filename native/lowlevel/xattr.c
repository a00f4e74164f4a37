/*
 * xattr.c - extended attributes. A plugin that does not know one of the four requests is
 * asked once; then, as with the kernel, it is EOPNOTSUPP.
 */
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/acl.h"
#include "host/permission.h"
#include "host/xattr.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"

struct attribute {
    const char *name; /* NULL: their list */
    void *value;
    size_t size;
    int flags;
    bool removed; /* else it is set */
};

static ssize_t sticky(struct df_lowlevel *lane, uint32_t what, ssize_t result)
{
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, what);
    return -EOPNOTSUPP;
}

/* The rules of xattr(7), which every file system has, and with default_permissions mode bits. */
static int check(const struct df_target *target, const char *name, bool write)
{
    const struct df_caller *caller = target->call->caller;
    struct stat st = {0};
    int result = 0;

    if (df_permission_xattr_asks(caller, name, write))
        result = df_lowlevel_attr(target->lane, target->call, target->node, target->file,
                                  DF_ATTR_OWNER, &st);
    if (!target->lane->default_permissions)
        st.st_mode &= ~(mode_t)S_ISVTX; /* no more than in the kernel's inode */
    if (result == 0)
        result = df_permission_xattr(caller, &st, name, write);
    if (result == 0 && df_permission_xattr_by_mode(name))
        result = df_lowlevel_permit(target->lane, target->call, target->node, write ? W_OK : R_OK);
    return result;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Data go to `iov` of at most XATTR_SIZE_MAX bytes; without room the request asks for the size. */
static void begin_reading(struct fuse_req *req, struct df_lowlevel *lane,
                          const struct df_call *call, struct iovec *iov)
{
    if (iov->iov_len > XATTR_SIZE_MAX)
        iov->iov_len = XATTR_SIZE_MAX;
    df_request_begin(req, lane, call, iov->iov_len > 0 ? DF_TAKES_DATA : DF_TAKES_XATTR);
    req->iov = iov;
    req->iovcnt = 1;
    req->room = iov->iov_len;
}

ssize_t df_lowlevel_ask_xattr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                              const char *name, void *value, size_t size)
{
    struct iovec iov = {value, size};
    struct fuse_req req;
    ssize_t result;

    if (df_lowlevel_lacks(lane, DF_LACKS_GETXATTR))
        return -EOPNOTSUPP;
    begin_reading(&req, lane, call, &iov);
    result = DF_REQUEST(&req, getxattr, node->id, name, req.room);
    return sticky(lane, DF_LACKS_GETXATTR, df_xattr_answer(result, req.room));
}

static ssize_t get(const struct df_target *target, void *arg)
{
    const struct attribute *attribute = arg;
    ssize_t result = check(target, attribute->name, false);

    if (result < 0)
        return result;
    result = df_lowlevel_ask_xattr(target->lane, target->call, target->node, attribute->name,
                                   attribute->value, attribute->size);
    if (attribute->size > 0 && df_acl_is_name(attribute->name))
        result = df_acl_get(attribute->value, result);
    return result;
}

ssize_t df_lowlevel_getxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                             const char *name, void *value, size_t size)
{
    struct attribute attribute = {.name = name, .value = value, .size = size};

    return df_lowlevel_on_object(fs, call, where, get, &attribute);
}

static ssize_t list(const struct df_target *target, void *arg)
{
    const struct attribute *attribute = arg;
    struct iovec iov = {attribute->value, attribute->size};
    struct fuse_req req;
    ssize_t result;

    if (df_lowlevel_lacks(target->lane, DF_LACKS_LISTXATTR))
        return -EOPNOTSUPP;
    begin_reading(&req, target->lane, target->call, &iov);
    result = DF_REQUEST(&req, listxattr, target->node->id, req.room);
    return sticky(target->lane, DF_LACKS_LISTXATTR,
                  df_xattr_list_answer(result, attribute->value, req.room));
}

ssize_t df_lowlevel_listxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              char *names, size_t size)
{
    struct attribute attribute = {.value = names, .size = size};

    return df_lowlevel_on_object(fs, call, where, list, &attribute);
}

/* ---- writing ------------------------------------------------------------------------------- */

static ssize_t put(const struct df_target *target, const struct attribute *attribute, int flags)
{
    struct fuse_req req;
    ssize_t result;

    if (df_lowlevel_lacks(target->lane, DF_LACKS_SETXATTR))
        return -EOPNOTSUPP;
    df_request_begin(&req, target->lane, target->call, DF_TAKES_OK);
    result = DF_REQUEST(&req, setxattr, target->node->id, attribute->name, attribute->value,
                        attribute->size, flags);
    if (result == 0)
        df_node_attr_forget(target->node, DF_ATTR_TIMES | DF_ATTR_OWNER);
    return sticky(target->lane, DF_LACKS_SETXATTR, result);
}

static ssize_t take_away(const struct df_target *target, const char *name)
{
    struct fuse_req req;
    ssize_t result;

    if (df_lowlevel_lacks(target->lane, DF_LACKS_REMOVEXATTR))
        return -EOPNOTSUPP;
    df_request_begin(&req, target->lane, target->call, DF_TAKES_OK);
    result = DF_REQUEST(&req, removexattr, target->node->id, name);
    if (result == 0)
        df_node_attr_forget(target->node, DF_ATTR_TIMES | DF_ATTR_OWNER);
    return sticky(target->lane, DF_LACKS_REMOVEXATTR, result);
}

/* An access control list; without bytes it is taken away. */
static ssize_t set_acl(const struct df_target *target, const struct attribute *attribute,
                       int refused)
{
    ssize_t result =
        df_acl_set(attribute->name, target->node->type, refused, attribute->value, attribute->size);

    if (result == 0)
        return put(target, attribute, 0);
    if (result == DF_ACL_ABSENT)
        result = take_away(target, attribute->name);
    return result == DF_ACL_NEVER || result == -ENODATA ? 0 : result;
}

static ssize_t change(const struct df_target *target, void *arg)
{
    const struct attribute *attribute = arg;
    int refused = check(target, attribute->name, true);

    if (df_acl_is_name(attribute->name))
        return set_acl(target, attribute, refused);
    if (refused)
        return refused;
    return attribute->removed ? take_away(target, attribute->name)
                              : put(target, attribute, attribute->flags);
}

int df_lowlevel_setxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         const char *name, const void *value, size_t size, int flags)
{
    struct attribute attribute = {
        .name = name, .value = (void *)(uintptr_t)value, .size = size, .flags = flags};

    return (int)df_lowlevel_on_object(fs, call, where, change, &attribute);
}

int df_lowlevel_removexattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                            const char *name)
{
    struct attribute attribute = {.name = name, .removed = true};

    return (int)df_lowlevel_on_object(fs, call, where, change, &attribute);
}
