/*
 * trip_process.c - what a process tells the server of itself: which files it has, its forks, what
 * it unmounts. Freestanding.
 */
#include <errno.h>
#include <sys/stat.h>

#include "channel/sys.h"
#include "channel/trip_send.h"

static int64_t tell(struct df_trip *trip, enum df_message_op op, uint64_t file)
{
    struct df_letter l;
    int error = df_letter_begin_plain(&l, trip, op);

    if (error == -ETIMEDOUT && op == DF_MESSAGE_DROP)
        df_letter_owe(trip->link, file, false);
    if (error < 0)
        return error;
    l.message->files[0] = file;
    return df_letter_send_and_finish(&l);
}

int df_trip_adopt(struct df_trip *trip, uint64_t file)
{
    return (int)tell(trip, DF_MESSAGE_ADOPT, file);
}

int df_trip_drop(struct df_trip *trip, uint64_t file)
{
    return (int)tell(trip, DF_MESSAGE_DROP, file);
}

void df_trip_drop_soon(struct df_trip *trip, uint64_t file)
{
    struct df_letter l;
    int error = df_letter_begin_plain(&l, trip, DF_MESSAGE_DROP);

    if (error == -ETIMEDOUT)
        df_letter_owe(trip->link, file, false);
    if (error < 0)
        return;
    l.message->files[0] = file;
    df_link_settle(trip->link); /* or nothing more can be posted */
    if (!df_link_post(trip->link, l.slot))
        df_letter_send_and_finish(&l);
}

int df_trip_keep(struct df_trip *trip, const uint64_t files[], size_t count, bool executed)
{
    struct df_letter l;
    int error;

    if (count > DF_PAYLOAD_SIZE / sizeof(files[0]))
        return -E2BIG;
    error = df_letter_begin(&l, trip, DF_MESSAGE_KEEP);
    if (error < 0)
        return error;
    if (df_letter_room(&l, count * sizeof(files[0])) < count * sizeof(files[0]))
        return (int)df_letter_finish(&l, -ENOMEM);
    if (count > 0)
        df_sys_copy(l.area->payload, files, count * sizeof(files[0]));
    l.message->args.keep.size = count * sizeof(files[0]);
    l.message->args.keep.executed = executed;
    return (int)df_letter_send_and_finish(&l);
}

/* What asks nothing of a file system. The server may be stopped, or have all its slots taken by
 * calls that hang. */
static int64_t patience_with_server(const struct df_trip *trip)
{
    return df_link_briefly(df_letter_patience(trip));
}

int df_trip_nothing(struct df_trip *trip)
{
    struct df_letter l;
    int error = df_letter_begin_within(&l, trip, DF_MESSAGE_NOTHING, patience_with_server(trip));

    return error < 0 ? error : (int)df_letter_send_and_finish(&l);
}

static int64_t send_fork(struct df_trip *trip, bool keeps, uint64_t socket)
{
    int64_t patience = patience_with_server(trip);

    return DF_TRIP_SEND(df_letter_begin_within(&l, trip, DF_MESSAGE_FORK, patience), fork,
                        .keeps = keeps, .socket = socket);
}

/* By its number the server finds out whether a child that is late may still come. Its descriptor
 * would not do: it may move before the server looks. */
int64_t df_trip_fork(struct df_trip *trip)
{
    struct stat own;
    bool known = df_sys3(SYS_fstat, trip->link->control, (long)&own, 0) == 0;

    return send_fork(trip, false, known ? own.st_ino : 0);
}

int64_t df_trip_leave(struct df_trip *trip)
{
    return send_fork(trip, true, 0);
}

int df_trip_unfork(struct df_trip *trip, uint32_t client)
{
    return (int)DF_TRIP_SEND(df_letter_begin_plain(&l, trip, DF_MESSAGE_UNFORK), unfork,
                             .client = client);
}

int df_trip_bury(struct df_trip *trip)
{
    return (int)tell(trip, DF_MESSAGE_BURY, 0);
}

int df_trip_write_back(struct df_trip *trip, uint64_t file)
{
    return (int)tell(trip, DF_MESSAGE_WRITE_BACK, file);
}

int df_trip_unmount(struct df_trip *trip, bool lazy, bool alone, int64_t patience)
{
    struct df_letter l;
    int error = df_letter_begin_plain(&l, trip, DF_MESSAGE_UNMOUNT);

    if (error < 0)
        return error;
    l.message->args.unmount.lazy = lazy;
    l.patience = patience;
    l.message->args.unmount.alone = alone;
    return (int)df_letter_send_and_finish(&l);
}

int df_trip_sync(struct df_trip *trip)
{
    return (int)tell(trip, DF_MESSAGE_SYNC, 0);
}
