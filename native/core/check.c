/*
 * check.c - looks at an entry before a call is refused.
 */
#include "core/check.h"

#include <errno.h>
#include <string.h>

#include "core/caller.h"

static ssize_t look(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    struct stat *st)
{
    return df_call_result(call, fs->ops->getattr(fs, call, where, st));
}

/* The directory of `where` as a where of its own; `name` holds the copy. */
static struct df_where parent_of(const struct df_where *where, char name[PATH_MAX])
{
    struct df_where parent = *where;
    const char *slash = strrchr(where->name, '/');

    parent.len = slash ? (uint32_t)(slash - where->name) : 0;
    if (slash == where->name)
        parent.len = 1; /* the root */
    memcpy(name, where->name, parent.len);
    name[parent.len] = '\0';
    parent.name = name;
    parent.flags &= DF_WHERE_DOTDOT;
    return parent;
}

static ssize_t look_at_parent(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              struct stat *st)
{
    char name[PATH_MAX];
    struct df_where parent = parent_of(where, name);
    ssize_t ret = look(fs, call, &parent, st);

    if (ret < 0)
        return ret;
    return S_ISDIR(st->st_mode) ? 0 : -ENOTDIR;
}

/* The way to the directory has left the mount, and with it the way to the entry. */
static ssize_t leave_with_entry(struct df_call *call, const struct df_where *where)
{
    const char *slash = strrchr(where->name, '/'), *last = slash ? slash + 1 : where->name;
    size_t len = strlen(call->leave);

    if (len + 1 + strlen(last) >= sizeof(call->leave))
        return -ENAMETOOLONG;
    call->leave[len] = '/';
    strcpy(call->leave + len + 1, last);
    return DF_LEAVE;
}

ssize_t df_check_parent(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    struct stat st;
    ssize_t ret = look_at_parent(fs, call, where, &st);

    return ret == DF_LEAVE ? leave_with_entry(call, where) : ret;
}

static bool may_lend_group(const struct df_call *call, mode_t mode)
{
    const mode_t sgid = S_ISGID | S_IXGRP;

    return (mode & sgid) == sgid && !call->caller->capable;
}

/* `found`: what came of the question for the directory. What goes wrong with it goes wrong in the
 * op as well, which says so. */
static mode_t mode_in(const struct df_call *call, ssize_t found, const struct stat *dir,
                      mode_t mode)
{
    if (found < 0 || !(dir->st_mode & S_ISGID) || df_caller_in_group(call->caller, dir->st_gid))
        return mode;
    return mode & ~(mode_t)S_ISGID;
}

mode_t df_check_new_mode(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         mode_t mode)
{
    struct stat st;

    if (DF_LIKELY(!may_lend_group(call, mode)))
        return mode;
    return mode_in(call, look_at_parent(fs, call, where, &st), &st, mode);
}

mode_t df_check_nameless_mode(struct df_fs *fs, struct df_call *call,
                              const struct df_where *directory, mode_t mode)
{
    struct stat st;

    if (DF_LIKELY(!may_lend_group(call, mode)))
        return mode;
    return mode_in(call, look(fs, call, directory, &st), &st, mode);
}

mode_t df_check_strip(mode_t mode)
{
    mode &= ~(mode_t)S_ISUID;
    if (mode & S_IXGRP)
        mode &= ~(mode_t)S_ISGID;
    return mode;
}

ssize_t df_check_walked(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    struct df_where itself = *where;
    struct stat st;
    ssize_t ret;

    itself.flags &= DF_WHERE_DOTDOT | DF_WHERE_DOT;
    itself.flags |= DF_WHERE_DIRECTORY; /* before the question whether it may be searched */
    ret = look(fs, call, &itself, &st);
    if (ret < 0)
        return ret;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

ssize_t df_check_entry(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       bool follow, struct stat *st)
{
    struct df_where entry = *where;
    ssize_t ret;

    entry.flags = (where->flags & DF_WHERE_DOTDOT) | (follow ? 0 : DF_WHERE_NOFOLLOW);
    ret = look(fs, call, &entry, st);
    if (ret != -ENOENT)
        return ret;
    ret = df_check_parent(fs, call, where);
    return ret < 0 ? ret : 1;
}
