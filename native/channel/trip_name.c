/*
 * trip_name.c - makes, removes, moves and links entries of directories. Freestanding.
 */
#include <errno.h>

#include "channel/sys.h"
#include "channel/trip_send.h"

int df_trip_mknod(struct df_trip *trip, const struct df_trip_where *where, mode_t mode, dev_t rdev)
{
    return (int)DF_TRIP_BY_NAME(mknod, where, .mode = mode, .rdev = rdev);
}

int df_trip_mkdir(struct df_trip *trip, const struct df_trip_where *where, mode_t mode)
{
    return (int)DF_TRIP_BY_NAME(mkdir, where, .mode = mode);
}

int df_trip_symlink(struct df_trip *trip, const char *target, const struct df_trip_where *where)
{
    struct df_letter l;
    size_t len = 0;
    int error;

    while (len < PATH_MAX && target[len])
        len++;
    if (len == PATH_MAX)
        return -ENAMETOOLONG;
    error = df_letter_begin_where(&l, trip, DF_MESSAGE_symlink, where);
    if (error < 0)
        return error;
    df_sys_copy(l.area->payload, target, len);
    l.message->args.symlink.size = len;
    return (int)df_letter_send_and_finish(&l);
}

static int send_name(struct df_trip *trip, enum df_message_op op, const struct df_trip_where *where)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, op, where);

    return error < 0 ? error : (int)df_letter_send_and_finish(&l);
}

int df_trip_unlink(struct df_trip *trip, const struct df_trip_where *where)
{
    return send_name(trip, DF_MESSAGE_unlink, where);
}

int df_trip_rmdir(struct df_trip *trip, const struct df_trip_where *where)
{
    return send_name(trip, DF_MESSAGE_rmdir, where);
}

int df_trip_rename(struct df_trip *trip, const struct df_trip_where *from,
                   const struct df_trip_where *to, unsigned flags)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_rename, from);

    if (error < 0)
        return error;
    df_letter_put_where(&l, 1, to);
    l.message->args.rename.flags = flags;
    return (int)df_letter_send_and_finish(&l);
}

int df_trip_link(struct df_trip *trip, const struct df_trip_where *from,
                 const struct df_trip_where *to)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_link, from);

    if (error < 0)
        return error;
    df_letter_put_where(&l, 1, to);
    return (int)df_letter_send_and_finish(&l);
}
