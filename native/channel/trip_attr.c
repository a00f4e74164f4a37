/*
 * trip_attr.c - attributes by name, from shared memory where they are kept there, else by a trip.
 * Freestanding.
 */
#include <errno.h>
#include <unistd.h>

#include "channel/cache.h"
#include "channel/frames.h"
#include "channel/trip_send.h"
#include "core/caller.h"

/* DF_SHARED_*. */
static uint32_t flags_of_mount(const struct df_trip *trip)
{
    const struct df_segment *segment = trip->link->segment;
    unsigned index = df_segment_mount_index(segment, trip->mount);

    return index < DF_MOUNT_COUNT ? df_segment_mounts(segment)[index].flags : 0;
}

static bool permits_by_attributes(const struct df_trip *trip)
{
    return flags_of_mount(trip) & DF_SHARED_PERMITS;
}

/* What attributes grant, of a mount that permits by them. */
static bool grants(const struct df_trip *trip, const struct stat *st, int mask)
{
    return !(flags_of_mount(trip) & DF_SHARED_ACLS && df_caller_is_for_acl(trip->caller, st)) &&
           df_caller_may(trip->caller, st, mask);
}

/* Of a path with a slash or "." at its end what is kept of the name alone says all, if that is a
 * directory, and one that may be searched. (Who asks so has `st` in memory of the core's own.) */
static bool answers_as_directory(const struct df_trip *trip, const struct df_trip_where *where,
                                 int result, const struct stat *st)
{
    if (!(where->flags & DF_CACHE_AS_DIRECTORY) || result != 0)
        return true;
    return S_ISDIR(st->st_mode) && (!(where->flags & DF_WHERE_DOT) ||
                                    !permits_by_attributes(trip) || grants(trip, st, X_OK));
}

static __attribute__((noinline)) bool look(struct df_trip *trip, const struct df_trip_where *where,
                                           unsigned index, int *result, struct stat *st)
{
    if (!df_cache_read(trip, where, index, result, st) ||
        !answers_as_directory(trip, where, *result, st))
        return false;
    df_link_hit(trip->link);
    return true;
}

/* Where answers of a mount are kept; DF_MOUNT_COUNT: they are not. A server that is gone answers
 * nothing any more. Of a mount of which nothing was ever kept nobody looks, and the few
 * instructions of this are all. */
static inline unsigned kept_at(const struct df_link *link, int32_t mount)
{
    const struct df_segment *segment = link->segment;
    unsigned index;

    if (segment->cache_size == 0 || !df_link_alive(link) ||
        (index = df_segment_mount_index(segment, mount)) == DF_MOUNT_COUNT ||
        !atomic_load_explicit(&df_segment_mounts(segment)[index].kept, memory_order_relaxed))
        return DF_MOUNT_COUNT;
    return index;
}

bool df_trip_known(struct df_trip *trip, const struct df_trip_where *where, int *result,
                   struct stat *st)
{
    unsigned index = kept_at(trip->link, trip->mount);

    return index < DF_MOUNT_COUNT && look(trip, where, index, result, st);
}

bool df_trip_known_open(struct df_link *link, uint64_t file, struct stat *st)
{
    const struct df_segment *segment = link->segment;
    const struct df_ofd *ofd = df_segment_ofd(segment, file);
    unsigned index = ofd ? kept_at(link, ofd->mount) : DF_MOUNT_COUNT;

    if (index == DF_MOUNT_COUNT || !df_cache_read_open(segment, ofd, file, index, st))
        return false;
    df_link_hit(link);
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
    return df_trip_send_and_take(&l, st, &l.message->out.st, sizeof(*st));
}

int df_trip_statx(struct df_trip *trip, const struct df_trip_where *where, struct df_statx *out)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_statx, where);

    if (error < 0)
        return error;
    return df_trip_send_and_take(&l, out, &l.message->out.statx, sizeof(*out));
}

/* As who asks: chmod -R says the same of each file, and that lies in a line that only long
 * arguments have. */
static void put_set(struct df_message *m, const struct df_setattr *set)
{
    uint64_t differs = 0, there, wanted;

    _Static_assert(sizeof(*set) % sizeof(wanted) == 0, "whole words");
    for (size_t at = 0; at < sizeof(*set); at += sizeof(wanted)) {
        __builtin_memcpy(&there, (const char *)&m->args.setattr.set + at, sizeof(there));
        __builtin_memcpy(&wanted, (const char *)set + at, sizeof(wanted));
        differs |= there ^ wanted;
    }
    if (differs != 0)
        m->args.setattr.set = *set;
}

int df_trip_setattr(struct df_trip *trip, const struct df_trip_where *where,
                    const struct df_setattr *set, struct stat *st)
{
    struct df_letter l;
    int64_t result;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_setattr, where);

    if (error < 0)
        return error;
    put_set(l.message, set);
    if (l.message->args.setattr.wants_stat != (st != NULL))
        l.message->args.setattr.wants_stat = st != NULL;
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    if (result == 0 && st)
        *st = l.message->out.st;
    return (int)df_letter_finish(&l, result);
}

bool df_trip_known_access(struct df_trip *trip, const struct df_trip_where *where, int mask,
                          int *result)
{
    uint32_t flags = flags_of_mount(trip);
    struct stat st;

    if (!(flags & DF_SHARED_PERMITS) || (flags & DF_SHARED_READONLY && mask & W_OK))
        return false;
    return df_trip_known(trip, where, result, &st) && (*result != 0 || grants(trip, &st, mask));
}

/* Where attributes say all, they are what is asked for: the answer is known the next time. What
 * they do not permit may have changed: the file system is asked, as by the kernel. */
int df_trip_access(struct df_trip *trip, const struct df_trip_where *where, int mask)
{
    struct stat st;

    if (permits_by_attributes(trip)) {
        int result = df_trip_getattr(trip, where, &st);

        if (result != 0 || grants(trip, &st, mask))
            return result;
    }
    return (int)DF_TRIP_BY_NAME(access, where, .mask = mask);
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

int df_trip_statfs(struct df_trip *trip, const struct df_trip_where *where, struct statvfs *out)
{
    struct df_letter l;
    int error = df_letter_begin_where(&l, trip, DF_MESSAGE_statfs, where);

    if (error < 0)
        return error;
    return df_trip_send_and_take(&l, out, &l.message->out.statvfs, sizeof(*out));
}
