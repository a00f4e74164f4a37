/*
 * ram_table.h - a file system of libfuse's high-level API in one table, for tests of the path lane:
 * counts every operation, fails the one it is told to, and keeps what it was shown last.
 *
 * Each test program includes it once; a test makes a rig (the table, mounted through df_ops without
 * a core) and talks to the host through the rig_* helpers.
 */
#ifndef DF_TEST_RAM_TABLE_H
#define DF_TEST_RAM_TABLE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/call.h"
#include "core/file.h"
#include "core/mount.h"
#include "highlevel/handle.h"
#include "highlevel/highlevel.h"
#include "host/pollhandle.h"

#define RAM_NAMES   64
#define RAM_HANDLES 64

enum ram_op {
    RAM_GETATTR,
    RAM_READLINK,
    RAM_MKNOD,
    RAM_MKDIR,
    RAM_UNLINK,
    RAM_RMDIR,
    RAM_SYMLINK,
    RAM_RENAME,
    RAM_LINK,
    RAM_CHMOD,
    RAM_CHOWN,
    RAM_TRUNCATE,
    RAM_OPEN,
    RAM_READ,
    RAM_WRITE,
    RAM_STATFS,
    RAM_FLUSH,
    RAM_RELEASE,
    RAM_FSYNC,
    RAM_SETXATTR,
    RAM_GETXATTR,
    RAM_LISTXATTR,
    RAM_REMOVEXATTR,
    RAM_OPENDIR,
    RAM_READDIR,
    RAM_RELEASEDIR,
    RAM_FSYNCDIR,
    RAM_ACCESS,
    RAM_CREATE,
    RAM_LOCK,
    RAM_UTIMENS,
    RAM_IOCTL,
    RAM_POLL,
    RAM_WRITE_BUF,
    RAM_READ_BUF,
    RAM_FLOCK,
    RAM_FALLOCATE,
    RAM_COPY,
    RAM_LSEEK,
    RAM_OPS,
};

struct ram_inode {
    struct stat st;
    char *data; /* st_size bytes, or a link's target */
    char xattr[64];
    size_t xattr_size;
};

struct ram_name {
    char path[256]; /* "": free */
    struct ram_inode *inode;
};

struct ram {
    pthread_mutex_t lock; /* the table; counts are read when all is quiet */
    struct ram_name names[RAM_NAMES];
    struct ram_inode *handles[RAM_HANDLES]; /* fh - 1 */
    ino_t last_ino;
    unsigned count[RAM_OPS];
    unsigned total;              /* operations in all */
    unsigned fail_at;            /* the n-th from now on fails (0: none) */
    int fail_error[RAM_OPS];     /* each call of this op fails with it */
    struct fuse_file_info shown; /* to the last operation that had one */
    bool shown_path;             /* it had a path, too */
    char last_path[256];         /* of the last operation */
    struct fuse_context context; /* of the last operation */
    bool nested;                 /* the context was missing once */
    bool busy, overlapped;       /* an operation met another one */
    bool yields;                 /* give others a chance to overlap */
    bool whole;                  /* readdir without offsets */
    bool plus;                   /* readdir gives attributes */
    bool bare;                   /* and without FUSE_READDIR_PLUS nothing but names */
    struct fuse_pollhandle *poll_handle;
    unsigned ready;          /* poll's answer */
    struct flock asked_lock; /* of the last lock operation */
    struct flock conflict;   /* that F_GETLK answers */
};

static struct ram *ram_here; /* the table of the running test */

/* ---- the table ---- */

static int ram_enter(enum ram_op op, const char *path, const struct fuse_file_info *fi)
{
    struct ram *ram = ram_here;
    struct fuse_context *context = df_highlevel_context();

    pthread_mutex_lock(&ram->lock);
    if (ram->busy)
        ram->overlapped = true;
    if (ram->yields) { /* on purpose outside of the lock, to see who else comes */
        ram->busy = true;
        pthread_mutex_unlock(&ram->lock);
        sched_yield();
        pthread_mutex_lock(&ram->lock);
        ram->busy = false;
    }
    ram->count[op]++;
    ram->total++;
    if (context)
        ram->context = *context;
    else
        ram->nested = true;
    snprintf(ram->last_path, sizeof(ram->last_path), "%s", path ? path : "(null)");
    if (fi) {
        ram->shown = *fi;
        ram->shown_path = path != NULL;
    }
    if (ram->fail_error[op])
        return ram->fail_error[op];
    if (ram->fail_at && --ram->fail_at == 0)
        return -EIO;
    return 0;
}

static int ram_leave(int result)
{
    pthread_mutex_unlock(&ram_here->lock);
    return result;
}

#define RAM_ENTER(op, path, fi)                                                                    \
    do {                                                                                           \
        int injected_ = ram_enter(op, path, fi);                                                   \
        if (injected_)                                                                             \
            return ram_leave(injected_);                                                           \
    } while (0)

static struct ram_name *ram_find(const char *path)
{
    for (int i = 0; i < RAM_NAMES; i++) {
        if (ram_here->names[i].path[0] && strcmp(ram_here->names[i].path, path) == 0)
            return &ram_here->names[i];
    }
    return NULL;
}

static void ram_drop(struct ram_inode *inode)
{
    for (int i = 0; i < RAM_HANDLES; i++) {
        if (ram_here->handles[i] == inode)
            return;
    }
    if (inode->st.st_nlink)
        return;
    free(inode->data);
    free(inode);
}

static struct ram_inode *ram_object(const char *path, const struct fuse_file_info *fi)
{
    if (fi && fi->fh)
        return ram_here->handles[fi->fh - 1];
    struct ram_name *name = path ? ram_find(path) : NULL;
    return name ? name->inode : NULL;
}

static struct ram_name *ram_add(const char *path, mode_t mode)
{
    for (int i = 0; i < RAM_NAMES; i++) {
        struct ram_name *name = &ram_here->names[i];
        if (name->path[0])
            continue;
        snprintf(name->path, sizeof(name->path), "%s", path);
        name->inode = calloc(1, sizeof(*name->inode));
        name->inode->st.st_mode = mode;
        name->inode->st.st_nlink = S_ISDIR(mode) ? 2 : 1;
        name->inode->st.st_ino = ++ram_here->last_ino;
        return name;
    }
    return NULL;
}

static bool ram_is_below(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && path[len] == '/';
}

/* ---- the operations ---- */

static int ram_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_GETATTR, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    *st = inode->st;
    return ram_leave(0);
}

static int ram_readlink(const char *path, char *buf, size_t size)
{
    RAM_ENTER(RAM_READLINK, path, NULL);
    struct ram_inode *inode = ram_object(path, NULL);
    if (!inode || !S_ISLNK(inode->st.st_mode))
        return ram_leave(-EINVAL);
    snprintf(buf, size, "%s", inode->data);
    return ram_leave(0);
}

static int ram_make(const char *path, mode_t mode, const char *data)
{
    if (ram_find(path))
        return -EEXIST;
    struct ram_name *name = ram_add(path, mode);
    if (!name)
        return -ENOSPC;
    if (data)
        name->inode->data = strdup(data);
    return 0;
}

static int ram_mknod(const char *path, mode_t mode, dev_t rdev)
{
    (void)rdev;
    RAM_ENTER(RAM_MKNOD, path, NULL);
    return ram_leave(ram_make(path, mode, NULL));
}

static int ram_mkdir(const char *path, mode_t mode)
{
    RAM_ENTER(RAM_MKDIR, path, NULL);
    return ram_leave(ram_make(path, mode | S_IFDIR, NULL));
}

static int ram_symlink(const char *target, const char *path)
{
    RAM_ENTER(RAM_SYMLINK, path, NULL);
    return ram_leave(ram_make(path, S_IFLNK | 0777, target));
}

static void ram_remove(struct ram_name *name)
{
    struct ram_inode *inode = name->inode;
    inode->st.st_nlink -= S_ISDIR(inode->st.st_mode) ? 2 : 1;
    name->path[0] = '\0';
    name->inode = NULL;
    ram_drop(inode);
}

static int ram_unlink(const char *path)
{
    RAM_ENTER(RAM_UNLINK, path, NULL);
    struct ram_name *name = ram_find(path);
    if (!name)
        return ram_leave(-ENOENT);
    ram_remove(name);
    return ram_leave(0);
}

static int ram_rmdir(const char *path)
{
    RAM_ENTER(RAM_RMDIR, path, NULL);
    struct ram_name *name = ram_find(path);
    if (!name)
        return ram_leave(-ENOENT);
    for (int i = 0; i < RAM_NAMES; i++) {
        if (ram_is_below(ram_here->names[i].path, path))
            return ram_leave(-ENOTEMPTY);
    }
    ram_remove(name);
    return ram_leave(0);
}

static void ram_move(const char *from, const char *to)
{
    size_t len = strlen(from);

    for (int i = 0; i < RAM_NAMES; i++) {
        char *path = ram_here->names[i].path, moved[600];
        if (strcmp(path, from) != 0 && !ram_is_below(path, from))
            continue;
        snprintf(moved, sizeof(moved), "%s%s", to, path + len);
        strcpy(path, moved);
    }
}

static int ram_rename(const char *from, const char *to, unsigned flags)
{
    RAM_ENTER(RAM_RENAME, from, NULL);
    struct ram_name *target = ram_find(to);
    if (!ram_find(from))
        return ram_leave(-ENOENT);
    if (flags & RENAME_EXCHANGE) {
        ram_move(from, "/#");
        ram_move(to, from);
        ram_move("/#", to);
        return ram_leave(0);
    }
    if (target)
        ram_remove(target);
    ram_move(from, to);
    return ram_leave(0);
}

static int ram_link(const char *from, const char *to)
{
    RAM_ENTER(RAM_LINK, from, NULL);
    struct ram_name *source = ram_find(from);
    struct ram_name *name = source ? ram_add(to, source->inode->st.st_mode) : NULL;
    if (!name)
        return ram_leave(source ? -ENOSPC : -ENOENT);
    free(name->inode);
    name->inode = source->inode;
    name->inode->st.st_nlink++;
    return ram_leave(0);
}

static int ram_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_CHMOD, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    inode->st.st_mode = (inode->st.st_mode & S_IFMT) | (mode & 07777);
    return ram_leave(0);
}

static int ram_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_CHOWN, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    if (uid != (uid_t)-1)
        inode->st.st_uid = uid;
    if (gid != (gid_t)-1)
        inode->st.st_gid = gid;
    return ram_leave(0);
}

static void ram_resize(struct ram_inode *inode, off_t size)
{
    if (size > inode->st.st_size) {
        inode->data = realloc(inode->data, (size_t)size);
        memset(inode->data + inode->st.st_size, 0, (size_t)(size - inode->st.st_size));
    }
    inode->st.st_size = size;
}

static int ram_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_TRUNCATE, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    ram_resize(inode, size);
    return ram_leave(0);
}

static int ram_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_UTIMENS, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    if (times[0].tv_nsec != UTIME_OMIT)
        inode->st.st_atim = times[0];
    if (times[1].tv_nsec != UTIME_OMIT)
        inode->st.st_mtim = times[1];
    return ram_leave(0);
}

static int ram_open_object(struct ram_inode *inode, struct fuse_file_info *fi)
{
    if (!inode)
        return -ENOENT;
    for (unsigned i = 0; i < RAM_HANDLES; i++) {
        if (ram_here->handles[i])
            continue;
        ram_here->handles[i] = inode;
        fi->fh = i + 1;
        return 0;
    }
    return -EMFILE;
}

static int ram_open(const char *path, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_OPEN, path, fi);
    struct ram_inode *inode = ram_object(path, NULL);
    int result = ram_open_object(inode, fi);
    if (result == 0 && fi->flags & O_TRUNC)
        ram_resize(inode, 0);
    return ram_leave(result);
}

static int ram_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_CREATE, path, fi);
    int result = ram_make(path, mode, NULL);
    if (result == 0)
        result = ram_open_object(ram_object(path, NULL), fi);
    return ram_leave(result);
}

static int ram_opendir(const char *path, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_OPENDIR, path, fi);
    return ram_leave(ram_open_object(ram_object(path, NULL), fi));
}

static int ram_close(struct fuse_file_info *fi)
{
    struct ram_inode *inode = fi->fh ? ram_here->handles[fi->fh - 1] : NULL;
    if (inode) {
        ram_here->handles[fi->fh - 1] = NULL;
        ram_drop(inode);
    }
    return 0;
}

static int ram_release(const char *path, struct fuse_file_info *fi)
{
    ram_enter(RAM_RELEASE, path, fi);
    return ram_leave(ram_close(fi)); /* whatever it says, nobody comes back */
}

static int ram_releasedir(const char *path, struct fuse_file_info *fi)
{
    ram_enter(RAM_RELEASEDIR, path, fi);
    return ram_leave(ram_close(fi)); /* whatever it says, nobody comes back */
}

static int ram_copy_out(const struct ram_inode *inode, char *buf, size_t size, off_t offset)
{
    if (offset >= inode->st.st_size)
        return 0;
    if ((off_t)size > inode->st.st_size - offset)
        size = (size_t)(inode->st.st_size - offset);
    memcpy(buf, inode->data + offset, size);
    return (int)size;
}

static int ram_read(const char *path, char *buf, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_READ, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    fi->fh = 12345; /* must not persist */
    return ram_leave(inode ? ram_copy_out(inode, buf, size, offset) : -ENOENT);
}

static int ram_read_buf(const char *path, struct fuse_bufvec **out, size_t size, off_t offset,
                        struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_READ_BUF, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    struct fuse_bufvec *vec = malloc(sizeof(*vec));
    *vec = FUSE_BUFVEC_INIT(size);
    vec->buf[0].mem = malloc(size);
    vec->buf[0].size = (size_t)ram_copy_out(inode, vec->buf[0].mem, size, offset);
    *out = vec;
    return ram_leave(0);
}

static void ram_copy_in(struct ram_inode *inode, const char *buf, size_t size, off_t offset)
{
    if (offset + (off_t)size > inode->st.st_size)
        ram_resize(inode, offset + (off_t)size);
    memcpy(inode->data + offset, buf, size);
}

static int ram_write(const char *path, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_WRITE, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (!inode)
        return ram_leave(-ENOENT);
    ram_copy_in(inode, buf, size, offset);
    return ram_leave((int)size);
}

static int ram_write_buf(const char *path, struct fuse_bufvec *vec, off_t offset,
                         struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_WRITE_BUF, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    size_t done = 0;
    for (size_t i = 0; i < vec->count; i++) {
        ram_copy_in(inode, vec->buf[i].mem, vec->buf[i].size, offset + (off_t)done);
        done += vec->buf[i].size;
    }
    return ram_leave((int)done);
}

static int ram_statfs(const char *path, struct statvfs *st)
{
    RAM_ENTER(RAM_STATFS, path, NULL);
    st->f_bsize = 4096;
    st->f_blocks = 77;
    return ram_leave(0);
}

static int ram_flush(const char *path, struct fuse_file_info *fi)
{
    RAM_ENTER(RAM_FLUSH, path, fi);
    return ram_leave(0);
}

static int ram_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    RAM_ENTER(RAM_FSYNC, path, fi);
    return ram_leave(0);
}

static int ram_fsyncdir(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    RAM_ENTER(RAM_FSYNCDIR, path, fi);
    return ram_leave(0);
}

static int ram_setxattr(const char *path, const char *name, const char *value, size_t size,
                        int flags)
{
    (void)name, (void)flags;
    RAM_ENTER(RAM_SETXATTR, path, NULL);
    struct ram_inode *inode = ram_object(path, NULL);
    if (!inode || size > sizeof(inode->xattr))
        return ram_leave(inode ? -ENOSPC : -ENOENT);
    memcpy(inode->xattr, value, size);
    inode->xattr_size = size;
    return ram_leave(0);
}

static int ram_getxattr(const char *path, const char *name, char *value, size_t size)
{
    (void)name;
    RAM_ENTER(RAM_GETXATTR, path, NULL);
    struct ram_inode *inode = ram_object(path, NULL);
    if (!inode || !inode->xattr_size)
        return ram_leave(-ENODATA);
    if (value && size < inode->xattr_size)
        return ram_leave(-ERANGE);
    if (value)
        memcpy(value, inode->xattr, inode->xattr_size);
    return ram_leave((int)inode->xattr_size);
}

static int ram_listxattr(const char *path, char *list, size_t size)
{
    RAM_ENTER(RAM_LISTXATTR, path, NULL);
    if (list && size < 7)
        return ram_leave(-ERANGE);
    if (list)
        memcpy(list, "user.x", 7);
    return ram_leave(7);
}

static int ram_removexattr(const char *path, const char *name)
{
    (void)name;
    RAM_ENTER(RAM_REMOVEXATTR, path, NULL);
    struct ram_inode *inode = ram_object(path, NULL);
    if (inode)
        inode->xattr_size = 0;
    return ram_leave(inode ? 0 : -ENOENT);
}

/* Names in the order of the table; the offset of each is its index + 1, or 0 with `whole`. */
static int ram_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                       struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    RAM_ENTER(RAM_READDIR, path, fi);
    bool bare = ram_here->bare && !(flags & FUSE_READDIR_PLUS);
    bool root = path && strcmp(path, "/") == 0;
    size_t len = root ? 0 : strlen(path);
    fi->fh = 4711; /* must not persist */
    for (int i = (int)offset; i < RAM_NAMES; i++) {
        struct ram_name *name = &ram_here->names[i];
        if (strncmp(name->path, path, len) != 0 || name->path[len] != '/' ||
            strchr(name->path + len + 1, '/') || !name->path[len + 1])
            continue;
        if (fill(buf, name->path + len + 1, bare ? NULL : &name->inode->st,
                 ram_here->whole ? 0 : i + 1, ram_here->plus ? FUSE_FILL_DIR_PLUS : 0))
            break;
    }
    return ram_leave(0);
}

static int ram_access(const char *path, int mask)
{
    (void)mask;
    RAM_ENTER(RAM_ACCESS, path, NULL);
    return ram_leave(0);
}

static int ram_lock(const char *path, struct fuse_file_info *fi, int command, struct flock *lock)
{
    RAM_ENTER(RAM_LOCK, path, fi);
    ram_here->asked_lock = *lock;
    if (command == F_GETLK)
        *lock = ram_here->conflict;
    return ram_leave(0);
}

static int ram_flock(const char *path, struct fuse_file_info *fi, int operation)
{
    (void)operation;
    RAM_ENTER(RAM_FLOCK, path, fi);
    return ram_leave(0);
}

static int ram_ioctl(const char *path, unsigned command, void *arg, struct fuse_file_info *fi,
                     unsigned flags, void *data)
{
    (void)command, (void)arg, (void)flags;
    RAM_ENTER(RAM_IOCTL, path, fi);
    if (data)
        (*(int *)data)++;
    return ram_leave(3);
}

static int ram_poll(const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
                    unsigned *ready)
{
    RAM_ENTER(RAM_POLL, path, fi);
    if (handle) {
        df_pollhandle_destroy(ram_here->poll_handle);
        ram_here->poll_handle = handle;
    }
    *ready = ram_here->ready;
    return ram_leave(0);
}

static int ram_fallocate(const char *path, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    (void)mode;
    RAM_ENTER(RAM_FALLOCATE, path, fi);
    struct ram_inode *inode = ram_object(path, fi);
    if (offset + length > inode->st.st_size)
        ram_resize(inode, offset + length);
    return ram_leave(0);
}

static ssize_t ram_copy(const char *path_in, struct fuse_file_info *fi_in, off_t offset_in,
                        const char *path_out, struct fuse_file_info *fi_out, off_t offset_out,
                        size_t size, int flags)
{
    (void)flags;
    RAM_ENTER(RAM_COPY, path_out, fi_out);
    struct ram_inode *in = ram_object(path_in, fi_in), *out = ram_object(path_out, fi_out);
    char *bytes = malloc(size);
    int got = ram_copy_out(in, bytes, size, offset_in);
    ram_copy_in(out, bytes, (size_t)got, offset_out);
    free(bytes);
    return ram_leave(got);
}

static off_t ram_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
    (void)whence;
    RAM_ENTER(RAM_LSEEK, path, fi);
    return ram_leave((int)offset + 1);
}

static const struct fuse_operations ram_ops = {
    .getattr = ram_getattr,
    .readlink = ram_readlink,
    .mknod = ram_mknod,
    .mkdir = ram_mkdir,
    .unlink = ram_unlink,
    .rmdir = ram_rmdir,
    .symlink = ram_symlink,
    .rename = ram_rename,
    .link = ram_link,
    .chmod = ram_chmod,
    .chown = ram_chown,
    .truncate = ram_truncate,
    .open = ram_open,
    .read = ram_read,
    .write = ram_write,
    .statfs = ram_statfs,
    .flush = ram_flush,
    .release = ram_release,
    .fsync = ram_fsync,
    .setxattr = ram_setxattr,
    .getxattr = ram_getxattr,
    .listxattr = ram_listxattr,
    .removexattr = ram_removexattr,
    .opendir = ram_opendir,
    .readdir = ram_readdir,
    .releasedir = ram_releasedir,
    .fsyncdir = ram_fsyncdir,
    .access = ram_access,
    .create = ram_create,
    .lock = ram_lock,
    .utimens = ram_utimens,
    .ioctl = ram_ioctl,
    .poll = ram_poll,
    .write_buf = ram_write_buf,
    .read_buf = ram_read_buf,
    .flock = ram_flock,
    .fallocate = ram_fallocate,
    .copy_file_range = ram_copy,
    .lseek = ram_lseek,
};

#endif
