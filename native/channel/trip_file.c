/*
 * trip_file.c - opens and closes files, and every op of an open file that moves none of its bytes.
 * Freestanding.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>

#include "channel/sys.h"
#include "channel/trip_send.h"
#include "core/ioctl.h"

/* What is known of the new file, which the server has just written, is wanted next; and what its
 * client writes, it had written for the file that had the entry before. */
static void fetch_opened(const struct df_segment *segment, const struct df_message_file *made)
{
    const struct df_ofd *ofd =
        &df_segment_ofds(segment)[df_handle_index(made->handle) % DF_OFD_COUNT];

    __builtin_prefetch(ofd);
    df_sys_fetch_to_write(&ofd->position_lock);
}

/* open and tmpfile have the same arguments. */
static int send_open(struct df_trip *trip, enum df_message_op op, const struct df_trip_where *where,
                     int flags, mode_t mode, struct df_message_file *out)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, op, where);

    if (error < 0)
        return error;
    l.message->args.open.flags = flags;
    l.message->args.open.mode = mode;
    error = df_trip_send_and_take(&l, out, &l.message->out.file, sizeof(*out));
    if (error == 0)
        fetch_opened(trip->link->segment, out);
    return error;
}

/* Opens that found nothing, up to VAIN_MOST, less those that did: a guess of what the next one is.
 * Compilers and interpreters look for a file in one directory after the other; who opens what is
 * there is spared the look. Threads may lose each other's counts. */
enum { VAIN_MOST = 4 };

static void count_vain(struct df_link *link, int error)
{
    uint32_t before = atomic_load_explicit(&link->vain, memory_order_relaxed);
    uint32_t after = error == -ENOENT ? VAIN_MOST : before > 0 ? before - 1 : 0;

    if (after != before)
        atomic_store_explicit(&link->vain, after, memory_order_relaxed);
}

/* What stat(2) was told of the name, or an open before. */
static __attribute__((noinline)) bool is_known_absent(struct df_trip *trip,
                                                      const struct df_trip_where *where)
{
    struct stat st;
    int result;

    return df_trip_known(trip, where, &result, &st) && result == -ENOENT;
}

int df_trip_open(struct df_trip *trip, const struct df_trip_where *where, int flags, mode_t mode,
                 struct df_message_file *out)
{
    bool guess = atomic_load_explicit(&trip->link->vain, memory_order_relaxed) > 0;
    int error;

    if (guess && !(flags & O_CREAT) && is_known_absent(trip, where))
        return -ENOENT;
    error = send_open(trip, DF_MESSAGE_open, where, flags, mode, out);
    if (guess || error == -ENOENT)
        count_vain(trip->link, error);
    return error;
}

int df_trip_tmpfile(struct df_trip *trip, const struct df_trip_where *where, int flags, mode_t mode,
                    struct df_message_file *out)
{
    return send_open(trip, DF_MESSAGE_tmpfile, where, flags, mode, out);
}

int df_trip_flush(struct df_trip *trip, uint64_t file, uint64_t owner, bool drop)
{
    struct df_letter l;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_flush, file);

    if (error == -ETIMEDOUT && drop)
        df_letter_owe(trip->link, file, true);
    if (error < 0)
        return error;
    l.message->args.flush.owner = owner;
    l.message->args.flush.drop = drop;
    return (int)df_letter_send_and_finish(&l);
}

ssize_t df_trip_path(struct df_trip *trip, uint64_t file, char *buf, size_t size)
{
    struct df_letter l;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_path, file);

    if (error < 0)
        return error;
    l.message->args.path.size = df_letter_room(&l, size);
    return df_letter_send_for_bytes(&l, buf, size);
}

off_t df_trip_lseek(struct df_trip *trip, uint64_t file, off_t offset, int whence)
{
    return DF_TRIP_BY_FILE(lseek, file, .offset = offset, .whence = whence);
}

int df_trip_fsync(struct df_trip *trip, uint64_t file, bool datasync)
{
    return (int)DF_TRIP_BY_FILE(fsync, file, .datasync = datasync);
}

int df_trip_fallocate(struct df_trip *trip, uint64_t file, int mode, off_t offset, off_t length)
{
    return (int)DF_TRIP_BY_FILE(fallocate, file, .mode = mode, .offset = offset, .length = length);
}

ssize_t df_trip_copy_file_range(struct df_trip *trip, uint64_t in, off_t offset_in, uint64_t out,
                                off_t offset_out, size_t size, unsigned flags)
{
    struct df_letter l;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_copy_file_range, in);

    if (error < 0)
        return error;
    l.message->files[1] = out;
    l.message->args.copy_file_range.in = offset_in;
    l.message->args.copy_file_range.out = offset_out;
    l.message->args.copy_file_range.size = size;
    l.message->args.copy_file_range.flags = flags;
    return df_letter_send_and_finish(&l);
}

int df_trip_ioctl(struct df_trip *trip, uint64_t file, unsigned long request, void *arg)
{
    struct df_letter l;
    size_t size = df_ioctl_size(request);
    int64_t result;
    long copied = 0;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_ioctl, file);

    if (error < 0)
        return error;
    l.message->args.ioctl.request = request;
    l.message->args.ioctl.argument = (uintptr_t)arg;
    if (_IOC_DIR(request)) /* what the answer leaves out stays as it was */
        copied = df_channel_user_copy(l.area->payload, arg, size);
    if (copied < 0 && _IOC_DIR(request) & _IOC_WRITE)
        return (int)df_letter_finish(&l, copied);
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    bool filled = result >= 0 || copied >= 0; /* there may be bytes beside an error, too */
    copied = 0;
    if (filled && _IOC_DIR(request) & _IOC_READ)
        copied = df_channel_user_copy(arg, l.area->payload, size);
    return (int)df_letter_finish(&l, copied < 0 && result >= 0 ? copied : result);
}

int df_trip_poll(struct df_trip *trip, uint64_t file, int events, uint64_t bell)
{
    return (int)DF_TRIP_BY_FILE(poll, file, .events = events, .bell = bell);
}

int df_trip_epoll(struct df_trip *trip, uint64_t file, struct df_message_epoll *epoll)
{
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_EPOLL, file);

    if (error < 0)
        return error;
    l.message->args.epoll = *epoll;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result > 0)
        *epoll = l.message->out.epoll;
    return (int)df_letter_finish(&l, result);
}

int df_trip_lock(struct df_trip *trip, uint64_t file, struct df_lock *lock)
{
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_lock, file);

    if (error < 0)
        return error;
    l.message->args.lock.lock = *lock;
    if (lock->wait)
        l.patience = -1;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result == 0 && lock->test)
        *lock = l.message->out.lock;
    return (int)df_letter_finish(&l, result);
}

int df_trip_flock(struct df_trip *trip, uint64_t file, int operation, uint64_t owner)
{
    struct df_letter l;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_flock, file);

    if (error < 0)
        return error;
    l.message->args.flock.operation = operation;
    l.patience = -1;
    l.message->args.flock.owner = owner;
    return (int)df_letter_send_and_finish(&l);
}

int64_t df_trip_watch(struct df_trip *trip, uint64_t file, uint32_t events)
{
    return DF_TRIP_SEND(df_letter_begin_file(&l, trip, DF_MESSAGE_WATCH, file), watch,
                        .events = events);
}

/* FUSE knows no advice: it is the server's alone, about reading ahead. Most programs advise what is
 * so already. */
int df_trip_advise(struct df_trip *trip, uint64_t file, off_t offset, off_t length, int advice)
{
    const struct df_ofd *ofd = df_segment_ofd(trip->link->segment, file);
    bool random = ofd && atomic_load_explicit(&ofd->random, memory_order_relaxed);

    if (!ofd)
        return -EBADF;
    if (random ? advice == POSIX_FADV_RANDOM : advice != POSIX_FADV_RANDOM)
        return 0;
    return (int)DF_TRIP_BY_FILE(advise, file, .offset = offset, .length = length, .mode = advice);
}
