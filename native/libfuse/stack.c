/*
 * stack.c - struct fuse_fs: calling one layer's operations from the layer above it.
 *
 * Each call makes the layer's user data the context's private_data, as the plugin's own functions
 * expect. A missing operation is -ENOSYS, except those that <fuse.h> says succeed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "highlevel/highlevel.h"
#include "libfuse/abi.h"

struct fuse_fs *df_abi_fs_new(const struct fuse_operations *op, size_t op_size, void *private_data)
{
    if (op_size > sizeof(*op)) {
        fuse_log(FUSE_LOG_ERR,
                 "fuse: warning: built against a later libfuse: operations that "
                 "version %s lacks are not called\n",
                 fuse_pkgversion());
        op_size = sizeof(*op);
    }
    struct fuse_fs *fs = calloc(1, sizeof(*fs));
    if (!fs) {
        df_abi_no_memory();
        return NULL;
    }
    if (op)
        memcpy(&fs->ops, op, op_size);
    fs->user_data = private_data;
    return fs;
}

void df_abi_stack_discard(struct fuse_fs *top)
{
    while (top) {
        struct fuse_fs *below = top->below;
        if (top->discard)
            top->discard(top->user_data);
        free(top);
        top = below;
    }
}

/*
 * Makes the layer's user data private_data and returns what it was. Unlike libfuse we put that back
 * afterwards: a caller may run several operations of the top layer in one context. Outside of an
 * operation there is no context, and nothing to tell the layer with.
 */
static void *enter(const struct fuse_fs *fs)
{
    struct fuse_context *context = df_highlevel_context();
    if (!context)
        return NULL;
    void *before = context->private_data;
    context->private_data = fs->user_data;
    return before;
}

static void leave(void *before)
{
    struct fuse_context *context = df_highlevel_context();
    if (context)
        context->private_data = before;
}

/* The layer's operation, or `missing` when it has none. */
#define CALL_OR(missing, fs, op, ...)                                                              \
    ({                                                                                             \
        void *before = enter(fs);                                                                  \
        __auto_type result = (fs)->ops.op ? (fs)->ops.op(__VA_ARGS__)                              \
                                          : (__typeof__((fs)->ops.op(__VA_ARGS__)))(missing);      \
        leave(before);                                                                             \
        result;                                                                                    \
    })
#define CALL(fs, op, ...) CALL_OR(-ENOSYS, fs, op, __VA_ARGS__)

/* ---- by path ---------------------------------------------------------------------------- */

int fuse_fs_getattr(struct fuse_fs *fs, const char *path, struct stat *buf,
                    struct fuse_file_info *fi)
{
    return CALL(fs, getattr, path, buf, fi);
}

int df_abi_fs_statx(struct fuse_fs *fs, const char *path, int flags, int mask, struct statx *stx,
                    struct fuse_file_info *fi)
{
    void *before = enter(fs);
    int result = fs->statx ? fs->statx(path, flags, mask, stx, fi) : -ENOSYS;
    leave(before);
    return result;
}

int fuse_fs_readlink(struct fuse_fs *fs, const char *path, char *buf, size_t len)
{
    return CALL(fs, readlink, path, buf, len);
}

int fuse_fs_mknod(struct fuse_fs *fs, const char *path, mode_t mode, dev_t rdev)
{
    return CALL(fs, mknod, path, mode, rdev);
}

int fuse_fs_mkdir(struct fuse_fs *fs, const char *path, mode_t mode)
{
    return CALL(fs, mkdir, path, mode);
}

int fuse_fs_unlink(struct fuse_fs *fs, const char *path)
{
    return CALL(fs, unlink, path);
}

int fuse_fs_rmdir(struct fuse_fs *fs, const char *path)
{
    return CALL(fs, rmdir, path);
}

int fuse_fs_symlink(struct fuse_fs *fs, const char *linkname, const char *path)
{
    return CALL(fs, symlink, linkname, path);
}

int fuse_fs_rename(struct fuse_fs *fs, const char *oldpath, const char *newpath, unsigned int flags)
{
    return CALL(fs, rename, oldpath, newpath, flags);
}

int fuse_fs_link(struct fuse_fs *fs, const char *oldpath, const char *newpath)
{
    return CALL(fs, link, oldpath, newpath);
}

int fuse_fs_chmod(struct fuse_fs *fs, const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return CALL(fs, chmod, path, mode, fi);
}

int fuse_fs_chown(struct fuse_fs *fs, const char *path, uid_t uid, gid_t gid,
                  struct fuse_file_info *fi)
{
    return CALL(fs, chown, path, uid, gid, fi);
}

int fuse_fs_truncate(struct fuse_fs *fs, const char *path, off_t size, struct fuse_file_info *fi)
{
    return CALL(fs, truncate, path, size, fi);
}

int fuse_fs_utimens(struct fuse_fs *fs, const char *path, const struct timespec tv[2],
                    struct fuse_file_info *fi)
{
    return CALL(fs, utimens, path, tv, fi);
}

int fuse_fs_access(struct fuse_fs *fs, const char *path, int mask)
{
    return CALL(fs, access, path, mask);
}

static int default_statfs(struct statvfs *buf)
{
    buf->f_namemax = 255;
    buf->f_bsize = 512;
    return 0;
}

int fuse_fs_statfs(struct fuse_fs *fs, const char *path, struct statvfs *buf)
{
    return CALL_OR(default_statfs(buf), fs, statfs, path, buf);
}

int fuse_fs_setxattr(struct fuse_fs *fs, const char *path, const char *name, const char *value,
                     size_t size, int flags)
{
    return CALL(fs, setxattr, path, name, value, size, flags);
}

int fuse_fs_getxattr(struct fuse_fs *fs, const char *path, const char *name, char *value,
                     size_t size)
{
    return CALL(fs, getxattr, path, name, value, size);
}

int fuse_fs_listxattr(struct fuse_fs *fs, const char *path, char *list, size_t size)
{
    return CALL(fs, listxattr, path, list, size);
}

int fuse_fs_removexattr(struct fuse_fs *fs, const char *path, const char *name)
{
    return CALL(fs, removexattr, path, name);
}

int fuse_fs_bmap(struct fuse_fs *fs, const char *path, size_t blocksize, uint64_t *idx)
{
    return CALL(fs, bmap, path, blocksize, idx);
}

/* ---- open files ------------------------------------------------------------------------- */

int fuse_fs_create(struct fuse_fs *fs, const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return CALL(fs, create, path, mode, fi);
}

int fuse_fs_open(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi)
{
    return CALL_OR(0, fs, open, path, fi);
}

int fuse_fs_flush(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi)
{
    return CALL(fs, flush, path, fi);
}

int fuse_fs_release(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi)
{
    return CALL_OR(0, fs, release, path, fi);
}

int fuse_fs_fsync(struct fuse_fs *fs, const char *path, int datasync, struct fuse_file_info *fi)
{
    return CALL(fs, fsync, path, datasync, fi);
}

int fuse_fs_lock(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi, int cmd,
                 struct flock *lock)
{
    return CALL(fs, lock, path, fi, cmd, lock);
}

int fuse_fs_flock(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi, int op)
{
    return CALL(fs, flock, path, fi, op);
}

int fuse_fs_ioctl(struct fuse_fs *fs, const char *path, unsigned int cmd, void *arg,
                  struct fuse_file_info *fi, unsigned int flags, void *data)
{
    return CALL(fs, ioctl, path, cmd, arg, fi, flags, data);
}

int fuse_fs_poll(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi,
                 struct fuse_pollhandle *ph, unsigned *reventsp)
{
    return CALL(fs, poll, path, fi, ph, reventsp);
}

int fuse_fs_fallocate(struct fuse_fs *fs, const char *path, int mode, off_t offset, off_t length,
                      struct fuse_file_info *fi)
{
    return CALL(fs, fallocate, path, mode, offset, length, fi);
}

ssize_t fuse_fs_copy_file_range(struct fuse_fs *fs, const char *path_in,
                                struct fuse_file_info *fi_in, off_t off_in, const char *path_out,
                                struct fuse_file_info *fi_out, off_t off_out, size_t len, int flags)
{
    return CALL(fs, copy_file_range, path_in, fi_in, off_in, path_out, fi_out, off_out, len, flags);
}

off_t fuse_fs_lseek(struct fuse_fs *fs, const char *path, off_t off, int whence,
                    struct fuse_file_info *fi)
{
    return CALL(fs, lseek, path, off, whence, fi);
}

/* ---- directories ------------------------------------------------------------------------ */

int fuse_fs_opendir(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi)
{
    return CALL_OR(0, fs, opendir, path, fi);
}

int fuse_fs_readdir(struct fuse_fs *fs, const char *path, void *buf, fuse_fill_dir_t filler,
                    off_t off, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    return CALL(fs, readdir, path, buf, filler, off, fi, flags);
}

int fuse_fs_fsyncdir(struct fuse_fs *fs, const char *path, int datasync, struct fuse_file_info *fi)
{
    return CALL(fs, fsyncdir, path, datasync, fi);
}

int fuse_fs_releasedir(struct fuse_fs *fs, const char *path, struct fuse_file_info *fi)
{
    return CALL_OR(0, fs, releasedir, path, fi);
}

/* ---- data: a layer may have the plain operation, the one with buffers, or both ------------ */

/* A vector of one buffer in memory, both on the heap, as read_buf() hands them out. */
static struct fuse_bufvec *new_vector(size_t size)
{
    struct fuse_bufvec *vector = malloc(sizeof(*vector));
    if (!vector)
        return NULL;
    *vector = FUSE_BUFVEC_INIT(size);
    vector->buf[0].mem = malloc(size > 0 ? size : 1);
    if (!vector->buf[0].mem) {
        free(vector);
        return NULL;
    }
    return vector;
}

static void free_vector(struct fuse_bufvec *vector)
{
    if (!vector)
        return;
    for (size_t i = 0; i < vector->count; i++)
        if (!(vector->buf[i].flags & FUSE_BUF_IS_FD))
            free(vector->buf[i].mem);
    free(vector);
}

/* For a layer that has read() only. */
static int read_new_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec **bufp,
                        size_t size, off_t off, struct fuse_file_info *fi)
{
    struct fuse_bufvec *vector = new_vector(size);
    if (!vector)
        return -ENOMEM;
    int count = CALL(fs, read, path, vector->buf[0].mem, size, off, fi);
    if (count < 0) {
        free_vector(vector);
        return count;
    }
    vector->buf[0].size = (size_t)count;
    *bufp = vector;
    return 0;
}

int df_abi_fs_read_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec **bufp, size_t size,
                       off_t off, struct fuse_file_info *fi)
{
    if (!fs->ops.read_buf)
        return read_new_buf(fs, path, bufp, size, off, fi);
    int result = CALL(fs, read_buf, path, bufp, size, off, fi);
    return result < 0 ? result : 0;
}

int fuse_fs_read(struct fuse_fs *fs, const char *path, char *buf, size_t size, off_t off,
                 struct fuse_file_info *fi)
{
    if (!fs->ops.read_buf)
        return CALL(fs, read, path, buf, size, off, fi);
    struct fuse_bufvec *vector = NULL;
    int result = CALL(fs, read_buf, path, &vector, size, off, fi);
    if (result == 0) {
        struct fuse_bufvec to = FUSE_BUFVEC_INIT(size);
        to.buf[0].mem = buf;
        result = (int)df_abi_buf_copy(&to, vector, 0);
    }
    free_vector(vector);
    return result;
}

/* For a layer that has write() only, which takes plain memory. */
static int write_flat(struct fuse_fs *fs, const char *path, struct fuse_bufvec *buf, off_t off,
                      struct fuse_file_info *fi)
{
    if (buf->count == 1 && !(buf->buf[0].flags & FUSE_BUF_IS_FD))
        return CALL(fs, write, path, (char *)buf->buf[0].mem + buf->off,
                    buf->buf[0].size - buf->off, off, fi);
    struct fuse_bufvec *flat = new_vector(df_abi_buf_size(buf));
    if (!flat)
        return -ENOMEM;
    ssize_t count = df_abi_buf_copy(flat, buf, 0);
    if (count > 0)
        count = CALL(fs, write, path, flat->buf[0].mem, (size_t)count, off, fi);
    free_vector(flat);
    return (int)count;
}

int df_abi_fs_write_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec *buf, off_t off,
                        struct fuse_file_info *fi)
{
    return fs->ops.write_buf ? CALL(fs, write_buf, path, buf, off, fi)
                             : write_flat(fs, path, buf, off, fi);
}

int fuse_fs_write(struct fuse_fs *fs, const char *path, const char *buf, size_t size, off_t off,
                  struct fuse_file_info *fi)
{
    struct fuse_bufvec vector = FUSE_BUFVEC_INIT(size);
    vector.buf[0].mem = (void *)buf;
    return df_abi_fs_write_buf(fs, path, &vector, off, fi);
}

/* ---- life ------------------------------------------------------------------------------- */

void df_abi_fs_init(struct fuse_fs *fs, struct fuse_conn_info *conn, struct fuse_config *cfg)
{
    if (!fs->ops.write_buf)
        conn->want &= ~FUSE_CAP_SPLICE_READ;
    if (!fs->ops.lock)
        conn->want &= ~FUSE_CAP_POSIX_LOCKS;
    if (!fs->ops.flock)
        conn->want &= ~FUSE_CAP_FLOCK_LOCKS;
    if (fs->ops.init)
        fs->user_data = CALL_OR(NULL, fs, init, conn, cfg);
}

void fuse_fs_destroy(struct fuse_fs *fs)
{
    void *before = enter(fs);
    if (fs->ops.destroy)
        fs->ops.destroy(fs->user_data);
    leave(before);
    free(fs);
}
