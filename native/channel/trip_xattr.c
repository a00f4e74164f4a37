/*
 * trip_xattr.c - extended attributes: their names and values travel in the message's area.
 * Freestanding.
 */
#include <errno.h>

#include "channel/letter.h"
#include "channel/sys.h"

/* False: longer than any name of an attribute. */
static bool put_key(struct df_letter *l, const char *name)
{
    size_t len = 0;

    while (len < DF_KEY_SIZE && name[len])
        len++;
    if (len == DF_KEY_SIZE)
        return false;
    df_sys_copy(l->area->key, name, len + 1);
    return true;
}

static int begin_key(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                     const struct df_trip_where *where, const char *name)
{
    int error = df_letter_begin_where(l, trip, op, where);

    if (error == 0 && !put_key(l, name))
        return (int)df_letter_finish(l, -ERANGE);
    return error;
}

ssize_t df_trip_getxattr(struct df_trip *trip, const struct df_trip_where *where, const char *name,
                         void *value, size_t size)
{
    struct df_letter l;
    int error = begin_key(&l, trip, DF_MESSAGE_getxattr, where, name);

    if (error < 0)
        return error;
    l.message->args.getxattr.size = df_letter_room(&l, size);
    return df_letter_send_for_bytes(&l, value, size);
}

ssize_t df_trip_listxattr(struct df_trip *trip, const struct df_trip_where *where, char *list,
                          size_t size)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_listxattr, where);

    if (error < 0)
        return error;
    l.message->args.listxattr.size = df_letter_room(&l, size);
    return df_letter_send_for_bytes(&l, list, size);
}

int df_trip_setxattr(struct df_trip *trip, const struct df_trip_where *where, const char *name,
                     const void *value, size_t size, int flags)
{
    struct df_letter l;
    long copied;
    int error;

    if (size > DF_PAYLOAD_SIZE)
        return -E2BIG;
    error = begin_key(&l, trip, DF_MESSAGE_setxattr, where, name);
    if (error < 0)
        return error;
    copied = df_letter_room(&l, size) < size ? -ENOMEM
                                             : df_channel_user_copy(l.area->payload, value, size);
    if (copied < 0)
        return (int)df_letter_finish(&l, copied);
    l.message->args.setxattr.size = size;
    l.message->args.setxattr.flags = flags;
    return (int)df_letter_send_and_finish(&l);
}

int df_trip_removexattr(struct df_trip *trip, const struct df_trip_where *where, const char *name)
{
    struct df_letter l;
    int error = begin_key(&l, trip, DF_MESSAGE_removexattr, where, name);

    return error < 0 ? error : (int)df_letter_send_and_finish(&l);
}
