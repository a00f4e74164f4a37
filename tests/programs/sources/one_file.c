/*
 * one_file.c - a FUSE program whose root is a regular file, for a mountpoint that is one.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <string.h>
#include <sys/stat.h>

static char content[4096] = "one file\n";
static size_t content_size = 9;

static int one_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") != 0)
        return -ENOENT;
    *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_size = content_size};
    return 0;
}

static int one_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if ((size_t)size > sizeof(content))
        return -EFBIG;
    if ((size_t)size > content_size)
        memset(content + content_size, 0, size - content_size);
    content_size = size;
    return 0;
}

static int one_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if ((size_t)at >= content_size)
        return 0;
    size = size < content_size - at ? size : content_size - at;
    memcpy(buf, content + at, size);
    return size;
}

static int one_write(const char *path, const char *buf, size_t size, off_t at,
                     struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (at + size > sizeof(content))
        return -EFBIG;
    memcpy(content + at, buf, size);
    content_size = at + size > content_size ? at + size : content_size;
    return size;
}

static int one_open(const char *path, struct fuse_file_info *fi)
{
    return fi->flags & O_TRUNC ? one_truncate(path, 0, fi) : 0;
}

static const struct fuse_operations operations = {
    .open = one_open,
    .getattr = one_getattr,
    .truncate = one_truncate,
    .read = one_read,
    .write = one_write,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}
