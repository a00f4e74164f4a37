/*
 * files.c - passthrough's operations on open files and directories. The handle of both is a
 * descriptor of the source.
 *
 * There is no flush: what a close(2) of the source would report (delayed writes of a network file
 * system) comes with fsync. POSIX locks are kept by whoever calls, as for every FUSE file system
 * without a lock operation; flock(2) is passed on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "passthrough.h"

enum { DIRECTORY_BUFFER = 32 * 1024 }; /* bytes of records read at a time */

static int keep(struct fuse_file_info *fi, int fd)
{
    if (fd == -1)
        return -errno;
    fi->fh = (uint64_t)fd;
    return 0;
}

/* ---- opening ---------------------------------------------------------------------------- */

static int do_open(const char *path, struct fuse_file_info *fi)
{
    return keep(fi,
                openat(passthrough.root, relative(path), fi->flags | O_NOFOLLOW | O_CLOEXEC));
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    int flags = fi->flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(passthrough.root, relative(path), flags, mode);
    if (fd == -1)
        return -errno;
    int error = settle(path, fd, mode);
    if (error) {
        close(fd);
        return error;
    }
    return keep(fi, fd);
}

static int do_opendir(const char *path, struct fuse_file_info *fi)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    return keep(fi, openat(passthrough.root, relative(path), flags));
}

static int do_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    return result(close((int)fi->fh));
}

/* ---- data ------------------------------------------------------------------------------- */

static int do_read(const char *path, char *buf, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    (void)path;
    ssize_t got = pread((int)fi->fh, buf, size, offset);
    return got == -1 ? -errno : (int)got;
}

static int do_write(const char *path, const char *buf, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)path;
    ssize_t put = pwrite((int)fi->fh, buf, size, offset);
    return put == -1 ? -errno : (int)put;
}

/* The descriptor itself is the answer, and the data never come here. */
static int do_read_buf(const char *path, struct fuse_bufvec **out, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)path;
    struct fuse_bufvec *vector = malloc(sizeof(*vector));
    if (!vector)
        return -ENOMEM;
    *vector = FUSE_BUFVEC_INIT(size);
    vector->buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    vector->buf[0].fd = (int)fi->fh;
    vector->buf[0].pos = offset;
    *out = vector;
    return 0;
}

static int do_write_buf(const char *path, struct fuse_bufvec *from, off_t offset,
                        struct fuse_file_info *fi)
{
    (void)path;
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(from));
    to.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    to.buf[0].fd = (int)fi->fh;
    to.buf[0].pos = offset;
    return (int)fuse_buf_copy(&to, from, FUSE_BUF_SPLICE_NONBLOCK);
}

static ssize_t do_copy_file_range(const char *path_in, struct fuse_file_info *in, off_t offset_in,
                                  const char *path_out, struct fuse_file_info *out,
                                  off_t offset_out, size_t size, int flags)
{
    (void)path_in;
    (void)path_out;
    ssize_t copied = copy_file_range((int)in->fh, &offset_in, (int)out->fh, &offset_out, size,
                                     (unsigned)flags);
    return copied == -1 ? -errno : copied;
}

static off_t do_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
    (void)path;
    off_t found = lseek((int)fi->fh, offset, whence);
    return found == -1 ? -errno : found;
}

static int do_fallocate(const char *path, int mode, off_t offset, off_t length,
                        struct fuse_file_info *fi)
{
    (void)path;
    return result(fallocate((int)fi->fh, mode, offset, length));
}

static int do_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)path;
    return result(datasync ? fdatasync((int)fi->fh) : fsync((int)fi->fh));
}

static int do_flock(const char *path, struct fuse_file_info *fi, int operation)
{
    (void)path;
    return result(flock((int)fi->fh, operation));
}

/* ---- directories ------------------------------------------------------------------------ */

/* Tells one entry, with attributes where they are wanted. Returns true when there is no room. */
static bool tell(int fd, const struct dirent64 *entry, void *buf, fuse_fill_dir_t fill, bool plus)
{
    struct stat st = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
    enum fuse_fill_dir_flags flags = 0;
    if (plus && fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        flags = FUSE_FILL_DIR_PLUS;
    return fill(buf, entry->d_name, &st, entry->d_off, flags) != 0;
}

/* Offsets are the source's own, so a listing survives whatever is made and removed meanwhile. */
static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path;
    int fd = (int)fi->fh;
    _Alignas(struct dirent64) char records[DIRECTORY_BUFFER];
    if (lseek(fd, offset, SEEK_SET) == -1)
        return -errno;
    for (;;) {
        long got = syscall(SYS_getdents64, fd, records, sizeof(records));
        if (got <= 0)
            return got == -1 ? -errno : 0;
        for (long at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(records + at);
            if (tell(fd, entry, buf, fill, flags & FUSE_READDIR_PLUS))
                return 0;
            at += entry->d_reclen;
        }
    }
}

void add_file_operations(struct fuse_operations *ops)
{
    ops->open = do_open;
    ops->create = do_create;
    ops->opendir = do_opendir;
    ops->release = do_release;
    ops->releasedir = do_release;
    ops->read = do_read;
    ops->write = do_write;
    ops->read_buf = do_read_buf;
    ops->write_buf = do_write_buf;
    ops->copy_file_range = do_copy_file_range;
    ops->lseek = do_lseek;
    ops->fallocate = do_fallocate;
    ops->fsync = do_fsync;
    ops->fsyncdir = do_fsync;
    ops->flock = do_flock;
    ops->readdir = do_readdir;
}
