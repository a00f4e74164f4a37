/*
 * remote.c - the ops of native/core, each as one trip to the mount server (channel/trip.h).
 *
 * While a file is mapped by some program of the job its bytes are those of its shadow file, which
 * the mappings show: reads come from there, and writes go there first (map.h).
 */
#include "syscalls/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>

#include "channel/trip.h"
#include "core/mount.h"
#include "intercept/intercept.h"
#include "syscalls/files.h"
#include "syscalls/record.h"
#include "syscalls/shadow_chunks.h"

static struct df_trip begin(struct df_call *call)
{
    return (struct df_trip){
        .link = &dfi_record_now()->files->link,
        .caller = call->caller,
        .mount = call->mount->id,
        .links = call->links,
        .second_links = call->second_links,
        .leave = call->leave,
    };
}

static struct df_trip_where place(const struct df_where *where)
{
    return (struct df_trip_where){
        .base = where->base ? where->base->host[DFI_HOST_HANDLE] : 0,
        .name = where->name,
        .len = where->len,
        .flags = where->flags,
    };
}

/* A server that is gone is a broken device to the program. */
static int64_t end(struct df_call *call, const struct df_trip *trip, int64_t result)
{
    call->links = trip->links;
    call->second_links = trip->second_links;
    call->leave_second = trip->leave_second;
    return DF_UNLIKELY(result == -ENOTCONN) ? -EIO : result;
}

/* An op with a where: its trip's arguments behind the where. */
#define REMOTE_WHERE(op, ...)                                                                      \
    struct df_trip trip = begin(call);                                                             \
    struct df_trip_where at = place(where);                                                        \
    (void)fs;                                                                                      \
    return end(call, &trip, df_trip_##op(&trip, &at, ##__VA_ARGS__))

#define REMOTE_FILE(op, ...)                                                                       \
    struct df_trip trip = begin(call);                                                             \
    (void)fs;                                                                                      \
    return end(call, &trip, df_trip_##op(&trip, file->host[DFI_HOST_HANDLE], ##__VA_ARGS__))

/* ---- by name ------------------------------------------------------------------------------- */

static int remote_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          struct stat *st)
{
    REMOTE_WHERE(getattr, st);
}

static int remote_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct df_statx *out)
{
    REMOTE_WHERE(statx, out);
}

static int remote_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          const struct df_setattr *set, struct stat *st)
{
    struct df_trip trip = begin(call);
    struct df_trip_where at = place(where);
    bool resized = set->valid & DF_SET_SIZE && where->base && where->len == 0 &&
                   dfi_shadow_mapped(where->base);
    struct dfi_chunks chunks;
    int ret;

    (void)fs;
    if (resized && dfi_shadow_change(where->base, &chunks) < 0)
        return -EIO;
    if (resized)
        dfi_shadow_resize(where->base, set->size, false);
    ret = df_trip_setattr(&trip, &at, set, st);
    if (ret == 0 && resized)
        dfi_shadow_resize(where->base, set->size, true);
    if (resized)
        dfi_shadow_changed(&chunks);
    return (int)end(call, &trip, ret);
}

static int remote_access(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         int mask)
{
    REMOTE_WHERE(access, mask);
}

static ssize_t remote_readlink(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                               char *buf, size_t size)
{
    REMOTE_WHERE(readlink, buf, size);
}

static ssize_t remote_getxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                               const char *name, void *value, size_t size)
{
    REMOTE_WHERE(getxattr, name, value, size);
}

static ssize_t remote_listxattr(struct df_fs *fs, struct df_call *call,
                                const struct df_where *where, char *list, size_t size)
{
    REMOTE_WHERE(listxattr, list, size);
}

static int remote_setxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                           const char *name, const void *value, size_t size, int flags)
{
    REMOTE_WHERE(setxattr, name, value, size, flags);
}

static int remote_removexattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              const char *name)
{
    REMOTE_WHERE(removexattr, name);
}

static int remote_statfs(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct statvfs *out)
{
    REMOTE_WHERE(statfs, out);
}

/* ---- entries ------------------------------------------------------------------------------- */

static int remote_mknod(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        mode_t mode, dev_t rdev)
{
    REMOTE_WHERE(mknod, mode, rdev);
}

static int remote_mkdir(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        mode_t mode)
{
    REMOTE_WHERE(mkdir, mode);
}

static int remote_symlink(struct df_fs *fs, struct df_call *call, const char *target,
                          const struct df_where *where)
{
    struct df_trip trip = begin(call);
    struct df_trip_where at = place(where);

    (void)fs;
    return end(call, &trip, df_trip_symlink(&trip, target, &at));
}

static int remote_unlink(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    REMOTE_WHERE(unlink);
}

static int remote_rmdir(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    REMOTE_WHERE(rmdir);
}

static int remote_rename(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                         const struct df_where *to, unsigned flags)
{
    struct df_trip trip = begin(call);
    struct df_trip_where first = place(from), second = place(to);

    (void)fs;
    return end(call, &trip, df_trip_rename(&trip, &first, &second, flags));
}

static int remote_link(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                       const struct df_where *to)
{
    struct df_trip trip = begin(call);
    struct df_trip_where first = place(from), second = place(to);

    (void)fs;
    return end(call, &trip, df_trip_link(&trip, &first, &second));
}

/* ---- open files ---------------------------------------------------------------------------- */

static void take_opened(struct df_file *file, const struct df_message_file *made)
{
    file->host[DFI_HOST_HANDLE] = made->handle;
    file->ino = made->ino;
    file->kind = made->kind;
    file->traits = made->traits;
}

static int remote_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct df_file *file, int flags, mode_t mode)
{
    struct df_trip trip = begin(call);
    struct df_trip_where at = place(where);
    struct df_message_file made;
    int ret = df_trip_open(&trip, &at, flags, mode, &made);

    (void)fs;
    if (ret == 0)
        take_opened(file, &made);
    return end(call, &trip, ret);
}

static int remote_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          struct df_file *file, int flags, mode_t mode)
{
    struct df_trip trip = begin(call);
    struct df_trip_where at = place(where);
    struct df_message_file made;
    int ret = df_trip_tmpfile(&trip, &at, flags, mode, &made);

    (void)fs;
    if (ret == 0)
        take_opened(file, &made);
    return end(call, &trip, ret);
}

static ssize_t remote_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t offset)
{
    if (DF_UNLIKELY(dfi_shadow_mapped(file))) {
        struct df_trip trip = begin(call);

        return end(call, &trip, dfi_shadow_read(&trip, file, iov, iovcnt, offset));
    }
    REMOTE_FILE(read, iov, iovcnt, offset);
}

static ssize_t write_there(struct df_call *call, struct df_file *file, const struct iovec *iov,
                           int iovcnt, off_t *offset)
{
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);
    struct df_trip trip = begin(call);

    return end(call, &trip,
               df_trip_write(&trip, file->host[DFI_HOST_HANDLE], flags, iov, iovcnt, offset));
}

static ssize_t write_mapped(struct df_call *call, struct df_file *file, const struct iovec *iov,
                            int iovcnt, off_t *offset)
{
    bool appends = atomic_load_explicit(&file->flags, memory_order_relaxed) & O_APPEND;
    struct dfi_chunks chunks;
    ssize_t ret;

    if (dfi_shadow_change(file, &chunks) < 0)
        return -EIO;
    if (!appends) /* who sees the new size has the memory too */
        dfi_shadow_write(file, &chunks, iov, iovcnt, *offset, SSIZE_MAX);
    ret = write_there(call, file, iov, iovcnt, offset);
    if (appends && ret > 0)
        dfi_shadow_write(file, &chunks, iov, iovcnt, *offset, ret);
    dfi_shadow_changed(&chunks);
    return ret;
}

static ssize_t remote_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct dfi_chunks chunks;
    ssize_t ret;

    (void)fs;
    if (DF_UNLIKELY(dfi_shadow_mapped(file)))
        return write_mapped(call, file, iov, iovcnt, offset);
    ret = write_there(call, file, iov, iovcnt, offset);
    if (DF_UNLIKELY(dfi_shadow_mapped(file)) && ret > 0 && /* meanwhile */
        dfi_shadow_change(file, &chunks) == 0) {
        dfi_shadow_write(file, &chunks, iov, iovcnt, *offset, ret);
        dfi_shadow_changed(&chunks);
    }
    return ret;
}

static off_t remote_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          off_t offset, int whence)
{
    REMOTE_FILE(lseek, offset, whence);
}

static int remote_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file, bool datasync)
{
    REMOTE_FILE(fsync, datasync);
}

static int fallocate_mapped(struct df_call *call, struct df_file *file, int mode, off_t offset,
                            off_t length)
{
    struct df_trip trip = begin(call);
    struct dfi_chunks chunks;
    int ret;

    if (dfi_shadow_change(file, &chunks) < 0)
        return -EIO;
    dfi_shadow_allocate(file, &chunks, mode, offset, length);
    ret = df_trip_fallocate(&trip, file->host[DFI_HOST_HANDLE], mode, offset, length);
    dfi_shadow_changed(&chunks);
    return (int)end(call, &trip, ret);
}

static int remote_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                            off_t offset, off_t length)
{
    if (DF_UNLIKELY(dfi_shadow_mapped(file)))
        return fallocate_mapped(call, file, mode, offset, length);
    REMOTE_FILE(fallocate, mode, offset, length);
}

static ssize_t remote_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                      off_t offset_in, struct df_file *out, off_t offset_out,
                                      size_t size, unsigned flags)
{
    struct df_trip trip = begin(call);

    (void)fs;
    if (dfi_shadow_mapped(in) || dfi_shadow_mapped(out))
        return -EOPNOTSUPP; /* by read and write, which know of mappings */
    return end(call, &trip,
               df_trip_copy_file_range(&trip, in->host[DFI_HOST_HANDLE], offset_in,
                                       out->host[DFI_HOST_HANDLE], offset_out, size, flags));
}

/* The name by which the directory was opened is of memory that others write to: it may be anything,
 * and is no more than a hint. */
static void call_by_name(struct df_trip *trip, const struct df_mount *mount, uint64_t handle)
{
    const char *name = dfi_record_now()->files->shared->names[df_handle_index(handle)];
    size_t len = strnlen(name, PATH_MAX - 1);

    if (len < mount->point_len || memcmp(name, mount->point, mount->point_len) != 0)
        return;
    trip->called = len > mount->point_len ? name + mount->point_len : "/";
    trip->called_len = len > mount->point_len ? (uint32_t)(len - mount->point_len) : 1;
}

static int remote_readdir(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          off_t offset, struct df_dirbuf *buf)
{
    struct df_trip trip = begin(call);
    uint64_t handle = file->host[DFI_HOST_HANDLE];

    (void)fs;
    call_by_name(&trip, call->mount, handle);
    return (int)end(call, &trip, df_trip_readdir(&trip, handle, offset, buf));
}

static int remote_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                        unsigned long request, void *arg)
{
    REMOTE_FILE(ioctl, request, arg);
}

static int remote_advise(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                         off_t length, int advice)
{
    REMOTE_FILE(advise, offset, length, advice);
}

/* What is not here no call that is built into this door asks for. */
static const struct df_ops ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = remote_getattr,
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
    .tmpfile = remote_tmpfile,
};

struct df_fs dfi_remote = {.ops = &ops};
