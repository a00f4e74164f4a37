/*
 * remote.c - struct df_ops over a channel. Freestanding.
 */
#include "channel/remote.h"

#include <errno.h>

#include "channel/join.h"
#include "channel/ofd.h"
#include "channel/sys.h"

#define BATCH_RUN 32                /* extents of one trip; on the stack */
#define LOOK_NS   INT64_C(10000000) /* between two looks of poll */

static struct df_remote *remote_of(struct df_fs *fs)
{
    return (struct df_remote *)fs;
}

static struct df_trip trip_of(struct df_fs *fs, struct df_call *call)
{
    return (struct df_trip){
        .link = remote_of(fs)->link,
        .caller = call->caller,
        .mount = remote_of(fs)->mount,
        .links = call->links,
        .second_links = call->second_links,
        .leave = call->leave,
    };
}

static uint64_t handle_of(const struct df_file *file)
{
    return file->host[DF_REMOTE_HANDLE];
}

/* Each trouble is told once. */
static void tell_trouble(struct df_remote *remote, int64_t error)
{
    struct df_link *link = remote->link;
    uint32_t late = 1;

    if (error == -ENOTCONN && df_link_lost(link) && atomic_exchange(&link->told, 1) == 0)
        remote->tell(remote, DF_REMOTE_GONE);
    if (error == -ETIMEDOUT && atomic_compare_exchange_strong(&link->late, &late, 2))
        remote->tell(remote, DF_REMOTE_LATE);
}

static bool is_new_start(const struct df_link *link)
{
    return atomic_load_explicit(&link->starts, memory_order_relaxed) !=
           atomic_load_explicit(&link->segment->starts, memory_order_relaxed);
}

static void tell_start(struct df_remote *remote)
{
    uint32_t starts = atomic_load(&remote->link->segment->starts);

    if (atomic_exchange(&remote->link->starts, starts) != starts)
        remote->tell(remote, DF_REMOTE_AGAIN);
}

static bool is_full(const struct df_link *link)
{
    return atomic_load_explicit(&link->segment->full, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&link->full, memory_order_relaxed) == 0;
}

/* What the call is to know of the trip. */
static int64_t back(struct df_fs *fs, struct df_call *call, const struct df_trip *trip,
                    int64_t result)
{
    struct df_remote *remote = remote_of(fs);

    if (result == DF_LEAVE) {
        call->links = trip->links;
        call->second_links = trip->second_links;
        call->leave_second = trip->leave_second;
    }
    if (__builtin_expect(result == -ENOTCONN || result == -ETIMEDOUT, 0) && remote->tell)
        tell_trouble(remote, result);
    if (__builtin_expect(is_new_start(trip->link), 0) && remote->tell)
        tell_start(remote);
    if (__builtin_expect(is_full(trip->link), 0) && remote->tell &&
        atomic_exchange(&trip->link->full, 1) == 0)
        remote->tell(remote, DF_REMOTE_FULL);
    return result;
}

#include "channel/remote_ops.h"

static int remote_setattr(FS, WHERE, const struct df_setattr *set, struct stat *st)
{
    TRIP_BY_NAME(df_trip_setattr(&trip, &at, set, st));
}

/* ---- open files --------------------------------------------------------------------------------
 */

static struct df_ofd *ofd_of(const struct df_file *file)
{
    return (struct df_ofd *)(uintptr_t)file->host[DF_REMOTE_OFD];
}

static struct df_link *link_of(const struct df_file *file)
{
    return (struct df_link *)(uintptr_t)file->host[DF_REMOTE_LINK];
}

/* A lock that cannot be had belongs to a server that is gone: so is the file. */
static void far_lock(struct df_file *file)
{
    df_ofd_lock(link_of(file), ofd_of(file), false);
    file->position = ofd_of(file)->position;
}

static void far_unlock(struct df_file *file)
{
    ofd_of(file)->position = file->position;
    df_ofd_unlock(link_of(file), ofd_of(file));
}

static void far_look(struct df_file *file)
{
    int flags = (int)atomic_load_explicit(&ofd_of(file)->flags, memory_order_relaxed);

    if (flags != atomic_load_explicit(&file->flags, memory_order_relaxed))
        atomic_store_explicit(&file->flags, flags, memory_order_relaxed);
}

static void far_tell(struct df_file *file)
{
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    atomic_store_explicit(&ofd_of(file)->flags, (uint32_t)flags, memory_order_relaxed);
}

static int far_place(struct df_file *file)
{
    return df_join_place(link_of(file), handle_of(file));
}

static const struct df_file_far shared_by_processes = {far_lock, far_unlock, far_look, far_tell,
                                                       far_place};

static void share(struct df_remote *remote, struct df_file *file)
{
    struct df_ofd *ofd = df_segment_ofd(remote->link->segment, handle_of(file));

    file->host[DF_REMOTE_OFD] = (uintptr_t)ofd;
    file->host[DF_REMOTE_LINK] = (uintptr_t)remote->link;
    file->far = ofd ? &shared_by_processes : NULL; /* NULL: the server has just ended */
    if (ofd)
        far_tell(file);
}

static void take_opened(struct df_fs *fs, struct df_file *file,
                        const struct df_message_file *opened)
{
    file->host[DF_REMOTE_HANDLE] = opened->handle;
    file->ino = opened->ino;
    file->kind = opened->kind;
    file->host[DF_REMOTE_TRAITS] = opened->traits;
    file->traits = opened->traits & (uint8_t)~DF_FILE_NOFLUSH; /* see remote_flush() */
    share(remote_of(fs), file);
}

static int back_opened(FS, struct df_trip *trip, int64_t result, FILE_,
                       const struct df_message_file *opened)
{
    if (result == 0)
        take_opened(fs, file, opened);
    return (int)back(fs, call, trip, result);
}

static int remote_open(FS, WHERE, FILE_, int flags, mode_t mode)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    struct df_message_file opened;
    int64_t result = df_trip_open(&trip, &at, flags, mode, &opened);

    return back_opened(fs, call, &trip, result, file, &opened);
}

static int remote_tmpfile(FS, WHERE, FILE_, int flags, mode_t mode)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    struct df_message_file opened;
    int64_t result = df_trip_tmpfile(&trip, &at, flags, mode, &opened);

    return back_opened(fs, call, &trip, result, file, &opened);
}

/* A close that the plugin does not want to hear of is told only where it may release a lock: those
 * are kept over there. */
static bool is_told(const struct df_remote *remote, const struct df_file *file)
{
    return !(file->host[DF_REMOTE_TRAITS] & DF_FILE_NOFLUSH) || !remote->shared ||
           atomic_load_explicit(&remote->shared->locked, memory_order_relaxed);
}

static int remote_flush(FS, FILE_, uint64_t owner)
{
    if (!is_told(remote_of(fs), file))
        return 0;
    TRIP(df_trip_flush(&trip, handle_of(file), owner, false));
}

static void remote_release(FS, FILE_)
{
    struct df_trip trip = trip_of(fs, call);

    back(fs, call, &trip, df_trip_drop(&trip, handle_of(file)));
}

static ssize_t remote_read(FS, FILE_, const struct iovec *iov, int iovcnt, off_t offset)
{
    TRIP(df_trip_read(&trip, handle_of(file), iov, iovcnt, offset));
}

static ssize_t remote_write(FS, FILE_, const struct iovec *iov, int iovcnt, off_t *offset)
{
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    TRIP(df_trip_write(&trip, handle_of(file), flags, call->placing, iov, iovcnt, offset));
}

static int batch_run(struct df_trip *trip, struct df_extent *extents, size_t count)
{
    struct df_trip_extent run[BATCH_RUN];
    int ret;

    for (size_t i = 0; i < count; i++)
        run[i] = (struct df_trip_extent){handle_of(extents[i].file), extents[i].buf,
                                         extents[i].size, extents[i].offset, 0};
    ret = df_trip_read_batch(trip, run, count);
    for (size_t i = 0; i < count; i++)
        extents[i].result = ret < 0 ? ret : run[i].result;
    return ret;
}

static int remote_read_batch(FS, struct df_extent *extents, size_t count)
{
    struct df_trip trip = trip_of(fs, call);
    int64_t result = 0;

    for (size_t done = 0; done < count; done += BATCH_RUN) {
        size_t left = count - done;
        int ret = batch_run(&trip, extents + done, left < BATCH_RUN ? left : BATCH_RUN);

        if (ret < 0)
            result = ret;
    }
    back(fs, call, &trip, result);
    return 0; /* each extent has its own result */
}

static int remote_fallocate(FS, FILE_, int mode, off_t offset, off_t length)
{
    TRIP(df_trip_fallocate(&trip, handle_of(file), mode, offset, length));
}

static ssize_t remote_copy_file_range(FS, struct df_file *in, off_t offset_in, struct df_file *out,
                                      off_t offset_out, size_t size, unsigned flags)
{
    TRIP(df_trip_copy_file_range(&trip, handle_of(in), offset_in, handle_of(out), offset_out, size,
                                 flags));
}

static int remote_readdir(FS, FILE_, off_t offset, struct df_dirbuf *buf)
{
    TRIP(df_trip_readdir(&trip, handle_of(file), offset, buf));
}

/* Nobody over there can wake a poller here: who waits looks again every LOOK_NS. */
static int remote_poll(FS, FILE_, int events, struct df_wake *wake)
{
    struct df_trip trip = trip_of(fs, call);
    int64_t ready = df_trip_poll(&trip, handle_of(file), events, 0);
    _Atomic uint32_t nothing = 0;

    if (ready == 0 && wake) {
        df_sys_wait(&nothing, 0, LOOK_NS);
        df_wake(wake);
    } else {
        df_wake_drop(wake);
    }
    return (int)back(fs, call, &trip, ready);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Of what a server with placeholders has left to us once it is not asked again: DF_NOT_OURS, or
 * -ENOTCONN. 0: ask. */
static int known_left(const struct df_remote *remote, const struct df_file *file, bool flock)
{
    if (!remote->shared || !(atomic_load_explicit(&remote->shared->left, memory_order_relaxed) &
                             df_left_bit(file->kind, flock)))
        return 0;
    return df_link_lost(remote->link) ? -ENOTCONN : DF_NOT_OURS;
}

static int remote_lock(FS, FILE_, struct df_lock *lock)
{
    struct df_trip trip = trip_of(fs, call);
    int result = known_left(remote_of(fs), file, false);

    if (result == 0)
        result = df_trip_lock(&trip, handle_of(file), lock);
    return (int)back(fs, call, &trip, result);
}

static int remote_flock(FS, FILE_, int operation, uint64_t owner)
{
    struct df_trip trip = trip_of(fs, call);
    int result = known_left(remote_of(fs), file, true);

    if (result == 0)
        result = df_trip_flock(&trip, handle_of(file), operation, owner);
    return (int)back(fs, call, &trip, result);
}

/* The bytes are in another process. */
static ssize_t remote_borrow(FS, FILE_, off_t offset, size_t size, const void **ptr)
{
    (void)fs, (void)call, (void)file, (void)offset, (void)size, (void)ptr;
    return -EOPNOTSUPP;
}

static void remote_unborrow(FS, FILE_, const void *ptr, size_t size)
{
    (void)fs, (void)call, (void)file, (void)ptr, (void)size;
}

static ssize_t remote_lend(FS, FILE_, void *buffer, size_t size, off_t offset, const char **at)
{
    struct iovec iov = {buffer, size};

    *at = buffer;
    return remote_read(fs, call, file, &iov, 1, offset);
}

static void remote_destroy(struct df_fs *fs)
{
    if (remote_of(fs)->end)
        remote_of(fs)->end(remote_of(fs));
}

/* ---- the table ---------------------------------------------------------------------------------
 */

static const struct df_ops remote_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
#define DF_OP(name) .name = remote_##name,
#include "core/ops.def"
#undef DF_OP
};

void df_remote_init(struct df_remote *remote, struct df_link *link, int32_t mount)
{
    struct df_shared_mount *mounts = df_segment_mounts(link->segment);

    *remote =
        (struct df_remote){.fs = {&remote_ops, .shortens = true}, .link = link, .mount = mount};
    for (unsigned i = 0; i < DF_MOUNT_COUNT; i++)
        if (atomic_load_explicit(&mounts[i].live, memory_order_acquire) == mount)
            remote->shared = &mounts[i];
}
