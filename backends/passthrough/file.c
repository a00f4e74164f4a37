/*
 * file.c - open files: a file handle is a descriptor of the backing file.
 */
#include "passthrough.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys.h"

#define IOV_AT_ONCE 64

/* Appending is decided by each write (RWF_APPEND): F_SETFL may change it while the file is open.
 * Names were resolved by whoever calls; a symlink that has come up since is not followed. */
static int backing_flags(int flags)
{
    return (flags & ~O_APPEND) | O_CLOEXEC | O_NOFOLLOW;
}

/* ---- open and close ---- */

int passthrough_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    const struct passthrough *fs = passthrough_here();
    int fd = openat(fs->root, passthrough_relative(path), backing_flags(fi->flags) | O_CREAT,
                    passthrough_mode(fs, mode));

    if (fd < 0)
        return -errno;
    int result = passthrough_adopt(fs, path, mode);
    if (result) {
        unlinkat(fs->root, passthrough_relative(path), 0);
        close(fd);
        return result;
    }
    fi->fh = (uint64_t)fd;
    return 0;
}

int passthrough_open(const char *path, struct fuse_file_info *fi)
{
    const struct passthrough *fs = passthrough_here();
    int fd = sys_openat(fs->root, passthrough_relative(path), backing_flags(fi->flags));

    if (fd < 0)
        return fd;
    if (fi->flags & O_TRUNC)
        passthrough_strip(fs, fd);
    fi->fh = (uint64_t)fd;
    return 0;
}

/* Some file systems report at close what went wrong with earlier writes (close(2), NFS): a copy is
 * closed for them. The others never need to be asked again. */
int passthrough_flush(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    if (!passthrough_here()->flushes)
        return -ENOSYS;
    int copy = fcntl((int)fi->fh, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : passthrough_result(close(copy));
}

int passthrough_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    sys_close((int)fi->fh);
    return 0;
}

int passthrough_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)path;
    return passthrough_result(datasync ? fdatasync((int)fi->fh) : fsync((int)fi->fh));
}

int passthrough_flock(const char *path, struct fuse_file_info *fi, int operation)
{
    (void)path;
    return passthrough_result(flock((int)fi->fh, operation));
}

/* ---- data ---- */

int passthrough_read(const char *path, char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path;
    return (int)sys_pread((int)fi->fh, buf, size, offset);
}

/* Says where the bytes are; who asked moves them from there, by splice(2) to the kernel. */
int passthrough_read_buf(const char *path, struct fuse_bufvec **out, size_t size, off_t offset,
                         struct fuse_file_info *fi)
{
    struct fuse_bufvec *vec = malloc(sizeof(*vec));

    (void)path;
    if (!vec)
        return -ENOMEM;
    *vec = FUSE_BUFVEC_INIT(size);
    vec->buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    vec->buf[0].fd = (int)fi->fh;
    vec->buf[0].pos = offset;
    *out = vec;
    return 0;
}

static ssize_t write_iov(const struct fuse_file_info *fi, const struct iovec *iov, int count,
                         off_t offset)
{
    passthrough_strip(passthrough_here(), (int)fi->fh);
    ssize_t put = pwritev2((int)fi->fh, iov, count, offset, fi->flags & O_APPEND ? RWF_APPEND : 0);
    return put < 0 ? -errno : put;
}

int passthrough_write(const char *path, const char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)path;
    if (!(fi->flags & O_APPEND)) {
        passthrough_strip(passthrough_here(), (int)fi->fh);
        return (int)sys_pwrite((int)fi->fh, buf, size, offset);
    }
    struct iovec iov = {.iov_base = (void *)buf, .iov_len = size};
    return (int)write_iov(fi, &iov, 1, offset);
}

static bool is_memory(const struct fuse_bufvec *vec)
{
    for (size_t i = vec->idx; i < vec->count; i++) {
        if (vec->buf[i].flags & FUSE_BUF_IS_FD)
            return false;
    }
    return vec->count - vec->idx <= IOV_AT_ONCE;
}

static int write_memory(const struct fuse_bufvec *vec, off_t offset,
                        const struct fuse_file_info *fi)
{
    struct iovec iov[IOV_AT_ONCE];
    size_t skip = vec->off;
    int count = 0;

    for (size_t i = vec->idx; i < vec->count; i++, skip = 0)
        iov[count++] = (struct iovec){.iov_base = (char *)vec->buf[i].mem + skip,
                                      .iov_len = vec->buf[i].size - skip};
    return (int)write_iov(fi, iov, count, offset);
}

/* Bytes that come by a descriptor cannot be appended where they are: they take a way through
 * memory. */
static int append_copy(struct fuse_bufvec *vec, off_t offset, const struct fuse_file_info *fi)
{
    size_t size = fuse_buf_size(vec);
    struct fuse_bufvec copy = FUSE_BUFVEC_INIT(size);
    int result = -ENOMEM;

    copy.buf[0].mem = malloc(size);
    if (copy.buf[0].mem)
        result = (int)fuse_buf_copy(&copy, vec, 0);
    if (result > 0) {
        struct iovec iov = {.iov_base = copy.buf[0].mem, .iov_len = (size_t)result};
        result = (int)write_iov(fi, &iov, 1, offset);
    }
    free(copy.buf[0].mem);
    return result;
}

int passthrough_write_buf(const char *path, struct fuse_bufvec *buf, off_t offset,
                          struct fuse_file_info *fi)
{
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(buf));

    (void)path;
    if (is_memory(buf))
        return write_memory(buf, offset, fi);
    if (fi->flags & O_APPEND)
        return append_copy(buf, offset, fi);
    passthrough_strip(passthrough_here(), (int)fi->fh);
    to.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    to.buf[0].fd = (int)fi->fh;
    to.buf[0].pos = offset;
    return (int)fuse_buf_copy(&to, buf, FUSE_BUF_SPLICE_NONBLOCK);
}

int passthrough_fallocate(const char *path, int mode, off_t offset, off_t length,
                          struct fuse_file_info *fi)
{
    (void)path;
    passthrough_strip(passthrough_here(), (int)fi->fh);
    return passthrough_result(fallocate((int)fi->fh, mode, offset, length));
}

/* Whose file is written to loses its set-id bits, but not by a copy from behind the end. */
static void strip_for_copy(int in, off_t offset, int out)
{
    const struct passthrough *fs = passthrough_here();
    struct stat st;

    if (passthrough_strips(fs) && fstat(in, &st) == 0 && offset < st.st_size)
        passthrough_strip(fs, out);
}

ssize_t passthrough_copy_file_range(const char *path_in, struct fuse_file_info *fi_in,
                                    off_t offset_in, const char *path_out,
                                    struct fuse_file_info *fi_out, off_t offset_out, size_t size,
                                    int flags)
{
    (void)path_in, (void)path_out;
    strip_for_copy((int)fi_in->fh, offset_in, (int)fi_out->fh);
    ssize_t copied = copy_file_range((int)fi_in->fh, &offset_in, (int)fi_out->fh, &offset_out, size,
                                     (unsigned)flags);
    return copied < 0 ? -errno : copied;
}

off_t passthrough_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
    (void)path;
    off_t found = lseek((int)fi->fh, offset, whence);
    return found < 0 ? -errno : found;
}
