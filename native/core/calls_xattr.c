/*
 * calls_xattr.c - extended attributes: by path, by path without following a link, by descriptor.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/xattr.h>

#include "core/calls.h"
#include "core/check.h"
#include "core/route.h"
#include "core/use.h"

#define NAME_SIZE_MAX  255   /* XATTR_NAME_MAX of linux/limits.h */
#define VALUE_SIZE_MAX 65536 /* XATTR_SIZE_MAX, XATTR_LIST_MAX */

/* ---- checks: xattr.c of the kernel ----------------------------------------------------------- */

static int check_name(const char *name)
{
    size_t len;

    if (!name)
        return -EFAULT;
    len = strnlen(name, NAME_SIZE_MAX + 1);
    return len == 0 || len > NAME_SIZE_MAX ? -ERANGE : 0;
}

static int check_set(const char *name, size_t size, int flags)
{
    int ret = df_check_flags(flags, XATTR_CREATE | XATTR_REPLACE);

    if (ret < 0 || (ret = check_name(name)) < 0)
        return ret;
    return size > VALUE_SIZE_MAX ? -E2BIG : 0;
}

/* `error`, but what is not there comes first. */
static ssize_t refuse(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      int error)
{
    struct stat st;
    ssize_t ret = df_call_result(call, fs->ops->getattr(fs, call, where, &st));

    return ret < 0 ? ret : error;
}

/* Which object may have which name is the host's to know. */
static ssize_t check_writable(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    return DF_LIKELY(!df_check_read_only(call->mount)) ? 0 : refuse(fs, call, where, -EROFS);
}

static size_t at_most(size_t size)
{
    return size < VALUE_SIZE_MAX ? size : VALUE_SIZE_MAX;
}

/* Who has room for the largest there may be is not told to come back with more. */
static ssize_t larger_than(size_t size, ssize_t result)
{
    return result == -ERANGE && size >= VALUE_SIZE_MAX ? -E2BIG : result;
}

/* ---- the four operations ------------------------------------------------------------------- */

struct request;
typedef ssize_t operation(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          const struct request *r);

/* One call, whatever its form. */
struct request {
    operation *make;
    const char *name;
    const void *value; /* to be set */
    void *out;         /* for a value, or for names */
    size_t size;       /* of either, bytes */
    int flags;         /* XATTR_* */
    int error;         /* what is wrong with these */
};

static ssize_t get(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   const struct request *r)
{
    return larger_than(r->size,
                       fs->ops->getxattr(fs, call, where, r->name, r->out, at_most(r->size)));
}

static ssize_t list(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    const struct request *r)
{
    return larger_than(r->size, fs->ops->listxattr(fs, call, where, r->out, at_most(r->size)));
}

/* cap_convert_nscap() of the kernel, which lets no file system have other capabilities. */
static bool is_malformed(const struct request *r)
{
    struct vfs_ns_cap_data data = {0};
    uint32_t revision;

    if (r->size == 0 || strcmp(r->name, "security.capability") != 0)
        return false;
    if (r->size != XATTR_CAPS_SZ_2 && r->size != XATTR_CAPS_SZ_3)
        return true;
    memcpy(&data, r->value, r->size);
    revision = le32toh(data.magic_etc) & VFS_CAP_REVISION_MASK;
    return revision != (r->size == XATTR_CAPS_SZ_2 ? VFS_CAP_REVISION_2 : VFS_CAP_REVISION_3);
}

/* To the kernel's __vfs_setxattr_noperm() EAGAIN means that nobody has taken it. */
static ssize_t set(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   const struct request *r)
{
    ssize_t ret = check_writable(fs, call, where);

    if (ret < 0)
        return ret;
    if (DF_UNLIKELY(is_malformed(r)))
        return refuse(fs, call, where, -EINVAL);
    ret = fs->ops->setxattr(fs, call, where, r->name, r->value, r->size, r->flags);
    ret = df_call_result(call, ret);
    return ret == -EAGAIN ? -EOPNOTSUPP : ret;
}

static ssize_t drop(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    const struct request *r)
{
    ssize_t ret = check_writable(fs, call, where);

    if (ret < 0)
        return ret;
    return fs->ops->removexattr(fs, call, where, r->name);
}

/* ---- the three ways to a file ---------------------------------------------------------------- */

static ssize_t by_path(const char *path, unsigned flags, const struct request *r)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, flags);

    while (df_way_next(&way, &ret))
        ret = r->error ? r->error : r->make(way.fs, &way.call, &way.leg.where, r);
    return df_check_words(r->error, df_way_end(&way, ret));
}

static ssize_t by_fd(int fd, const struct request *r)
{
    struct df_use use;
    struct df_where where;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    if (r->error)
        return df_use_end(&use, r->error);
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, r->make(use.fs, &use.call, &where, r));
    return df_use_end(&use, ret);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static struct request to_get(const char *name, void *value, size_t size)
{
    return (struct request){
        .make = get, .name = name, .out = value, .size = size, .error = check_name(name)};
}

static struct request to_list(char *names, size_t size)
{
    return (struct request){.make = list, .out = names, .size = size};
}

static struct request to_set(const char *name, const void *value, size_t size, int flags)
{
    return (struct request){.make = set,
                            .name = name,
                            .value = value,
                            .size = size,
                            .flags = flags,
                            .error = check_set(name, size, flags)};
}

static struct request to_drop(const char *name)
{
    return (struct request){.make = drop, .name = name, .error = check_name(name)};
}

ssize_t df_call_getxattr(const char *path, const char *name, void *value, size_t size)
{
    const struct request r = to_get(name, value, size);

    return by_path(path, 0, &r);
}

ssize_t df_call_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    const struct request r = to_get(name, value, size);

    return by_path(path, DF_ROUTE_NOFOLLOW, &r);
}

ssize_t df_call_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    const struct request r = to_get(name, value, size);

    return by_fd(fd, &r);
}

ssize_t df_call_listxattr(const char *path, char *names, size_t size)
{
    const struct request r = to_list(names, size);

    return by_path(path, 0, &r);
}

ssize_t df_call_llistxattr(const char *path, char *names, size_t size)
{
    const struct request r = to_list(names, size);

    return by_path(path, DF_ROUTE_NOFOLLOW, &r);
}

ssize_t df_call_flistxattr(int fd, char *names, size_t size)
{
    const struct request r = to_list(names, size);

    return by_fd(fd, &r);
}

int df_call_setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    const struct request r = to_set(name, value, size, flags);

    return (int)by_path(path, 0, &r);
}

int df_call_lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    const struct request r = to_set(name, value, size, flags);

    return (int)by_path(path, DF_ROUTE_NOFOLLOW, &r);
}

int df_call_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    const struct request r = to_set(name, value, size, flags);

    return (int)by_fd(fd, &r);
}

int df_call_removexattr(const char *path, const char *name)
{
    const struct request r = to_drop(name);

    return (int)by_path(path, 0, &r);
}

int df_call_lremovexattr(const char *path, const char *name)
{
    const struct request r = to_drop(name);

    return (int)by_path(path, DF_ROUTE_NOFOLLOW, &r);
}

int df_call_fremovexattr(int fd, const char *name)
{
    const struct request r = to_drop(name);

    return (int)by_fd(fd, &r);
}
