/*
 * permission.h - what the kernel checks for a file system mounted with default_permissions: mode
 * bits against the caller, as in fs/namei.c and fs/attr.c of Linux. For both lanes. Access control
 * lists are acl.h's.
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

/* May the caller, who may write to `dir`, remove or replace `victim`, an entry of it? 0, or -EPERM:
 * it is sticky. */
int df_permission_sticky(const struct df_caller *caller, const struct stat *dir,
                         const struct stat *victim);

/* Does it take the right to write to the file to set these attributes? truncate(2), that is when
 * `by_name` (ftruncate asked at open); "now" for both times, as of touch(1), by others than the
 * owner. */
bool df_permission_setattr_writes(const struct df_caller *caller, const struct stat *st,
                                  bool by_name, const struct df_setattr *set);

/* May the caller set these attributes otherwise: chown(2), chmod(2), utimensat(2)? Takes S_ISGID
 * out of set->mode where chmod would. 0 or -EPERM. */
int df_permission_setattr(const struct df_caller *caller, const struct stat *st,
                          struct df_setattr *set);

/* May the caller give a file that has these attributes another name, where the machine protects
 * files of others from that: fs.protected_hardlinks in proc_sys_fs(5)? It does so on every file
 * system. `rights`: the caller may read and write it, or nobody checks that; they matter where
 * df_permission_link_asks() says so. 0 or -EPERM. */
int df_permission_link(const struct df_caller *caller, const struct stat *st, bool rights);
bool df_permission_link_asks(const struct df_caller *caller, const struct stat *st);

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
