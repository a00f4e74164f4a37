/*
 * permission.c - mode bits against the caller. See permission.h.
 */
#include "host/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/call.h"
#include "core/caller.h"
#include "core/ops.h"
#include "host/acl.h"

static bool is_owner(const struct df_caller *caller, const struct stat *st)
{
    return caller->uid == st->st_uid || caller->capable;
}

int df_permission_check(const struct df_caller *caller, const struct stat *st, int mask)
{
    return df_caller_may(caller, st, mask) ? 0 : -EACCES;
}

int df_permission_of_open(int flags)
{
    static const int masks[] = {R_OK, W_OK, R_OK | W_OK, R_OK | W_OK};
    return masks[flags & O_ACCMODE] | (flags & O_TRUNC ? W_OK : 0);
}

int df_permission_sticky(const struct df_caller *caller, const struct stat *dir,
                         const struct stat *victim)
{
    bool refuses = dir->st_mode & S_ISVTX && !is_owner(caller, victim) && !is_owner(caller, dir);

    return refuses ? -EPERM : 0;
}

static int check_owners(const struct df_caller *caller, const struct stat *st,
                        const struct df_setattr *set)
{
    bool mine = caller->uid == st->st_uid;

    if (set->valid & DF_SET_UID && !caller->capable && !(mine && set->uid == st->st_uid))
        return -EPERM;
    if (set->valid & DF_SET_GID && !caller->capable &&
        !(mine && (set->gid == st->st_gid || df_caller_in_group(caller, set->gid))))
        return -EPERM;
    return 0;
}

static int check_mode(const struct df_caller *caller, const struct stat *st, struct df_setattr *set)
{
    gid_t gid = set->valid & DF_SET_GID ? set->gid : st->st_gid;

    if (!(set->valid & DF_SET_MODE))
        return 0;
    if (!is_owner(caller, st))
        return -EPERM;
    if (!caller->capable && !df_caller_in_group(caller, gid))
        set->mode &= ~(mode_t)S_ISGID;
    return 0;
}

static bool is_touch(const struct df_setattr *set)
{
    const uint32_t touch = DF_SET_ATIME | DF_SET_MTIME | DF_SET_ATIME_NOW | DF_SET_MTIME_NOW;

    return (set->valid & touch) == touch;
}

static int check_times(const struct df_caller *caller, const struct stat *st,
                       const struct df_setattr *set)
{
    bool sets = set->valid & (DF_SET_ATIME | DF_SET_MTIME);

    return sets && !is_touch(set) && !is_owner(caller, st) ? -EPERM : 0;
}

bool df_permission_setattr_writes(const struct df_caller *caller, const struct stat *st,
                                  bool by_name, const struct df_setattr *set)
{
    return (set->valid & DF_SET_SIZE && by_name) || (is_touch(set) && !is_owner(caller, st));
}

int df_permission_setattr(const struct df_caller *caller, const struct stat *st,
                          struct df_setattr *set)
{
    int result = check_owners(caller, st, set);

    if (result == 0)
        result = check_mode(caller, st, set);
    if (result == 0)
        result = check_times(caller, st, set);
    return result;
}

/* Asked when a link would be refused: few are, and it may change. What cannot be read is off, as
 * in a kernel to which nobody has said anything. */
static bool links_are_protected(void)
{
    char on = '0';
    int saved = errno, fd = open("/proc/sys/fs/protected_hardlinks", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, &on, 1) != 1)
        on = '0';
    if (fd >= 0)
        close(fd);
    errno = saved;
    return on != '0';
}

/* safe_hardlink_source() of the kernel, without the rights. */
static bool may_be_linked(const struct stat *st)
{
    const mode_t sgid = S_ISGID | S_IXGRP;

    return S_ISREG(st->st_mode) && !(st->st_mode & S_ISUID) && (st->st_mode & sgid) != sgid;
}

bool df_permission_link_asks(const struct df_caller *caller, const struct stat *st)
{
    return !is_owner(caller, st) && may_be_linked(st);
}

int df_permission_link(const struct df_caller *caller, const struct stat *st, bool rights)
{
    if (is_owner(caller, st) || (may_be_linked(st) && rights))
        return 0;
    return links_are_protected() ? -EPERM : 0;
}

static bool is_in(const char *name, const char *space)
{
    return strncmp(name, space, strlen(space)) == 0;
}

bool df_permission_xattr_by_mode(const char *name)
{
    return !is_in(name, "security.") && !is_in(name, "system.") && !is_in(name, "trusted.");
}

bool df_permission_xattr_asks(const struct df_caller *caller, const char *name, bool write)
{
    return is_in(name, "user.") || (write && !caller->capable && df_acl_is_name(name));
}

/* Who writes: xattr_permission(), cap_inode_setxattr() and set_posix_acl() of the kernel. */
int df_permission_xattr(const struct df_caller *caller, const struct stat *st, const char *name,
                        bool write)
{
    if (is_in(name, "trusted."))
        return caller->capable ? 0 : write ? -EPERM : -ENODATA;
    if (write && is_in(name, "security."))
        return caller->capable ? 0 : -EPERM;
    if (write && df_acl_is_name(name))
        return is_owner(caller, st) ? 0 : -EPERM;
    if (!is_in(name, "user."))
        return 0;
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return write ? -EPERM : -ENODATA;
    if (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX && write && !is_owner(caller, st))
        return -EPERM;
    return 0;
}

int df_permission_stripped(const struct df_call *call, int result)
{
    return result == -EPERM && df_caller_is_process(call) ? 0 : result;
}
