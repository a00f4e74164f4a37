/*
 * remote.c - the ops of native/core, each as one trip to the mount server (channel/trip.h): those
 * that are more than their trip; the others are in channel/remote_ops.h.
 *
 * While a file is mapped by some program of the job its bytes are those of its shadow file, which
 * the mappings show: reads come from there, and writes go there first (map.h).
 */
#include "client/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>

#include "channel/trip.h"
#include "client/files.h"
#include "client/record.h"
#include "core/mount.h"
#include "intercept/intercept.h"
#include "shadows/shadow_chunks.h"

static struct df_trip trip_of(struct df_fs *fs, struct df_call *call)
{
    (void)fs;
    return (struct df_trip){
        .link = &dfi_record_now()->files->link,
        .caller = call->caller,
        .mount = call->mount->id,
        .links = call->links,
        .second_links = call->second_links,
        .leave = call->leave,
    };
}

static uint64_t handle_of(const struct df_file *file)
{
    return file->host[DFI_HOST_HANDLE];
}

/* A server that is gone is a broken device to the program. */
static int64_t back(struct df_fs *fs, struct df_call *call, const struct df_trip *trip,
                    int64_t result)
{
    (void)fs;
    call->links = trip->links;
    call->second_links = trip->second_links;
    call->leave_second = trip->leave_second;
    return dfi_as_told(result);
}

#include "channel/remote_ops.h"

/* ---- what mappings have to know of ------------------------------------------------------------
 */

/* What is there by that name, if some program has mapped it. Its number is that of open files,
 * which an open that no file system hears of (O_PATH) tells; stat(2) may have another one. */
static struct df_file *mapped_there(struct df_trip *trip, const struct df_trip_where *at,
                                    struct dfi_shadow_named *named)
{
    struct df_trip asking = *trip;
    struct df_message_file there;

    if (df_trip_open(&asking, at, O_PATH, 0, &there) != 0)
        return NULL;
    bool found = dfi_shadow_find(dfi_record_now()->files, trip->mount, there.ino, named);
    df_trip_drop(&asking, there.handle);
    return found ? &named->file : NULL;
}

static uint32_t count_mapped(void)
{
    return atomic_load(&dfi_record_now()->files->shared->mapped);
}

/* The file whose size is to be set, if some program has mapped it; else NULL. `named`: room for one
 * that is found by its name. */
static struct df_file *resized(struct df_trip *trip, const struct df_where *where,
                               struct dfi_shadow_named *named)
{
    struct df_trip_where at = where_of(where);

    if (count_mapped() == 0)
        return NULL;
    if (df_where_is_itself(where))
        return dfi_shadow_mapped_by_now(where->base) ? where->base : NULL;
    return mapped_there(trip, &at, named);
}

/* What was not done has grown the data file already: it is as long as the file again. */
static void resize_back(struct df_trip *trip, const struct df_trip_where *at,
                        const struct dfi_chunks *chunks)
{
    struct df_trip asking = *trip;
    struct stat st;

    if (df_trip_getattr(&asking, at, &st) == 0)
        dfi_shadow_resize(chunks, st.st_size, true);
}

static int set_mapped(struct df_trip *trip, const struct df_trip_where *at, struct df_file *file,
                      const struct df_setattr *set, struct stat *st)
{
    struct dfi_chunks chunks;

    if (dfi_shadow_change(file, &chunks) < 0)
        return -EIO;
    dfi_shadow_resize(&chunks, set->size, false);
    int ret = df_trip_setattr(trip, at, set, st);
    if (ret == 0)
        dfi_shadow_resize(&chunks, set->size, true);
    else
        resize_back(trip, at, &chunks);
    dfi_shadow_changed(&chunks);
    return ret;
}

/* Who maps the file while its size is set may have copied it before. Of a name this is asked once
 * more only if somebody has mapped anything since. */
static int set_size(struct df_trip *trip, const struct df_where *where,
                    const struct df_setattr *set, struct stat *st)
{
    struct df_trip_where at = where_of(where);
    struct df_trip again = *trip;
    struct dfi_shadow_named named;
    uint32_t mapped = count_mapped();
    struct df_file *file = resized(trip, where, &named);
    int ret = file ? set_mapped(trip, &at, file, set, st) : df_trip_setattr(trip, &at, set, st);

    if (!file && ret == 0 && (df_where_is_itself(where) || count_mapped() != mapped) &&
        (file = resized(&again, where, &named)))
        ret = set_mapped(&again, &at, file, set, st);
    return ret;
}

static int remote_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          const struct df_setattr *set, struct stat *st)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    int ret = set->valid & DF_SET_SIZE ? set_size(&trip, where, set, st)
                                       : df_trip_setattr(&trip, &at, set, st);

    return (int)back(fs, call, &trip, ret);
}

/* ---- open files ---------------------------------------------------------------------------- */

static void take_opened(struct df_file *file, const struct df_message_file *made)
{
    file->host[DFI_HOST_HANDLE] = made->handle;
    file->ino = made->ino;
    file->kind = made->kind;
    file->traits = made->traits;
}

/* It is the process that lacks something, not the server. */
static int as_nobody(const struct df_trip *trip, int ret)
{
    const struct dfi_files *files = dfi_record_now()->files;

    return ret == -ENFILE && trip->link->client == 0 && files->unmet < 0 ? files->unmet : ret;
}

static int remote_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct df_file *file, int flags, mode_t mode)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    struct df_message_file made;
    int ret = as_nobody(&trip, df_trip_open(&trip, &at, flags, mode, &made));

    if (ret == 0)
        take_opened(file, &made);
    return back(fs, call, &trip, ret);
}

static int remote_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          struct df_file *file, int flags, mode_t mode)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = where_of(where);
    struct df_message_file made;
    int ret = as_nobody(&trip, df_trip_tmpfile(&trip, &at, flags, mode, &made));

    if (ret == 0)
        take_opened(file, &made);
    return back(fs, call, &trip, ret);
}

/* Of what has no descriptor yet; later it is whoever closes the last one (fd.c). */
static void remote_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    struct df_trip trip = trip_of(fs, call);

    df_trip_drop(&trip, handle_of(file));
}

static ssize_t remote_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t offset)
{
    if (DF_UNLIKELY(dfi_shadow_mapped(file))) {
        struct df_trip trip = trip_of(fs, call);

        return back(fs, call, &trip, dfi_shadow_read(&trip, file, iov, iovcnt, offset));
    }
    TRIP(df_trip_read(&trip, handle_of(file), iov, iovcnt, offset));
}

static ssize_t write_there(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t *offset)
{
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);
    struct df_trip trip = trip_of(fs, call);

    return back(fs, call, &trip,
                df_trip_write(&trip, handle_of(file), flags, call->placing, iov, iovcnt, offset));
}

static ssize_t sum_of(const struct iovec *iov, int iovcnt)
{
    ssize_t size = 0;

    for (int i = 0; i < iovcnt; i++)
        size += (ssize_t)iov[i].iov_len;
    return size;
}

/* What the mount has taken less of than the data file. */
static void take_back(struct df_fs *fs, struct df_call *call, struct df_file *file,
                      const struct dfi_chunks *chunks, off_t offset, off_t end)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = {.base = handle_of(file), .name = ""};

    resize_back(&trip, &at, chunks);
    dfi_shadow_refill(file, chunks, offset, end);
}

static bool is_appended(const struct df_call *call, const struct df_file *file)
{
    return df_call_appends(call, atomic_load_explicit(&file->flags, memory_order_relaxed));
}

static ssize_t write_mapped(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            const struct iovec *iov, int iovcnt, off_t *offset)
{
    bool appends = is_appended(call, file);
    ssize_t size = sum_of(iov, iovcnt), ret;
    struct dfi_chunks chunks;

    if (dfi_shadow_change(file, &chunks) < 0)
        return -EIO;
    if (!appends) /* who sees the new size has the memory too */
        dfi_shadow_write(&chunks, iov, iovcnt, *offset, SSIZE_MAX);
    ret = write_there(fs, call, file, iov, iovcnt, offset);
    if (appends && ret > 0)
        dfi_shadow_write(&chunks, iov, iovcnt, *offset, ret);
    else if (!appends && DF_UNLIKELY(ret < size))
        take_back(fs, call, file, &chunks, *offset + (ret > 0 ? ret : 0), *offset + size);
    dfi_shadow_changed(&chunks);
    return ret;
}

/* What was written to the mount alone. Who maps the file meanwhile may have copied the bytes of
 * before, and even have written them back over these: not behind the end that the file had. What is
 * appended again would be there twice. */
static ssize_t write_again(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t offset, ssize_t size)
{
    struct dfi_chunks chunks;
    ssize_t ret;

    if (!is_appended(call, file)) {
        ret = write_mapped(fs, call, file, iov, iovcnt, &offset);
        return ret > size ? ret : size;
    }
    if (dfi_shadow_change(file, &chunks) == 0) {
        dfi_shadow_write(&chunks, iov, iovcnt, offset, size);
        dfi_shadow_changed(&chunks);
    }
    return size;
}

static ssize_t remote_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct dfi_files *files = dfi_record_now()->files;
    ssize_t ret;
    bool held;

    if (DF_UNLIKELY(dfi_shadow_mapped(file)))
        return write_mapped(fs, call, file, iov, iovcnt, offset);
    held = dfi_fd_hold_beside_others(files, handle_of(file)); /* pwrite(2) */
    ret = write_there(fs, call, file, iov, iovcnt, offset);
    if (ret > 0 && DF_UNLIKELY(dfi_shadow_mapped_by_now(file)))
        ret = write_again(fs, call, file, iov, iovcnt, *offset, ret);
    if (DF_UNLIKELY(held))
        dfi_fd_drop(files, handle_of(file), false);
    return ret;
}

/* What has become zeros on the mount becomes it in the data file, and once more on the mount: an
 * msync may have brought the old bytes there meanwhile. The data file's tmpfs has neither
 * FALLOC_FL_ZERO_RANGE nor sizes that change. */
static int allocated_there(struct df_trip *trip, struct df_file *file,
                           const struct dfi_chunks *chunks, int mode, off_t offset, off_t length)
{
    const int zeroes = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
    int how = FALLOC_FL_KEEP_SIZE | (mode & zeroes ? FALLOC_FL_PUNCH_HOLE : 0);

    dfi_shadow_allocate(chunks, how, offset, offset + length);
    return mode & zeroes ? df_trip_fallocate(trip, handle_of(file), mode, offset, length) : 0;
}

static int fallocate_mapped(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                            off_t offset, off_t length)
{
    struct df_trip trip = trip_of(fs, call);
    struct df_trip_where at = {.base = handle_of(file), .name = ""};
    struct dfi_chunks chunks;
    int ret;

    if (dfi_shadow_change(file, &chunks) < 0)
        return -EIO;
    if (!(mode & FALLOC_FL_KEEP_SIZE)) /* who sees the new size has the memory too */
        dfi_shadow_resize(&chunks, offset + length, false);
    ret = df_trip_fallocate(&trip, handle_of(file), mode, offset, length);
    if (ret == 0)
        ret = allocated_there(&trip, file, &chunks, mode, offset, length);
    else
        resize_back(&trip, &at, &chunks);
    dfi_shadow_changed(&chunks);
    return (int)back(fs, call, &trip, ret);
}

static int remote_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                            off_t offset, off_t length)
{
    struct df_trip trip = trip_of(fs, call);
    int ret;

    if (DF_UNLIKELY(dfi_shadow_mapped(file)))
        return fallocate_mapped(fs, call, file, mode, offset, length);
    ret = df_trip_fallocate(&trip, handle_of(file), mode, offset, length);
    if (ret == 0 && DF_UNLIKELY(dfi_shadow_mapped_by_now(file)))
        return fallocate_mapped(fs, call, file, mode, offset, length);
    return (int)back(fs, call, &trip, ret);
}

static ssize_t remote_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                      off_t offset_in, struct df_file *out, off_t offset_out,
                                      size_t size, unsigned flags)
{
    struct df_trip trip = trip_of(fs, call);
    ssize_t ret;

    if (dfi_shadow_mapped(in) || dfi_shadow_mapped(out))
        return -EOPNOTSUPP; /* by read and write, which know of mappings */
    ret = df_trip_copy_file_range(&trip, handle_of(in), offset_in, handle_of(out), offset_out, size,
                                  flags);
    if (ret > 0 && DF_UNLIKELY(dfi_shadow_mapped_by_now(out)))
        return -EOPNOTSUPP; /* once more */
    return back(fs, call, &trip, ret);
}

/* The name by which the directory was opened is of memory that others write to: it may be anything,
 * and is no more than a hint. */
static void call_by_name(struct df_trip *trip, const struct df_mount *mount, uint64_t handle)
{
    const char *name = df_segment_name(dfi_record_now()->files->link.segment, handle);
    size_t len = strnlen(name, PATH_MAX - 1);

    if (len < mount->point_len || memcmp(name, mount->point, mount->point_len) != 0)
        return;
    trip->called = len > mount->point_len ? name + mount->point_len : "/";
    trip->called_len = len > mount->point_len ? (uint32_t)(len - mount->point_len) : 1;
}

static int remote_readdir(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          off_t offset, struct df_dirbuf *buf)
{
    struct df_trip trip = trip_of(fs, call);
    uint64_t handle = handle_of(file);

    call_by_name(&trip, call->mount, handle);
    return (int)back(fs, call, &trip, df_trip_readdir(&trip, handle, offset, buf));
}

/* What is not here no call that is built into this door asks for. */
static const struct df_ops ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = remote_getattr,
    .known = remote_known,
    .setattr = remote_setattr,
    .access = remote_access,
    .readlink = remote_readlink,
    .getxattr = remote_getxattr,
    .listxattr = remote_listxattr,
    .setxattr = remote_setxattr,
    .removexattr = remote_removexattr,
    .statfs = remote_statfs,
    .mknod = remote_mknod,
    .mkdir = remote_mkdir,
    .symlink = remote_symlink,
    .unlink = remote_unlink,
    .rmdir = remote_rmdir,
    .rename = remote_rename,
    .link = remote_link,
    .open = remote_open,
    .read = remote_read,
    .write = remote_write,
    .lseek = remote_lseek,
    .fsync = remote_fsync,
    .fallocate = remote_fallocate,
    .copy_file_range = remote_copy_file_range,
    .readdir = remote_readdir,
    .ioctl = remote_ioctl,
    .advise = remote_advise,
    .statx = remote_statx,
    .release = remote_release,
    .tmpfile = remote_tmpfile,
    .path = remote_path,
};

struct df_fs dfi_remote = {.ops = &ops, .shortens = true};
