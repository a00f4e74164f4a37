/*
 * remote_ops.h - the ops that are one trip and nothing else, for both tables of ops over a channel:
 * remote.c's and that of native/shadows/remote.c. Each includes it once, behind its own
 *
 *   trip_of(fs, call)                   the trip of an op as it begins
 *   back(fs, call, &trip, result)       what the call is to know of it; the op's result
 *   handle_of(file)                     the server's handle of an open file
 */
#ifndef DF_CHANNEL_REMOTE_OPS_H
#define DF_CHANNEL_REMOTE_OPS_H

#include "channel/trip.h"
#include "core/ops.h"

#define FS    struct df_fs *fs, struct df_call *call
#define WHERE const struct df_where *where
#define FILE_ struct df_file *file

/* One op: `ask` is the trip's function, called with trip and where. */
#define TRIP(ask)                                                                                  \
    struct df_trip trip = trip_of(fs, call);                                                       \
    int64_t result = (ask);                                                                        \
    return (__typeof__(ask))back(fs, call, &trip, result)

#define TRIP_BY_NAME(ask)                                                                          \
    struct df_trip_where at = where_of(where);                                                     \
    TRIP(ask)

static struct df_trip_where where_of(const struct df_where *where)
{
    return (struct df_trip_where){
        .base = where->base ? handle_of(where->base) : 0,
        .name = where->name,
        .len = where->len,
        .flags = where->flags,
    };
}

/* ---- by name --------------------------------------------------------------------------------- */

static int remote_getattr(FS, WHERE, struct stat *st)
{
    TRIP_BY_NAME(df_trip_getattr(&trip, &at, st));
}

/* What the server keeps for all. */
static int remote_known(FS, WHERE, struct stat *st)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    int result;

    return df_trip_known(&trip, &at, &result, st) ? result : -EAGAIN;
}

static int remote_statx(FS, WHERE, struct df_statx *out)
{
    TRIP_BY_NAME(df_trip_statx(&trip, &at, out));
}

static int remote_access(FS, WHERE, int mask)
{
    TRIP_BY_NAME(df_trip_access(&trip, &at, mask));
}

static ssize_t remote_readlink(FS, WHERE, char *buf, size_t size)
{
    TRIP_BY_NAME(df_trip_readlink(&trip, &at, buf, size));
}

static ssize_t remote_getxattr(FS, WHERE, const char *name, void *value, size_t size)
{
    TRIP_BY_NAME(df_trip_getxattr(&trip, &at, name, value, size));
}

static ssize_t remote_listxattr(FS, WHERE, char *list, size_t size)
{
    TRIP_BY_NAME(df_trip_listxattr(&trip, &at, list, size));
}

static int remote_setxattr(FS, WHERE, const char *name, const void *value, size_t size, int flags)
{
    TRIP_BY_NAME(df_trip_setxattr(&trip, &at, name, value, size, flags));
}

static int remote_removexattr(FS, WHERE, const char *name)
{
    TRIP_BY_NAME(df_trip_removexattr(&trip, &at, name));
}

static int remote_statfs(FS, WHERE, struct statvfs *out)
{
    TRIP_BY_NAME(df_trip_statfs(&trip, &at, out));
}

static int remote_mknod(FS, WHERE, mode_t mode, dev_t rdev)
{
    TRIP_BY_NAME(df_trip_mknod(&trip, &at, mode, rdev));
}

static int remote_mkdir(FS, WHERE, mode_t mode)
{
    TRIP_BY_NAME(df_trip_mkdir(&trip, &at, mode));
}

static int remote_symlink(FS, const char *target, WHERE)
{
    TRIP_BY_NAME(df_trip_symlink(&trip, target, &at));
}

static int remote_unlink(FS, WHERE)
{
    TRIP_BY_NAME(df_trip_unlink(&trip, &at));
}

static int remote_rmdir(FS, WHERE)
{
    TRIP_BY_NAME(df_trip_rmdir(&trip, &at));
}

static int remote_rename(FS, const struct df_where *from, const struct df_where *to, unsigned flags)
{
    struct df_trip_where source = where_of(from), target = where_of(to);

    TRIP(df_trip_rename(&trip, &source, &target, flags));
}

static int remote_link(FS, const struct df_where *from, const struct df_where *to)
{
    struct df_trip_where source = where_of(from), target = where_of(to);

    TRIP(df_trip_link(&trip, &source, &target));
}

/* ---- of open files --------------------------------------------------------------------------- */

static ssize_t remote_path(FS, FILE_, char *buf, size_t size)
{
    TRIP(df_trip_path(&trip, handle_of(file), buf, size));
}

static off_t remote_lseek(FS, FILE_, off_t offset, int whence)
{
    TRIP(df_trip_lseek(&trip, handle_of(file), offset, whence));
}

static int remote_fsync(FS, FILE_, bool datasync)
{
    TRIP(df_trip_fsync(&trip, handle_of(file), datasync));
}

static int remote_ioctl(FS, FILE_, unsigned long request, void *arg)
{
    TRIP(df_trip_ioctl(&trip, handle_of(file), request, arg));
}

static int remote_advise(FS, FILE_, off_t offset, off_t length, int advice)
{
    TRIP(df_trip_advise(&trip, handle_of(file), offset, length, advice));
}

#endif
