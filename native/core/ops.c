/*
 * ops.c - the defaults of ops that a file system does not have, and the dirent buffer.
 * What each default does is documented at its op in ops.h.
 */
#include "core/ops.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/file.h"

#define NAME_OFFSET offsetof(struct dirent64, d_name)

static const struct df_where itself = {.name = ""};

static struct df_where where_of(struct df_file *file)
{
    struct df_where where = itself;

    where.base = file;
    return where;
}

/* ---- by name ------------------------------------------------------------------------------- */

static int default_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                           const struct df_setattr *set, struct stat *st)
{
    (void)fs, (void)call, (void)where, (void)set, (void)st;
    return -EROFS;
}

static int default_access(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          int mask)
{
    struct stat st;
    ssize_t ret = df_call_result(call, fs->ops->getattr(fs, call, where, &st));

    if (ret < 0)
        return (int)ret;
    return df_caller_may(call->caller, &st, mask) ? 0 : -EACCES;
}

static ssize_t default_readlink(struct df_fs *fs, struct df_call *call,
                                const struct df_where *where, char *buf, size_t size)
{
    (void)fs, (void)call, (void)where, (void)buf, (void)size;
    return -EINVAL;
}

static ssize_t default_getxattr(struct df_fs *fs, struct df_call *call,
                                const struct df_where *where, const char *name, void *value,
                                size_t size)
{
    (void)fs, (void)call, (void)where, (void)name, (void)value, (void)size;
    return -EOPNOTSUPP;
}

static ssize_t default_listxattr(struct df_fs *fs, struct df_call *call,
                                 const struct df_where *where, char *list, size_t size)
{
    (void)fs, (void)call, (void)where, (void)list, (void)size;
    return -EOPNOTSUPP;
}

/* What is not there, or has no "user." attributes (xattr(7)), comes before that nothing has. */
static int refuse_xattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        const char *name)
{
    struct stat st;
    int ret = (int)df_call_result(call, fs->ops->getattr(fs, call, where, &st));

    if (ret < 0)
        return ret;
    bool any = strncmp(name, "user.", 5) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
    return any ? -EOPNOTSUPP : -EPERM;
}

static int default_setxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                            const char *name, const void *value, size_t size, int flags)
{
    (void)value, (void)size, (void)flags;
    return refuse_xattr(fs, call, where, name);
}

static int default_removexattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                               const char *name)
{
    return refuse_xattr(fs, call, where, name);
}

static int default_statfs(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          struct statvfs *out)
{
    (void)fs, (void)call, (void)where;
    memset(out, 0, sizeof(*out));
    out->f_namemax = 255;
    out->f_bsize = 512;
    return 0;
}

/* ---- entries of a directory ---------------------------------------------------------------- */

static int default_mknod(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         mode_t mode, dev_t rdev)
{
    (void)fs, (void)call, (void)where, (void)mode, (void)rdev;
    return -EROFS;
}

static int default_mkdir(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         mode_t mode)
{
    (void)fs, (void)call, (void)where, (void)mode;
    return -EROFS;
}

static int default_symlink(struct df_fs *fs, struct df_call *call, const char *target,
                           const struct df_where *where)
{
    (void)fs, (void)call, (void)target, (void)where;
    return -EROFS;
}

static int default_unlink(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    (void)fs, (void)call, (void)where;
    return -EROFS;
}

static int default_rmdir(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    (void)fs, (void)call, (void)where;
    return -EROFS;
}

static int default_rename(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                          const struct df_where *to, unsigned flags)
{
    (void)fs, (void)call, (void)from, (void)to, (void)flags;
    return -EROFS;
}

static int default_link(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                        const struct df_where *to)
{
    (void)fs, (void)call, (void)from, (void)to;
    return -EROFS;
}

/* ---- open files ---------------------------------------------------------------------------- */

static int default_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct df_file *file, int flags, mode_t mode)
{
    (void)fs, (void)call, (void)where, (void)file, (void)flags, (void)mode;
    return -EOPNOTSUPP;
}

static int default_flush(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         uint64_t owner)
{
    (void)fs, (void)call, (void)file, (void)owner;
    return 0;
}

static void default_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    (void)fs, (void)call, (void)file;
}

static ssize_t default_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            const struct iovec *iov, int iovcnt, off_t offset)
{
    (void)fs, (void)call, (void)file, (void)iov, (void)iovcnt, (void)offset;
    return -EINVAL;
}

static ssize_t default_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                             const struct iovec *iov, int iovcnt, off_t *offset)
{
    (void)fs, (void)call, (void)file, (void)iov, (void)iovcnt, (void)offset;
    return -EBADF;
}

static int default_read_batch(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct df_extent *e = &extents[i];
        struct iovec iov = {e->buf, e->size};

        e->result = df_call_result(call, fs->ops->read(fs, call, e->file, &iov, 1, e->offset));
    }
    return 0;
}

/* A file without holes has one behind its end: lseek(2). */
static off_t default_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           off_t offset, int whence)
{
    struct df_where where = where_of(file);
    struct stat st;
    ssize_t ret = df_call_result(call, fs->ops->getattr(fs, call, &where, &st));

    if (ret < 0)
        return ret;
    if (offset < 0 || offset >= st.st_size)
        return -ENXIO;
    return whence == SEEK_DATA ? offset : st.st_size;
}

static int default_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         bool datasync)
{
    (void)fs, (void)call, (void)file, (void)datasync;
    return 0;
}

static int default_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                             off_t offset, off_t length)
{
    (void)fs, (void)call, (void)file, (void)mode, (void)offset, (void)length;
    return -EOPNOTSUPP;
}

static ssize_t default_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                       off_t offset_in, struct df_file *out, off_t offset_out,
                                       size_t size, unsigned flags)
{
    (void)fs, (void)call, (void)in, (void)offset_in, (void)out, (void)offset_out, (void)size;
    (void)flags;
    return -EOPNOTSUPP;
}

static int default_readdir(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           off_t offset, struct df_dirbuf *buf)
{
    (void)fs, (void)call, (void)file, (void)offset, (void)buf;
    return -ENOTDIR;
}

static int default_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         unsigned long request, void *arg)
{
    (void)fs, (void)call, (void)file, (void)request, (void)arg;
    return -ENOTTY;
}

static int default_poll(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                        struct df_wake *wake)
{
    (void)fs, (void)call, (void)file;
    df_wake_drop(wake);
    return events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
}

static int default_lock(struct df_fs *fs, struct df_call *call, struct df_file *file,
                        struct df_lock *lock)
{
    (void)fs, (void)call, (void)file, (void)lock;
    return DF_NOT_OURS;
}

static int default_flock(struct df_fs *fs, struct df_call *call, struct df_file *file,
                         int operation, uint64_t owner)
{
    (void)fs, (void)call, (void)file, (void)operation, (void)owner;
    return DF_NOT_OURS;
}

static int default_advise(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          off_t offset, off_t length, int advice)
{
    (void)fs, (void)call, (void)file, (void)offset, (void)length, (void)advice;
    return 0;
}

static ssize_t default_borrow(struct df_fs *fs, struct df_call *call, struct df_file *file,
                              off_t offset, size_t size, const void **ptr)
{
    (void)fs, (void)call, (void)file, (void)offset, (void)size, (void)ptr;
    return -EOPNOTSUPP;
}

static void default_unborrow(struct df_fs *fs, struct df_call *call, struct df_file *file,
                             const void *ptr, size_t size)
{
    (void)fs, (void)call, (void)file, (void)ptr, (void)size;
}

static void default_destroy(struct df_fs *fs)
{
    (void)fs;
}

static int default_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct df_statx *out)
{
    (void)fs, (void)call, (void)where, (void)out;
    return DF_PLAIN_STAT;
}

static int default_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                           struct df_file *file, int flags, mode_t mode)
{
    struct stat st;
    int ret = (int)df_call_result(call, fs->ops->getattr(fs, call, where, &st));

    (void)file, (void)flags, (void)mode;
    if (ret < 0)
        return ret;
    return S_ISDIR(st.st_mode) ? -EOPNOTSUPP : -ENOTDIR;
}

static int default_known(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    (void)fs, (void)call, (void)where, (void)st;
    return -EAGAIN;
}

static ssize_t default_path(struct df_fs *fs, struct df_call *call, struct df_file *file, char *buf,
                            size_t size)
{
    (void)fs, (void)call, (void)file, (void)buf, (void)size;
    return -EOPNOTSUPP;
}

static ssize_t default_lend(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            void *buffer, size_t size, off_t offset, const char **at)
{
    struct iovec iov = {buffer, size};

    *at = buffer;
    return fs->ops->read(fs, call, file, &iov, 1, offset);
}

/* ---- the table ----------------------------------------------------------------------------- */

#define default_getattr NULL /* mandatory */

int df_ops_complete(struct df_ops *full, const struct df_ops *given)
{
    size_t size = given->size < sizeof(*full) ? given->size : sizeof(*full);

    if (given->version != DF_OPS_VERSION || size < offsetof(struct df_ops, getattr))
        return -EINVAL;
    memset(full, 0, sizeof(*full));
    memcpy(full, given, size);
    full->size = sizeof(*full);
#define DF_OP(name)                                                                                \
    if (!full->name)                                                                               \
        full->name = default_##name;
#include "core/ops.def"
#undef DF_OP
    return full->getattr ? 0 : -EINVAL;
}

#define DF_OP(name) +1
_Static_assert(sizeof(struct df_ops) ==
                   offsetof(struct df_ops, getattr) + (0
#include "core/ops.def"
                                                       ) * sizeof(void (*)(void)),
               "ops.def and struct df_ops list the same ops");
#undef DF_OP

/* ---- directory records --------------------------------------------------------------------- */

/* The caller of getdents may pass a buffer of any alignment, so the record is put together aside.
 */
/* struct dirent64 wherever it lies, stored field by field: one that is put together elsewhere and
 * copied is read back wider than it was written, for which a processor waits. */
struct record {
    uint64_t ino;
    int64_t off;
    uint16_t size;
    uint8_t type;
    char name[];
} __attribute__((packed, may_alias));

_Static_assert(offsetof(struct record, name) == NAME_OFFSET, "as the kernel lays it out");

bool df_dirbuf_add(struct df_dirbuf *buf, const char *name, size_t len, ino_t ino, off_t next,
                   unsigned char type)
{
    size_t size = (NAME_OFFSET + len + 1 + 7) & ~(size_t)7;
    char *start = buf->data + buf->used;
    struct record *record = (struct record *)start;

    if (size > buf->size - buf->used)
        return false;
    memset(start + size - 8, 0, 8); /* what is behind the name: one to eight bytes */
    record->ino = ino;
    record->off = next;
    record->size = (uint16_t)size;
    record->type = type;
    memcpy(record->name, name, len);
    buf->used += size;
    buf->next = next;
    return true;
}
