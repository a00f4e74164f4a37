/*
 * mountpoint.h - from what a user calls a mountpoint to the names it is kept by. It need not exist.
 */
#ifndef DF_CORE_MOUNTPOINT_H
#define DF_CORE_MOUNTPOINT_H

#include <limits.h>
#include <sys/types.h>

/* Absolute, without "//", "." and trailing '/', by text alone; ".." takes back a component; "" for
 * the root. 0 or -errno: ENAMETOOLONG, those of getcwd(2). */
int df_mountpoint_canonical(const char *point, char out[PATH_MAX]);

/* The canonical name with the symlinks of the part that exists on disk resolved. 0, -ELOOP or
 * -ENAMETOOLONG. */
int df_mountpoint_physical(const char *canonical, char out[PATH_MAX]);

/* The type (S_IFDIR, S_IFREG ...) of what is there on disk; 0: nothing. */
mode_t df_mountpoint_type(const char *point);

#endif
