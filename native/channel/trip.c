/*
 * trip.c - fills a message for each op, sends it, and unpacks the reply. Freestanding.
 */
#include "channel/trip.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <string.h>

#include "channel/cache.h"
#include "channel/frames.h"
#include "channel/letter.h"
#include "channel/sys.h"
#include "core/caller.h"

/* Of an op that is all in its arguments: begins a message, fills in what `begin` does not, sends
 * it; the value is the result. */
#define SEND(begin, op, ...)                                                                       \
    ({                                                                                             \
        struct df_letter l;                                                                        \
        int64_t result = begin;                                                                    \
        if (result == 0) {                                                                         \
            l.message->args.op = (__typeof__(l.message->args.op)){__VA_ARGS__};                    \
            result = df_letter_send_and_finish(&l);                                                \
        }                                                                                          \
        result;                                                                                    \
    })
#define SEND_BY_NAME(op, where, ...)                                                               \
    SEND(df_letter_begin_where(&l, trip, DF_MESSAGE_##op, where), op, __VA_ARGS__)
#define SEND_BY_FILE(op, file, ...)                                                                \
    SEND(df_letter_begin_file(&l, trip, DF_MESSAGE_##op, file), op, __VA_ARGS__)

/* Sends it, and copies what an op that succeeds has put into the answer. */
static int send_and_take(struct df_letter *l, void *to, const void *answer, size_t size)
{
    int error;
    int64_t result = df_letter_send(l, &error);

    if (error < 0)
        return error;
    if (result == 0)
        memcpy(to, answer, size);
    return (int)df_letter_finish(l, result);
}

/* ---- by name --------------------------------------------------------------------------------- */

static bool permits_by_attributes(const struct df_trip *trip)
{
    const struct df_segment *segment = trip->link->segment;
    unsigned index = df_segment_mount_index(segment, trip->mount);

    return index < DF_MOUNT_COUNT && df_segment_mounts(segment)[index].flags & DF_SHARED_PERMITS;
}

/* Of a path with a slash or "." at its end what is kept of the name alone says all, if that is a
 * directory, and one that may be searched. (Who asks so has `st` in memory of the core's own.) */
static bool answers_as_directory(const struct df_trip *trip, const struct df_trip_where *where,
                                 int result, const struct stat *st)
{
    if (!(where->flags & DF_CACHE_AS_DIRECTORY) || result != 0)
        return true;
    return S_ISDIR(st->st_mode) &&
           (!(where->flags & DF_WHERE_DOT) || !permits_by_attributes(trip) ||
            df_caller_may(trip->caller, st, X_OK));
}

/* A server that is gone answers nothing any more. */
bool df_trip_known(struct df_trip *trip, const struct df_trip_where *where, int *result,
                   struct stat *st)
{
    const struct df_segment *segment = trip->link->segment;
    struct df_cache_key key;
    unsigned index;

    if (segment->cache_size == 0 || !df_link_alive(trip->link) ||
        (index = df_segment_mount_index(segment, trip->mount)) == DF_MOUNT_COUNT ||
        !atomic_load_explicit(&df_segment_mounts(segment)[index].kept, memory_order_relaxed))
        return false;
    df_cache_key(df_cache_of(segment), trip->mount, trip->caller, where,
                 where->base ? df_content_id(segment, where->base) : 0, &key);
    if (!df_cache_read(df_cache_of(segment), index, &key, result, st) ||
        !answers_as_directory(trip, where, *result, st))
        return false;
    df_link_hit(trip->link);
    return true;
}

int df_trip_getattr(struct df_trip *trip, const struct df_trip_where *where, struct stat *st)
{
    struct df_letter l;
    int error;

    if (df_trip_known(trip, where, &error, st))
        return error;
    error = df_letter_begin_where(&l, trip, DF_MESSAGE_getattr, where);

    if (error < 0)
        return error;
    return send_and_take(&l, st, &l.message->out.st, sizeof(*st));
}

int df_trip_statx(struct df_trip *trip, const struct df_trip_where *where, struct df_statx *out)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_statx, where);

    if (error < 0)
        return error;
    return send_and_take(&l, out, &l.message->out.statx, sizeof(*out));
}

int df_trip_setattr(struct df_trip *trip, const struct df_trip_where *where,
                    const struct df_setattr *set, struct stat *st)
{
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_setattr, where);

    if (error < 0)
        return error;
    l.message->args.setattr.set = *set;
    l.message->args.setattr.wants_stat = st != NULL;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result == 0 && st)
        *st = l.message->out.st;
    return (int)df_letter_finish(&l, result);
}

/* Where attributes say all, they are what is asked for: the answer is known the next time. What
 * they do not permit may have changed: the file system is asked, as by the kernel. */
int df_trip_access(struct df_trip *trip, const struct df_trip_where *where, int mask)
{
    struct stat st;

    if (permits_by_attributes(trip)) {
        int result = df_trip_getattr(trip, where, &st);

        if (result != 0 || df_caller_may(trip->caller, &st, mask))
            return result;
    }
    return (int)SEND_BY_NAME(access, where, .mask = mask);
}

/* Whose attributes are kept is no symlink. Of a descriptor alone readlinkat(2) says ENOENT then. */
ssize_t df_trip_readlink(struct df_trip *trip, const struct df_trip_where *where, char *buf,
                         size_t size)
{
    struct df_letter l;
    struct stat st;
    int error;

    if ((where->base == 0 || where->len > 0) && df_trip_known(trip, where, &error, &st))
        return error != 0 ? error : -EINVAL;
    error = df_letter_begin_where(&l, trip, DF_MESSAGE_readlink, where);
    if (error < 0)
        return error;
    l.message->args.readlink.size = df_letter_room(&l, size);
    return df_letter_send_for_bytes(&l, buf, size);
}

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

int df_trip_statfs(struct df_trip *trip, const struct df_trip_where *where, struct statvfs *out)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_statfs, where);

    if (error < 0)
        return error;
    return send_and_take(&l, out, &l.message->out.statvfs, sizeof(*out));
}

/* ---- entries -----------------------------------------------------------------------------------
 */

int df_trip_mknod(struct df_trip *trip, const struct df_trip_where *where, mode_t mode, dev_t rdev)
{
    return (int)SEND_BY_NAME(mknod, where, .mode = mode, .rdev = rdev);
}

int df_trip_mkdir(struct df_trip *trip, const struct df_trip_where *where, mode_t mode)
{
    return (int)SEND_BY_NAME(mkdir, where, .mode = mode);
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

/* ---- open files --------------------------------------------------------------------------------
 */

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
    error = send_and_take(&l, out, &l.message->out.file, sizeof(*out));
    if (error == 0)
        fetch_opened(trip->link->segment, out);
    return error;
}

int df_trip_open(struct df_trip *trip, const struct df_trip_where *where, int flags, mode_t mode,
                 struct df_message_file *out)
{
    return send_open(trip, DF_MESSAGE_open, where, flags, mode, out);
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
    return SEND_BY_FILE(lseek, file, .offset = offset, .whence = whence);
}

int df_trip_fsync(struct df_trip *trip, uint64_t file, bool datasync)
{
    return (int)SEND_BY_FILE(fsync, file, .datasync = datasync);
}

int df_trip_fallocate(struct df_trip *trip, uint64_t file, int mode, off_t offset, off_t length)
{
    return (int)SEND_BY_FILE(fallocate, file, .mode = mode, .offset = offset, .length = length);
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
    size_t size = _IOC_SIZE(request);
    int64_t result;
    long copied = 0;
    int error = df_letter_begin_file(&l, trip, DF_MESSAGE_ioctl, file);

    if (error < 0)
        return error;
    l.message->args.ioctl.request = request;
    l.message->args.ioctl.argument = (uintptr_t)arg;
    if (_IOC_DIR(request) & _IOC_WRITE)
        copied = df_channel_user_copy(l.area->payload, arg, size);
    if (copied < 0)
        return (int)df_letter_finish(&l, copied);
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result >= 0 && _IOC_DIR(request) & _IOC_READ)
        copied = df_channel_user_copy(arg, l.area->payload, size);
    return (int)df_letter_finish(&l, copied < 0 ? copied : result);
}

int df_trip_poll(struct df_trip *trip, uint64_t file, int events)
{
    return (int)SEND_BY_FILE(poll, file, .events = events);
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
    return (int)SEND_BY_FILE(advise, file, .offset = offset, .length = length, .mode = advice);
}

/* ---- processes ---------------------------------------------------------------------------------
 */

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
    if (!df_link_post(trip->link, l.slot))
        df_letter_send_and_finish(&l);
}

int df_trip_keep(struct df_trip *trip, const uint64_t files[], size_t count)
{
    struct df_letter l;
    int error;

    if (count > DF_PAYLOAD_SIZE / sizeof(files[0]))
        return -E2BIG;
    error = df_letter_begin_plain(&l, trip, DF_MESSAGE_KEEP);
    if (error < 0)
        return error;
    if (df_letter_room(&l, count * sizeof(files[0])) < count * sizeof(files[0]))
        return (int)df_letter_finish(&l, -ENOMEM);
    df_sys_copy(l.area->payload, files, count * sizeof(files[0]));
    l.message->args.keep.size = count * sizeof(files[0]);
    return (int)df_letter_send_and_finish(&l);
}

int64_t df_trip_fork(struct df_trip *trip)
{
    return tell(trip, DF_MESSAGE_FORK, 0);
}

int df_trip_unfork(struct df_trip *trip, uint32_t client)
{
    return (int)SEND(df_letter_begin_plain(&l, trip, DF_MESSAGE_UNFORK), unfork, .client = client);
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

int df_trip_nothing(struct df_trip *trip)
{
    return (int)tell(trip, DF_MESSAGE_NOTHING, 0);
}
