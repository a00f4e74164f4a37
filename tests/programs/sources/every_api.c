/*
 * every_api.c - one small file system in memory, written against each version of libfuse's
 * high-level API: compiled with -DFUSE_USE_VERSION=11, 21, 22, 25, 26 (libfuse 2) and 30 ... 312
 * (libfuse 3). It checks what the library hands it (handles, private data, paths), and writes down
 * in the file /trace what it was asked.
 *
 * With -DBY_HAND it does by hand what fuse_main() does.
 */
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#if FUSE_USE_VERSION >= 30
#include <fuse_lowlevel.h>
#endif

#define V FUSE_USE_VERSION
#if V >= 30
#define FI3        , struct fuse_file_info *fi3
#define FI3_UNUSED (void)fi3
#else
#define FI3
#define FI3_UNUSED (void)0
#endif

enum { FILES = 8, ROOM = 8192, HANDLE = 1000, TRACE = 1 };

static struct file {
    char name[64]; /* with its slash; empty: free */
    char data[ROOM];
    size_t size;
    mode_t mode;
    struct timespec times[2];
} files[FILES] = {{"/file", "content\n", 8, 0644, {{1, 0}, {2, 0}}}};
static char trace[1 << 16];
static size_t trace_size;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER; /* protects those two */
#if V >= 22
static int marker; /* private data */
#endif

/* The kernel's RELEASE comes beside the next call, in another thread of libfuse's. */
static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&trace_lock);
    vsnprintf(trace + trace_size, sizeof(trace) - trace_size, format, args);
    trace_size += strlen(trace + trace_size);
    pthread_mutex_unlock(&trace_lock);
    va_end(args);
}

static struct file *find(const char *path)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].name[0] && strcmp(files[i].name, path) == 0)
            return &files[i];
    return NULL;
}

static int is_trace(const char *path)
{
    return path && strcmp(path, "/trace") == 0;
}

/* The file of a handle, which libfuse has had from 2.2 on; 2.1 has the path alone. */
#if V >= 22
#define FI             , struct fuse_file_info *fi
#define FILE_OF(path)  by_handle(path, fi->fh)
#define IS_TRACE(path) (fi->fh == TRACE) /* a path may be NULL */
static struct file *by_handle(const char *path, unsigned long fh)
{
    (void)path;
    return fh >= HANDLE && fh < HANDLE + FILES ? &files[fh - HANDLE] : NULL;
}
#else
#define FI
#define FILE_OF(path)  find(path)
#define IS_TRACE(path) is_trace(path)
#endif

/* ---- attributes ---- */

static int stat_of(const struct file *file, struct stat *st)
{
    memset(st, 0, sizeof(*st));
    if (!file)
        return -ENOENT;
    st->st_mode = S_IFREG | file->mode;
    st->st_nlink = 1;
    st->st_ino = (ino_t)(file - files) + 77;
    st->st_size = (off_t)file->size;
    st->st_uid = getuid();
    st->st_gid = getgid();
    st->st_atim = file->times[0];
    st->st_mtim = file->times[1];
    return 0;
}

static int do_getattr(const char *path, struct stat *st FI3)
{
    FI3_UNUSED;
    memset(st, 0, sizeof(*st));
#if V >= 22
    if (fuse_get_context()->private_data != &marker)
        return -EIO;
#endif
    if (strcmp(path, "/") == 0) {
        st->st_mode = S_IFDIR | 0755;
        st->st_nlink = 2;
        return 0;
    }
    if (!is_trace(path))
        return stat_of(find(path), st);
    st->st_mode = S_IFREG | 0444;
    st->st_nlink = 1;
    pthread_mutex_lock(&trace_lock);
    st->st_size = (off_t)trace_size;
    pthread_mutex_unlock(&trace_lock);
    return 0;
}

static int do_chmod(const char *path, mode_t mode FI3)
{
    FI3_UNUSED;
    struct file *file = find(path);
    note("chmod %s %o\n", path, mode & 07777);
    if (!file)
        return -ENOENT;
    file->mode = mode & 07777;
    return 0;
}

static int resize(struct file *file, off_t size)
{
    if (!file)
        return -ENOENT;
    if (size > ROOM)
        return -EFBIG;
    if ((size_t)size > file->size)
        memset(file->data + file->size, 0, (size_t)size - file->size);
    file->size = (size_t)size;
    return 0;
}

#if V < 30
static int do_truncate(const char *path, off_t size)
{
    note("truncate %s %ld\n", path, (long)size);
    return resize(find(path), size);
}
#else
static int do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    note("truncate %s %ld\n", path, (long)size);
    return resize(fi ? by_handle(path, fi->fh) : find(path), size);
}
#endif

#if V == 25 || V == 26
static int do_ftruncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    note("ftruncate %s %ld\n", path, (long)size);
    return resize(FILE_OF(path), size);
}

static int do_fgetattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    return IS_TRACE(path) ? do_getattr("/trace", st) : stat_of(FILE_OF(path), st);
}
#endif

#if V < 26
static int do_utime(const char *path, struct utimbuf *times)
{
    struct file *file = find(path);
    note("utime %s %ld %ld\n", path, (long)times->actime, (long)times->modtime);
    if (!file)
        return -ENOENT;
    file->times[0] = (struct timespec){times->actime, 0};
    file->times[1] = (struct timespec){times->modtime, 0};
    return 0;
}
#else
static int do_utimens(const char *path, const struct timespec times[2] FI3)
{
    FI3_UNUSED;
    struct file *file = find(path);
    note("utimens %s %ld.%ld %ld.%ld\n", path, (long)times[0].tv_sec, times[0].tv_nsec,
         (long)times[1].tv_sec, times[1].tv_nsec);
    if (!file)
        return -ENOENT;
    for (int i = 0; i < 2; i++)
        if (times[i].tv_nsec < 1000000000)
            file->times[i] = times[i];
    return 0;
}
#endif

/* ---- names ---- */

static int do_mknod(const char *path, mode_t mode, dev_t rdev)
{
    (void)rdev;
    note("mknod %s %o\n", path, mode & 07777);
    if (find(path))
        return -EEXIST;
    for (int i = 0; i < FILES; i++) {
        if (!files[i].name[0]) {
            files[i] = (struct file){.mode = mode & 07777};
            snprintf(files[i].name, sizeof(files[i].name), "%s", path);
            return 0;
        }
    }
    return -ENOSPC;
}

static int do_unlink(const char *path)
{
    struct file *file = find(path);
    if (!file)
        return -ENOENT;
    if (strncmp(path, "/.fuse_hidden", 13) == 0)
        path = "/.fuse_hidden";
    note("unlink %s\n", path);
    file->name[0] = '\0';
    return 0;
}

#if V < 30
static int do_rename(const char *from, const char *to)
#else
static int do_rename(const char *from, const char *to, unsigned flags)
#endif
{
    struct file *file = find(from), *target = find(to);
#if V >= 30
    if (flags)
        return -EINVAL;
#endif
    if (!file)
        return -ENOENT;
    note("rename %s %s\n", from, strncmp(to, "/.fuse_hidden", 13) ? to : "/.fuse_hidden");
    if (target)
        target->name[0] = '\0';
    snprintf(file->name, sizeof(file->name), "%s", to);
    return 0;
}

/* ---- open files ---- */

static int opened(const char *path, int flags)
{
    struct file *file = find(path);
    if (is_trace(path))
        return flags & O_ACCMODE ? -EACCES : 0;
    note("open %s %o%s\n", path, flags & O_ACCMODE, flags & O_TRUNC ? " O_TRUNC" : "");
    return file ? 0 : -ENOENT;
}

#if V >= 22
static int do_open(const char *path, struct fuse_file_info *fi)
{
    struct file *file = find(path);
    fi->fh = file ? (unsigned long)(file - files) + HANDLE : TRACE;
    fi->direct_io = 1;
    return opened(path, fi->flags);
}

static int do_release(const char *path, struct fuse_file_info *fi)
{
    if (!IS_TRACE(path))
        note("release %s\n", path && path[1] == '.' ? "hidden" : path);
    return 0;
}
#else
static int do_open(const char *path, int flags)
{
    return opened(path, flags);
}

static int do_release(const char *path, int flags)
{
    if (!is_trace(path))
        note("release %s %o\n", path[1] == '.' ? "hidden" : path, flags & O_ACCMODE);
    return 0;
}
#endif

static int copy_out(const char *data, size_t all, char *buf, size_t size, off_t off)
{
    if ((size_t)off >= all)
        return 0;
    if (size > all - (size_t)off)
        size = all - (size_t)off;
    memcpy(buf, data + off, size);
    return (int)size;
}

static int copy_trace(char *buf, size_t size, off_t off)
{
    pthread_mutex_lock(&trace_lock);
    int count = copy_out(trace, trace_size, buf, size, off);
    pthread_mutex_unlock(&trace_lock);
    return count;
}

static int do_read(const char *path, char *buf, size_t size, off_t off FI)
{
    const struct file *file = FILE_OF(path);
    if (size > 1 << 17)
        return -EIO; /* larger than a request of the kernel to libfuse 2 */
#if V >= 22          /* with direct_io, so that the page cache asks for nothing else */
    if (file && file->size == 7000)
        note("read %zu %ld\n", size, (long)off);
#endif
    if (IS_TRACE(path))
        return copy_trace(buf, size, off);
    return file ? copy_out(file->data, file->size, buf, size, off) : -EBADF;
}

static int do_write(const char *path, const char *buf, size_t size, off_t off FI)
{
    struct file *file = FILE_OF(path);
    if (!file)
        return -EBADF;
    if (size + (size_t)off > ROOM)
        return -EFBIG;
    note("write %s %zu %ld\n", path, size, (long)off);
    memcpy(file->data + off, buf, size);
    if (file->size < size + (size_t)off)
        file->size = size + (size_t)off;
    return (int)size;
}

static int do_fsync(const char *path, int datasync FI)
{
#if V >= 22
    if (!FILE_OF(path))
        return -EBADF;
#endif
    note("fsync %s %d\n", path, datasync);
    return 0;
}

/* ---- directories, the file system ---- */

#if V < 22
static int do_getdir(const char *path, fuse_dirh_t handle, fuse_dirfil_t_compat fill)
{
    (void)path;
    fill(handle, ".", 4);
    fill(handle, "..", 4);
    for (int i = 0; i < FILES; i++)
        if (files[i].name[0])
            fill(handle, files[i].name + 1, 8);
    return 0;
}
#elif V < 25
static int do_getdir(const char *path, fuse_dirh_t handle, fuse_dirfil_t fill)
{
    (void)path;
    fill(handle, ".", 4, 1);
    fill(handle, "..", 4, 1);
    for (int i = 0; i < FILES; i++)
        if (files[i].name[0])
            fill(handle, files[i].name + 1, 8, (ino_t)i + 2);
    return 0;
}
#else
#if V < 30
#define PUT(name) fill(buf, name, NULL, 0)
static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info *fi)
#else
#define PUT(name) fill(buf, name, NULL, 0, 0)
static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
#endif
{
#if V >= 30
    (void)flags;
#endif
    (void)path;
    (void)off;
    (void)fi;
    PUT(".");
    PUT("..");
    for (int i = 0; i < FILES; i++)
        if (files[i].name[0])
            PUT(files[i].name + 1);
    return 0;
}
#endif

#if V == 11
static int do_statfs(struct fuse_statfs_compat1 *st)
{
    st->block_size = 512;
    st->blocks = 4242;
    st->namelen = 63;
    return 0;
}
#elif V < 25
static int do_statfs(const char *path, struct statfs *st)
{
    note("statfs %s\n", path);
    st->f_bsize = 512;
    st->f_blocks = 4242;
    st->f_namelen = 63;
    return 0;
}
#else
static int do_statfs(const char *path, struct statvfs *st)
{
    note("statfs %s\n", path);
    st->f_bsize = 512;
    st->f_frsize = 512;
    st->f_blocks = 4242;
    st->f_namemax = 63;
    return 0;
}
#endif

#if V >= 22
#if V < 26
static void *do_init(void)
#elif V < 30
static void *do_init(struct fuse_conn_info *conn)
#else
static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
#endif
{
#if V == 26
    note("init%s\n", conn->want & FUSE_CAP_ATOMIC_O_TRUNC ? " atomic_o_trunc" : "");
    if (fuse_get_context()->private_data != files)
        return NULL;
#elif V >= 30
    (void)conn;
    (void)config;
#endif
    return &marker;
}
#endif

#if V == 11
static struct fuse_operations_compat1 ops = {
#elif V == 21
static struct fuse_operations_compat2 ops = {
#elif V == 22
static struct fuse_operations_compat22 ops = {
#elif V == 25
static struct fuse_operations_compat25 ops = {
#else
static struct fuse_operations ops = {
#endif
    .getattr = do_getattr,
    .chmod = do_chmod,
    .truncate = do_truncate,
    .mknod = do_mknod,
    .unlink = do_unlink,
    .rename = do_rename,
    .open = do_open,
    .release = do_release,
    .read = do_read,
    .write = do_write,
    .fsync = do_fsync,
    .statfs = do_statfs,
#if V < 25
    .getdir = do_getdir,
#else
    .readdir = do_readdir,
#endif
#if V < 26
    .utime = do_utime,
#else
    .utimens = do_utimens,
#endif
#if V >= 22
    .init = do_init,
#endif
#if V == 25 || V == 26
    .ftruncate = do_ftruncate,
    .fgetattr = do_fgetattr,
#endif
#if V == 26 && defined(OMIT_OK)
    .flag_utime_omit_ok = 1,
#endif
#if V == 26 && defined(NULLPATH_OK)
    .flag_nullpath_ok = 1,
#endif
#if V == 26 && defined(NOPATH)
    .flag_nullpath_ok = 1,
    .flag_nopath = 1,
#endif
};

#ifndef BY_HAND

int main(int argc, char *argv[])
{
#if V < 26
    fuse_main(argc, argv, &ops);
    return 0;
#else
    return fuse_main(argc, argv, &ops, files);
#endif
}

#elif V <= 22

int main(int argc, char *argv[])
{
    const char *mountpoint = argv[argc - 1];
#if V == 11
    int fd = fuse_mount(mountpoint, NULL);
    struct fuse *fuse = fd == -1 ? NULL : fuse_new(fd, 0, &ops);
#elif V == 21
    int fd = fuse_mount(mountpoint, "fsname=by_hand");
    struct fuse *fuse = fd == -1 ? NULL : fuse_new(fd, "attr_timeout=0", &ops);
#else
    int fd = fuse_mount(mountpoint, "fsname=by_hand");
    struct fuse *fuse = fd == -1 ? NULL : fuse_new(fd, "attr_timeout=0", &ops, sizeof(ops));
#endif
    if (!fuse)
        return 1;
    int result = fuse_loop(fuse);
    fuse_unmount(mountpoint);
    fuse_destroy(fuse);
    return result != 0;
}

#elif V == 25

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    char *mountpoint;
    int threads, foreground, fd = -1;
    if (fuse_parse_cmdline(&args, &mountpoint, &threads, &foreground) == 0 && mountpoint)
        fd = fuse_mount(mountpoint, &args);
    struct fuse *fuse = fd == -1 ? NULL : fuse_new(fd, &args, &ops, sizeof(ops));
    if (!fuse)
        return 1;
    int result = fuse_loop_mt(fuse);
    fuse_unmount(mountpoint);
    fuse_destroy(fuse);
    free(mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}

#elif V == 26

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    char *mountpoint = NULL;
    int threads, foreground;
    struct fuse_chan *chan = NULL;
    if (fuse_parse_cmdline(&args, &mountpoint, &threads, &foreground) == 0 && mountpoint)
        chan = fuse_mount(mountpoint, &args);
    struct fuse *fuse = chan ? fuse_new(chan, &args, &ops, sizeof(ops), files) : NULL;
    if (!fuse)
        return 1;
    fuse_daemonize(foreground);
    fuse_set_signal_handlers(fuse_get_session(fuse));
    int result = threads ? fuse_loop_mt(fuse) : fuse_loop(fuse);
    fuse_remove_signal_handlers(fuse_get_session(fuse));
    fuse_unmount(mountpoint, chan);
    fuse_destroy(fuse);
    free(mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}

#else

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    if (fuse_parse_cmdline(&args, &opts) != 0 || !opts.mountpoint)
        return 1;
    struct fuse *fuse = fuse_new(&args, &ops, sizeof(ops), files);
    if (!fuse || fuse_mount(fuse, opts.mountpoint) != 0)
        return 1;
#if V == 30 || V == 31
    int result = fuse_loop_mt(fuse, opts.clone_fd);
#elif V < 312
    struct fuse_loop_config config = {opts.clone_fd, opts.max_idle_threads};
    int result = fuse_loop_mt(fuse, &config);
#else
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int result = fuse_loop_mt(fuse, config);
    fuse_loop_cfg_destroy(config);
#endif
    fuse_unmount(fuse);
    fuse_destroy(fuse);
    free(opts.mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}

#endif
