/*
 * calls_xattr.c - extended attributes: by path, by path without following a link, by descriptor.
 */
#include <errno.h>
#include <fcntl.h>
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
    if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
        return -EINVAL;
    return size > VALUE_SIZE_MAX ? -E2BIG : check_name(name);
}

/* What is not there comes before EROFS; which object may have which name is the host's to know. */
static ssize_t check_writable(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    struct stat st;
    ssize_t ret;

    if (DF_LIKELY(!df_check_read_only(call->mount)))
        return 0;
    ret = df_call_result(call, fs->ops->getattr(fs, call, where, &st));
    return ret < 0 ? ret : -EROFS;
}

static size_t at_most(size_t size)
{
    return size < VALUE_SIZE_MAX ? size : VALUE_SIZE_MAX;
}

/* ---- the four operations ------------------------------------------------------------------- */

static ssize_t get(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   const char *name, void *value, size_t size)
{
    int ret = check_name(name);

    return ret < 0 ? ret : fs->ops->getxattr(fs, call, where, name, value, at_most(size));
}

static ssize_t list(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    char *names, size_t size)
{
    return fs->ops->listxattr(fs, call, where, names, at_most(size));
}

static ssize_t set(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   const char *name, const void *value, size_t size, int flags)
{
    ssize_t ret = check_set(name, size, flags);

    if (ret < 0 || (ret = check_writable(fs, call, where)) < 0)
        return ret;
    return fs->ops->setxattr(fs, call, where, name, value, size, flags);
}

static ssize_t drop(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    const char *name)
{
    ssize_t ret = check_name(name);

    if (ret < 0 || (ret = check_writable(fs, call, where)) < 0)
        return ret;
    return fs->ops->removexattr(fs, call, where, name);
}

/* ---- by path ------------------------------------------------------------------------------- */

static ssize_t get_by_path(const char *path, const char *name, void *value, size_t size,
                           unsigned flags)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, flags);

    while (df_way_next(&way, &ret))
        ret = get(way.fs, &way.call, &way.leg.where, name, value, size);
    return df_way_end(&way, ret);
}

static ssize_t list_by_path(const char *path, char *names, size_t size, unsigned flags)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, flags);

    while (df_way_next(&way, &ret))
        ret = list(way.fs, &way.call, &way.leg.where, names, size);
    return df_way_end(&way, ret);
}

static int set_by_path(const char *path, const char *name, const void *value, size_t size,
                       int xattr_flags, unsigned flags)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, flags);

    while (df_way_next(&way, &ret))
        ret = set(way.fs, &way.call, &way.leg.where, name, value, size, xattr_flags);
    return (int)df_way_end(&way, ret);
}

static int remove_by_path(const char *path, const char *name, unsigned flags)
{
    struct df_way way;
    ssize_t ret = df_way_begin(&way, AT_FDCWD, path, flags);

    while (df_way_next(&way, &ret))
        ret = drop(way.fs, &way.call, &way.leg.where, name);
    return (int)df_way_end(&way, ret);
}

ssize_t df_call_getxattr(const char *path, const char *name, void *value, size_t size)
{
    return get_by_path(path, name, value, size, 0);
}

ssize_t df_call_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    return get_by_path(path, name, value, size, DF_ROUTE_NOFOLLOW);
}

ssize_t df_call_listxattr(const char *path, char *names, size_t size)
{
    return list_by_path(path, names, size, 0);
}

ssize_t df_call_llistxattr(const char *path, char *names, size_t size)
{
    return list_by_path(path, names, size, DF_ROUTE_NOFOLLOW);
}

int df_call_setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return set_by_path(path, name, value, size, flags, 0);
}

int df_call_lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return set_by_path(path, name, value, size, flags, DF_ROUTE_NOFOLLOW);
}

int df_call_removexattr(const char *path, const char *name)
{
    return remove_by_path(path, name, 0);
}

int df_call_lremovexattr(const char *path, const char *name)
{
    return remove_by_path(path, name, DF_ROUTE_NOFOLLOW);
}

/* ---- by descriptor ------------------------------------------------------------------------- */

ssize_t df_call_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    struct df_use use;
    struct df_where where;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, get(use.fs, &use.call, &where, name, value, size));
    return df_use_end(&use, ret);
}

ssize_t df_call_flistxattr(int fd, char *names, size_t size)
{
    struct df_use use;
    struct df_where where;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, list(use.fs, &use.call, &where, names, size));
    return df_use_end(&use, ret);
}

int df_call_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    struct df_use use;
    struct df_where where;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, set(use.fs, &use.call, &where, name, value, size, flags));
    return (int)df_use_end(&use, ret);
}

int df_call_fremovexattr(int fd, const char *name)
{
    struct df_use use;
    struct df_where where;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    where = df_use_itself(&use);
    ret = df_call_result(&use.call, drop(use.fs, &use.call, &where, name));
    return (int)df_use_end(&use, ret);
}
