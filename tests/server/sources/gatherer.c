/*
 * gatherer.c - a directory, shown by a file system that wants its writes to be gathered
 * (FUSE_CAP_WRITEBACK_CACHE), and writes down what it is asked for: a line for each request that
 * concerns the bytes of a file, in the file of -o log=. While the file of -o fail= exists, writes
 * fail with the errno that it holds. With -o number= all files have that inode number.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    char *root, *log, *fail;
    unsigned number;
} settings;

static int log_fd = -1;

static void say(const char *format, ...)
{
    char line[200];
    va_list list;

    va_start(list, format);
    int size = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (write(log_fd, line, (size_t)size) != size)
        abort();
}

static char *real(char buffer[PATH_MAX], const char *path)
{
    snprintf(buffer, PATH_MAX, "%s%s", settings.root, path);
    return buffer;
}

#define REAL(path)   real((char[PATH_MAX]){0}, path)
#define RESULT(expr) ((expr) < 0 ? -errno : 0)

static int is_failing(void)
{
    char text[16] = "";
    int fd = settings.fail ? open(settings.fail, O_RDONLY) : -1;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        abort();
    close(fd);
    return atoi(text);
}

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    config->use_ino = 1;
    config->nullpath_ok = 1;
    conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
    say("init %s\n", conn->want & FUSE_CAP_WRITEBACK_CACHE ? "gathered" : "plain");
    return NULL;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    int ret = fi ? RESULT(fstat((int)fi->fh, st)) : RESULT(lstat(REAL(path), st));

    if (ret == 0 && settings.number && S_ISREG(st->st_mode))
        st->st_ino = settings.number;
    return ret;
}

static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    DIR *dir = opendir(REAL(path));
    struct dirent *entry;

    (void)offset, (void)fi, (void)flags;
    while (dir && (entry = readdir(dir)))
        fill(buf, entry->d_name, NULL, 0, 0);
    return dir ? RESULT(closedir(dir)) : -errno;
}

/* As passthrough_ll: with a cache, what is open for writing is read too, and appending is the
 * cache's business. */
static int open_real(const char *path, struct fuse_file_info *fi, int flags, mode_t mode)
{
    flags &= ~O_APPEND;
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    int fd = open(REAL(path), flags, mode);
    fi->fh = (uint64_t)fd;
    return RESULT(fd);
}

static int do_open(const char *path, struct fuse_file_info *fi)
{
    return open_real(path, fi, fi->flags, 0);
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return open_real(path, fi, fi->flags | O_CREAT, mode);
}

static int do_read(const char *path, char *buf, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    (void)path;
    ssize_t got = pread((int)fi->fh, buf, size, offset);
    return got < 0 ? -errno : (int)got;
}

static int do_write(const char *path, const char *buf, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    int error = is_failing();

    (void)path;
    say("write %zu %jd%s\n", size, (intmax_t)offset, fi->writepage ? " gathered" : "");
    if (error)
        return -error;
    ssize_t put = pwrite((int)fi->fh, buf, size, offset);
    return put < 0 ? -errno : (int)put;
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    say("truncate %jd\n", (intmax_t)size);
    return fi ? RESULT(ftruncate((int)fi->fh, size)) : RESULT(truncate(REAL(path), size));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    say("utimens\n");
    return fi ? RESULT(futimens((int)fi->fh, times))
              : RESULT(utimensat(AT_FDCWD, REAL(path), times, AT_SYMLINK_NOFOLLOW));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return fi ? RESULT(fchmod((int)fi->fh, mode)) : RESULT(chmod(REAL(path), mode));
}

static int do_flush(const char *path, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    say("flush\n");
    return 0;
}

static int do_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    (void)path, (void)datasync;
    say("fsync\n");
    return RESULT(fsync((int)fi->fh));
}

static int do_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    say("release\n");
    return RESULT(close((int)fi->fh));
}

static int do_fallocate(const char *path, int mode, off_t offset, off_t length,
                        struct fuse_file_info *fi)
{
    (void)path;
    say("fallocate\n");
    return RESULT(fallocate((int)fi->fh, mode, offset, length));
}

static int do_unlink(const char *path)
{
    return RESULT(unlink(REAL(path)));
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    return flags ? -EINVAL : RESULT(rename(REAL(from), REAL(to)));
}

static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr,
    .readdir = do_readdir,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .truncate = do_truncate,
    .utimens = do_utimens,
    .chmod = do_chmod,
    .flush = do_flush,
    .fsync = do_fsync,
    .release = do_release,
    .fallocate = do_fallocate,
    .unlink = do_unlink,
    .rename = do_rename,
};

int main(int argc, char *argv[])
{
    static const struct fuse_opt options[] = {
        {"root=%s", offsetof(struct settings, root), 0},
        {"log=%s", offsetof(struct settings, log), 0},
        {"fail=%s", offsetof(struct settings, fail), 0},
        {"number=%u", offsetof(struct settings, number), 0},
        FUSE_OPT_END,
    };
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &settings, options, NULL) < 0 || !settings.root || !settings.log)
        return 2;
    log_fd = open(settings.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    return log_fd < 0 ? 2 : fuse_main(args.argc, args.argv, &operations, NULL);
}
