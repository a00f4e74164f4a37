/*
 * acl.h - POSIX access control lists (acl(5)) of a file system that asks for them by
 * FUSE_CAP_POSIX_ACL, as the kernel consults them: fuse_get_acl(), check_acl() and
 * posix_acl_permission() of Linux. For both lanes. What list a new file gets, and what a change of
 * its mode makes of it, is the file system's own matter, as behind the kernel.
 */
#ifndef DF_HOST_ACL_H
#define DF_HOST_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct df_caller;

#define DF_ACL_ACCESS "system.posix_acl_access" /* the extended attribute that is the list */

enum {
    DF_ACL_SIZE = 4096, /* the kernel's room for a list, bytes */
};

enum {
    DF_ACL_ABSENT = 1, /* the file has no list, its mode bits decide; or it is to have none */
    DF_ACL_NEVER,      /* it can have none, so there is none to be taken away */
};

/*
 * May the caller, for whom a list decides (df_caller_is_for_acl()), read, write, execute or search
 * (R_OK, W_OK, X_OK, or'ed) the file of these attributes? `answer`: what getxattr said of
 * DF_ACL_ACCESS with room for DF_ACL_SIZE bytes: how many there are in `list`, or -errno. 0,
 * -EACCES or DF_ACL_ABSENT; -E2BIG, or what else the question failed with; for what is no list
 * -EINVAL, -EOPNOTSUPP (of another version) or -EIO (of other entries than a list has).
 */
int df_acl_check(const struct df_caller *caller, const struct stat *st, const void *list,
                 ssize_t answer, int mask);

/* Is this attribute a list: DF_ACL_ACCESS, or the default one of a directory? */
bool df_acl_is_name(const char *name);

/* What getxattr(2) says of it, for every file system. `answer`: bytes that the file system has put
 * into `list`, or -errno, which is handed on. Of entries that name nobody the id is undefined.
 * -ENODATA: an empty one; -EINVAL, -EOPNOTSUPP: no list. */
ssize_t df_acl_get(void *list, ssize_t answer);

/*
 * What it means to set that attribute of a file of this type (S_IFMT bits): do_set_acl(),
 * set_posix_acl() and posix_acl_valid() of the kernel, for every file system. 0: it is set,
 * whatever XATTR_CREATE or XATTR_REPLACE say. DF_ACL_ABSENT: it is removed, and need not be there,
 * as if by removexattr(2), which is this without bytes. DF_ACL_NEVER. -EINVAL and -EOPNOTSUPP: no
 * list, or symlinks have none; -EACCES: only directories have that one; -E2BIG. `refused`: the
 * error for a caller who may not, or 0; it comes behind what is no list of such a file at all, and
 * ahead of what its entries say.
 */
int df_acl_set(const char *name, mode_t type, int refused, const void *list, size_t size);

#endif
