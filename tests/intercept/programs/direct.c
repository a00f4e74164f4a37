/*
 * direct.c - a file system that lets nothing be kept of its one file, "file": direct_io. With
 * -o shared it asks that memory which shows it may be shared (FUSE_CAP_DIRECT_IO_ALLOW_MMAP).
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stddef.h>
#include <string.h>

#define ALLOW_MMAP (1u << 28)
#define SIZE       8192

static struct settings {
    int shared;
} settings;

static char bytes[SIZE];

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    config->direct_io = 1;
    if (settings.shared)
        conn->want |= conn->capable & ALLOW_MMAP;
    return NULL;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFREG | 0666, .st_nlink = 1, .st_size = SIZE};
    if (strcmp(path, "/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return strcmp(path, "/") == 0 || strcmp(path, "/file") == 0 ? 0 : -ENOENT;
}

static int do_read(const char *path, char *buf, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (offset >= SIZE)
        return 0;
    if (size > SIZE - (size_t)offset)
        size = SIZE - (size_t)offset;
    memcpy(buf, bytes + offset, size);
    return (int)size;
}

static int do_write(const char *path, const char *buf, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (offset + (off_t)size > SIZE)
        return -ENOSPC;
    memcpy(bytes + offset, buf, size);
    return (int)size;
}

static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr,
    .read = do_read,
    .write = do_write,
};

static const struct fuse_opt options[] = {{"shared", offsetof(struct settings, shared), 1},
                                          FUSE_OPT_END};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &settings, options, NULL) < 0)
        return 1;
    return fuse_main(args.argc, args.argv, &operations, NULL);
}
