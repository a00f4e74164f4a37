/*
 * calls_file.c - what else can be done to an open file: lseek, copy_file_range, fsync, ftruncate,
 * fallocate, fadvise, ioctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/check.h"
#include "core/use.h"

#define COPY_BUFFER        ((size_t)128 << 10)
#define BLOCK_SIZE_OF_FUSE 4096 /* a page of x86-64 */

static ssize_t get_stat(struct df_use *use, struct df_file *file, struct stat *st)
{
    struct df_where where = {.base = file, .name = ""};

    return df_call_result(&use->call, use->fs->ops->getattr(use->fs, &use->call, &where, st));
}

static ssize_t get_size(struct df_use *use, struct df_file *file, off_t *size)
{
    struct stat st;
    ssize_t ret = get_stat(use, file, &st);

    if (ret < 0)
        return ret;
    *size = st.st_size;
    return 0;
}

/* ---- lseek --------------------------------------------------------------------------------- */

/* SEEK_DATA and SEEK_HOLE. Of a directory no file system is asked: fuse_dir_operations of the
 * kernel have generic_file_llseek(), for which it is data up to its end. */
static off_t data_or_hole(struct df_use *use, off_t offset, int whence)
{
    off_t size;
    ssize_t ret;

    if (offset < 0)
        return -ENXIO;
    if (use->file->kind != DF_KIND_DIRECTORY) {
        ret = use->fs->ops->lseek(use->fs, &use->call, use->file, offset, whence);
        return df_call_result(&use->call, ret);
    }
    if ((ret = get_size(use, use->file, &size)) < 0)
        return ret;
    return offset >= size ? -ENXIO : whence == SEEK_HOLE ? size : offset;
}

/* Under position_lock: the new position, or an error. */
static off_t new_position(struct df_use *use, off_t offset, int whence)
{
    off_t base = 0, position;
    ssize_t ret;

    switch (whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = use->file->position;
        break;
    case SEEK_END:
        if ((ret = get_size(use, use->file, &base)) < 0)
            return ret;
        break;
    default:
        return data_or_hole(use, offset, whence);
    }
    if (__builtin_add_overflow(base, offset, &position) || position < 0)
        return -EINVAL;
    return position;
}

off_t df_call_lseek(int fd, off_t offset, int whence)
{
    struct df_use use;
    off_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    if (whence < SEEK_SET || whence > SEEK_HOLE)
        return df_use_end(&use, -EINVAL);
    if (use.file->traits & (DF_FILE_STREAM | DF_FILE_NONSEEKABLE))
        return df_use_end(&use, -ESPIPE);
    df_file_lock_position(use.file);
    ret = new_position(&use, offset, whence);
    if (ret >= 0)
        use.file->position = ret;
    df_file_unlock_position(use.file);
    return df_use_end(&use, ret);
}

/* ---- copy_file_range ----------------------------------------------------------------------- */

/* One end of the copy; `out` borrows the call of `in`. */
struct end {
    struct df_file *file;
    off_t *given; /* the caller's offset, or NULL: the file's position */
    off_t offset;
};

static off_t position_of(struct df_file *file)
{
    off_t position;

    df_file_lock_position(file);
    position = file->position;
    df_file_unlock_position(file);
    return position;
}

static void move_end(struct end *end, ssize_t size)
{
    if (end->given) {
        *end->given = end->offset + size;
        return;
    }
    df_file_lock_position(end->file);
    end->file->position = end->offset + size;
    df_file_unlock_position(end->file);
}

/* generic_file_rw_checks() of the kernel. */
static int check_ends(const struct df_use *in, const struct df_use *out)
{
    if (in->file->kind == DF_KIND_DIRECTORY || out->file->kind == DF_KIND_DIRECTORY)
        return -EISDIR;
    if (in->file->kind != DF_KIND_REGULAR || out->file->kind != DF_KIND_REGULAR)
        return -EINVAL;
    if (!df_use_readable(in) || !df_use_writable(out) || (df_use_flags(out) & O_APPEND))
        return -EBADF;
    return in->call.mount == out->call.mount ? 0 : -EXDEV;
}

/* One file's ranges that overlap are EINVAL. */
static ssize_t check_overlap(struct df_use *use, const struct end *in, const struct end *out,
                             off_t size)
{
    ssize_t ret = 0;

    if (out->offset + size <= in->offset || in->offset + size <= out->offset)
        return 0;
    if ((ret = df_call_know_ino(&use->call, in->file)) == 0)
        ret = df_call_know_ino(&use->call, out->file);
    if (ret == 0 && in->file->ino == out->file->ino)
        ret = -EINVAL;
    return ret;
}

/* The source's size. Where it is not at hand and nothing here depends on it, who copies asks for
 * it: more than any. */
static ssize_t source_size(struct df_use *use, const struct end *in, const struct end *out,
                           size_t wanted, off_t *size)
{
    struct df_where source = {.base = in->file, .name = ""};
    struct df_fs *fs = use->fs;
    struct stat st;

    if (!fs->shortens || in->file->ino == out->file->ino ||
        (off_t)wanted > use->call.caller->size_limit - out->offset)
        return get_size(use, in->file, size);
    *size = fs->ops->known(fs, &use->call, &source, &st) == 0 ? st.st_size : INT64_MAX;
    return 0;
}

/* generic_copy_file_checks(), whose sums are unsigned: shortens *size to what the source has. */
static ssize_t check_copy(struct df_use *use, const struct end *in, const struct end *out,
                          size_t *size)
{
    off_t limit = use->call.caller->size_limit, in_size;
    ssize_t ret;

    if ((uint64_t)in->offset + *size < *size || (uint64_t)out->offset + *size < *size)
        return -EOVERFLOW;
    if (in->offset < 0 || out->offset < 0)
        return -EINVAL;
    if (*size > DF_RW_MAX)
        *size = DF_RW_MAX;
    if ((ret = source_size(use, in, out, *size, &in_size)) != 0)
        return ret;
    if (in->offset >= in_size)
        *size = 0;
    else if ((off_t)*size > in_size - in->offset)
        *size = (size_t)(in_size - in->offset);
    if (out->offset >= limit) /* also of nothing */
        return limit == INT64_MAX ? -EFBIG : df_caller_too_large();
    if ((off_t)*size > limit - out->offset)
        *size = (size_t)(limit - out->offset);
    return check_overlap(use, in, out, (off_t)*size);
}

/* One bufferful. */
static ssize_t copy_piece(struct df_use *use, const struct end *in, const struct end *out,
                          char *buffer, size_t done, size_t size)
{
    struct iovec iov = {buffer, size};
    off_t to = out->offset + (off_t)done;
    struct df_fs *fs = use->fs;
    ssize_t ret;

    ret = fs->ops->read(fs, &use->call, in->file, &iov, 1, in->offset + (off_t)done);
    ret = df_call_result(&use->call, ret);
    if (ret <= 0)
        return ret;
    iov.iov_len = (size_t)ret;
    return df_call_result(&use->call, fs->ops->write(fs, &use->call, out->file, &iov, 1, &to));
}

static ssize_t copy_by_buffer(struct df_use *use, const struct end *in, const struct end *out,
                              size_t size)
{
    size_t done = 0, piece = size < COPY_BUFFER ? size : COPY_BUFFER;
    char *buffer = malloc(piece);
    ssize_t ret = 1;

    if (!buffer)
        return -ENOMEM;
    while (done < size && ret > 0) {
        ret = copy_piece(use, in, out, buffer, done, size - done < piece ? size - done : piece);
        if (ret > 0)
            done += (size_t)ret;
    }
    free(buffer);
    return done > 0 ? (ssize_t)done : ret;
}

static ssize_t copy(struct df_use *use, struct end *in, struct end *out, size_t size)
{
    struct df_fs *fs = use->fs;
    ssize_t ret;

    in->offset = in->given ? *in->given : position_of(in->file);
    out->offset = out->given ? *out->given : position_of(out->file);
    ret = check_copy(use, in, out, &size);
    if (ret < 0 || size == 0)
        return ret;
    ret = fs->ops->copy_file_range(fs, &use->call, in->file, in->offset, out->file, out->offset,
                                   size, 0);
    ret = df_call_result(&use->call, ret);
    if (ret == -EOPNOTSUPP || ret == -EXDEV) /* as fuse_copy_file_range() of the kernel */
        ret = copy_by_buffer(use, in, out, size);
    if (ret > 0) {
        move_end(in, ret);
        move_end(out, ret);
    }
    return ret;
}

ssize_t df_call_copy_file_range(int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t size,
                                unsigned flags)
{
    struct df_use use_in, use_out;
    ssize_t ret;

    if (!df_fd_ours(fd_in) && !df_fd_ours(fd_out))
        return DF_NOT_OURS;
    if (!df_fd_ours(fd_in) || !df_fd_ours(fd_out))
        return flags != 0 ? -EINVAL : df_gate_refuse(DF_NR_copy_file_range, -EXDEV);
    if ((ret = df_use_begin(&use_in, fd_in)) < 0)
        return ret;
    if ((ret = df_use_begin(&use_out, fd_out)) == 0) {
        struct end in = {use_in.file, off_in, 0}, out = {use_out.file, off_out, 0};

        ret = flags != 0 ? -EINVAL : check_ends(&use_in, &use_out);
        if (ret == 0)
            ret = copy(&use_in, &in, &out, size);
        df_use_end(&use_out, 0);
    }
    return df_use_end(&use_in, ret);
}

/* ---- to storage ---------------------------------------------------------------------------- */

static int sync_file(int fd, bool datasync)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    ret = use.fs->ops->fsync(use.fs, &use.call, use.file, datasync);
    return (int)df_use_end(&use, ret);
}

int df_call_fsync(int fd)
{
    return sync_file(fd, false);
}

int df_call_fdatasync(int fd)
{
    return sync_file(fd, true);
}

/* ---- size ---------------------------------------------------------------------------------- */

/* inode_newsize_ok() of the kernel: what is larger than RLIMIT_FSIZE already may stay so, and
 * shrink.
 */
static ssize_t check_growth(struct df_use *use, off_t size)
{
    off_t now;
    ssize_t ret;

    if (DF_LIKELY(size <= use->call.caller->size_limit))
        return 0;
    ret = get_size(use, use->file, &now);
    return ret == 0 && size > now ? df_caller_too_large() : ret;
}

int df_call_ftruncate(int fd, off_t size)
{
    struct df_setattr set = {.valid = DF_SET_SIZE, .size = size};
    struct df_where where;
    struct df_use use;
    ssize_t ret = size < 0 ? -EINVAL : df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    where = df_use_itself(&use);
    if (use.file->kind != DF_KIND_REGULAR || !df_use_writable(&use))
        ret = -EINVAL;
    else if ((ret = check_growth(&use, size)) == 0)
        ret = use.fs->ops->setattr(use.fs, &use.call, &where, &set, NULL);
    return (int)df_use_end(&use, df_call_result(&use.call, ret));
}

#ifndef FALLOC_FL_WRITE_ZEROES
#define FALLOC_FL_WRITE_ZEROES 0x80 /* linux/falloc.h since 6.17 */
#endif

/* The combinations of vfs_fallocate(): one kind, some of which keep the size and some of which do
 * not. */
static int check_mode(int mode)
{
    const int change = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | FALLOC_FL_WRITE_ZEROES;
    const int kinds =
        change | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | FALLOC_FL_UNSHARE_RANGE;
    int kind = mode & kinds;
    bool keeps = mode & FALLOC_FL_KEEP_SIZE;

    if (mode & ~(kinds | FALLOC_FL_KEEP_SIZE) || (kind & (kind - 1)) != 0)
        return -EOPNOTSUPP;
    return (kind & change && keeps) || (kind == FALLOC_FL_PUNCH_HOLE && !keeps) ? -EOPNOTSUPP : 0;
}

static ssize_t check_fallocate(struct df_use *use, int mode, off_t offset, off_t length)
{
    off_t end;
    int ret;

    if (offset < 0 || length <= 0)
        return -EINVAL;
    if ((ret = check_mode(mode)) < 0)
        return ret;
    if (!df_use_writable(use))
        return -EBADF;
    if (use->file->kind != DF_KIND_REGULAR)
        return use->file->kind == DF_KIND_DIRECTORY ? -EISDIR : -ENODEV;
    if (__builtin_add_overflow(offset, length, &end))
        return -EFBIG;
    if (mode & FALLOC_FL_WRITE_ZEROES) /* of disks: no FUSE file system hears of it */
        return -EOPNOTSUPP;
    return mode & FALLOC_FL_KEEP_SIZE ? 0 : check_growth(use, end);
}

int df_call_fallocate(int fd, int mode, off_t offset, off_t length)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    ret = check_fallocate(&use, mode, offset, length);
    if (ret == 0)
        ret = use.fs->ops->fallocate(use.fs, &use.call, use.file, mode, offset, length);
    return (int)df_use_end(&use, ret);
}

/* ---- hints and controls -------------------------------------------------------------------- */

int df_call_fadvise(int fd, off_t offset, off_t length, int advice)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    if (use.file->traits & DF_FILE_STREAM)
        ret = -ESPIPE;
    else if (length < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE)
        ret = -EINVAL;
    else
        ret = use.fs->ops->advise(use.fs, &use.call, use.file, offset, length, advice);
    return (int)df_use_end(&use, ret);
}

static int set_nonblock(struct df_file *file, const int *on)
{
    if (!on)
        return -EFAULT;
    if (*on)
        atomic_fetch_or(&file->flags, O_NONBLOCK);
    else
        atomic_fetch_and(&file->flags, ~O_NONBLOCK);
    return 0;
}

/* Bytes between the position and the end: ioctl_fionread(2) of a regular file. */
static ssize_t bytes_left(struct df_use *use, int *left)
{
    off_t size;
    ssize_t ret = get_size(use, use->file, &size);

    if (ret == 0)
        *left = (int)(size - position_of(use->file));
    return ret;
}

/* FIOQSIZE: the bytes that a file takes, by its blocks of 512. */
static ssize_t bytes_taken(struct df_use *use, loff_t *taken)
{
    struct stat st;
    ssize_t ret;

    if (use->file->kind != DF_KIND_REGULAR && use->file->kind != DF_KIND_DIRECTORY)
        return -ENOTTY;
    if (!taken)
        return -EFAULT;
    if ((ret = get_stat(use, use->file, &st)) == 0)
        *taken = (loff_t)st.st_blocks * 512;
    return ret;
}

/* FIGETBSZ: the block size of a superblock, which behind FUSE is a page. */
static ssize_t block_size(int *size)
{
    if (!size)
        return -EFAULT;
    *size = BLOCK_SIZE_OF_FUSE;
    return 0;
}

/* FIBMAP: behind FUSE no block of a file lies on a device that anybody could ask. */
static ssize_t block_of_device(const struct df_use *use, int *block)
{
    if (!use->call.caller->capable)
        return -EPERM;
    if (!block)
        return -EFAULT;
    *block = 0;
    return 0;
}

/* vfs_dedupe_file_range(), as refuse_clone(). */
static ssize_t refuse_dedupe(const struct df_use *use, const void *ranges)
{
    if (!ranges)
        return -EFAULT;
    if (!df_use_readable(use))
        return -EINVAL;
    if (use->file->kind == DF_KIND_DIRECTORY)
        return -EISDIR;
    return use->file->kind == DF_KIND_REGULAR ? -EOPNOTSUPP : -EINVAL;
}

/* vfs_clone_file_range() of a file system that shares no blocks, as all are behind FUSE: its
 * checks, and nothing of it is asked. */
static ssize_t refuse_clone(struct df_use *out, int fd)
{
    struct df_use in;
    ssize_t ret = df_use_begin(&in, fd);

    if (ret < 0)
        return ret == DF_NOT_OURS ? -EXDEV : ret;
    ret = in.call.mount == out->call.mount ? check_ends(&in, out) : -EXDEV;
    return df_use_end(&in, ret < 0 ? ret : -EOPNOTSUPP);
}

/* The flags of a file (chattr(1)), in the words of FS_IOC_SETFLAGS or FS_IOC_FSSETXATTR. */
static uint32_t flags_in(unsigned long request, const void *arg)
{
    const struct fsxattr *attr = arg;

    return request == FS_IOC_FSSETXATTR ? attr->fsx_xflags : *(const uint32_t *)arg;
}

/* CAP_LINUX_IMMUTABLE: fileattr_set_prepare(), which asks the file system what they are now. */
static ssize_t check_immutable(struct df_use *use, unsigned long request, const void *arg)
{
    bool extended = request == FS_IOC_FSSETXATTR;
    uint32_t guarded =
        extended ? FS_XFLAG_IMMUTABLE | FS_XFLAG_APPEND : FS_IMMUTABLE_FL | FS_APPEND_FL;
    struct fsxattr now = {0}; /* or a word, which it begins with */
    ssize_t ret = use->fs->ops->ioctl(use->fs, &use->call, use->file,
                                      extended ? FS_IOC_FSGETXATTR : FS_IOC_GETFLAGS, &now);

    if ((ret = df_call_result(&use->call, ret)) < 0)
        return ret;
    return (flags_in(request, &now) ^ flags_in(request, arg)) & guarded ? -EPERM : 0;
}

/* vfs_fileattr_set(): file systems rely on it. */
static ssize_t set_flags(struct df_use *use, unsigned long request, void *arg)
{
    struct stat st;
    ssize_t ret;

    if (!arg)
        return -EFAULT;
    if (df_check_read_only(use->call.mount))
        return -EROFS;
    if (!use->call.caller->capable) {
        if ((ret = get_stat(use, use->file, &st)) < 0)
            return ret;
        if (st.st_uid != use->call.caller->uid)
            return -EPERM;
        if ((ret = check_immutable(use, request, arg)) < 0)
            return ret;
    }
    return use->fs->ops->ioctl(use->fs, &use->call, use->file, request, arg);
}

/* do_vfs_ioctl(): what the kernel answers before it asks the file system. */
static ssize_t run_ioctl(struct df_use *use, int fd, unsigned long request, void *arg)
{
    switch (request) {
    case FIOCLEX:
    case FIONCLEX:
        return df_fd_set_cloexec(fd, request == FIOCLEX);
    case FIONBIO:
        return set_nonblock(use->file, arg);
    case FICLONE:
        return refuse_clone(use, (int)(intptr_t)arg);
    case FICLONERANGE:
        return arg ? refuse_clone(use, (int)((const struct file_clone_range *)arg)->src_fd)
                   : -EFAULT;
    case FIDEDUPERANGE:
        return refuse_dedupe(use, arg);
    case FS_IOC_FIEMAP: /* no file system behind FUSE tells where its blocks are */
        return -EOPNOTSUPP;
    case FIGETBSZ:
        return block_size(arg);
    case FIOQSIZE:
        return bytes_taken(use, arg);
    case FS_IOC_SETFLAGS:
    case FS_IOC_FSSETXATTR:
        return set_flags(use, request, arg);
    case FIBMAP:
        if (use->file->kind == DF_KIND_REGULAR)
            return block_of_device(use, arg);
        break;
    case FIONREAD:
        if (use->file->kind == DF_KIND_REGULAR)
            return arg ? bytes_left(use, arg) : -EFAULT;
        break;
    default:
        break;
    }
    return use->fs->ops->ioctl(use->fs, &use->call, use->file, request, arg);
}

int df_call_ioctl(int fd, unsigned long request, void *arg)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return (int)ret;
    return (int)df_use_end(&use, run_ioctl(&use, fd, request, arg));
}
