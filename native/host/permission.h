/*
 * permission.h - what the kernel checks for a file system mounted with default_permissions: mode
 * bits against the caller, as in fs/namei.c and fs/attr.c of Linux. For both lanes.
 *
 * POSIX ACLs are not consulted: neither lane offers FUSE_CAP_POSIX_ACL, so a plugin that wants
 * them enforced checks them itself. The group class of a file with an ACL shows the ACL's mask in
 * its mode, so the answer here can be more generous than the ACL, as it is on a kernel mount
 * without that capability.
 */
#ifndef DF_HOST_PERMISSION_H
#define DF_HOST_PERMISSION_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct df_call;
struct df_caller;
struct df_setattr;

/* May the caller read, write, execute or search (R_OK, W_OK, X_OK, or'ed)? 0 or -EACCES. */
int df_permission_check(const struct df_caller *caller, const struct stat *st, int mask);

/* What open(2) with these flags asks of a file, as a mask for df_permission_check(). */
int df_permission_of_open(int flags);

/* May the caller remove or replace `victim`, an entry of `dir`? -EACCES; -EPERM: sticky. */
int df_permission_remove(const struct df_caller *caller, const struct stat *dir,
                         const struct stat *victim);

/*
 * May the caller set these attributes? chown(2), chmod(2), utimensat(2), and truncate(2) when
 * `by_name` (ftruncate asked at open). Takes S_ISGID out of set->mode where chmod would.
 * -EPERM or -EACCES.
 */
int df_permission_setattr(const struct df_caller *caller, const struct stat *st, bool by_name,
                          struct df_setattr *set);

/* May the caller give a file that has these attributes another name, where the machine protects
 * files of others from that: fs.protected_hardlinks in proc_sys_fs(5)? It does so on every file
 * system; `by_mode`: with default_permissions the mode bits count. 0 or -EPERM. */
int df_permission_link(const struct df_caller *caller, const struct stat *st, bool by_mode);

/* The rules of the name spaces in xattr(7), for reading or writing `name`: they hold for every
 * file system. `st`: type, sticky bit and owner, where df_permission_xattr_asks() says that they
 * matter. -EPERM; -ENODATA when reading. */
int df_permission_xattr(const struct df_caller *caller, const struct stat *st, const char *name,
                        bool write);
bool df_permission_xattr_asks(const struct df_caller *caller, const char *name, bool write);

/* With default_permissions, the mode bits decide as well: xattr_permission() of the kernel. */
bool df_permission_xattr_by_mode(const char *name);

/* What it has come to when the plugin was asked to change the mode so, ahead of a write or a
 * truncation. A plugin that acts with its caller's own rights may not change the mode of another
 * owner's file; what follows is done with the same rights, and takes the bits in the system below.
 * Behind the kernel the daemon's rights decide. */
int df_permission_stripped(const struct df_call *call, int result);

#endif
