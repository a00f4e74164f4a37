/*
 * hello.c - your own FUSE program: an ordinary libfuse 3 file system of one file, unaware of us.
 *
 * Through the kernel, as ever:
 *     gcc hello.c -o hello $(pkg-config --cflags --libs fuse3)
 *     mkdir -p /tmp/hello && ./hello /tmp/hello && cat /tmp/hello/greeting
 *     fusermount3 -u /tmp/hello
 *
 * In your process, without a mount: the same source, as a plugin. examples/call.c calls it.
 *     export PKG_CONFIG_PATH=$(python3 -m directfuse paths pkgconfig)
 *     gcc -shared -fPIC hello.c -o hello.so $(pkg-config --cflags --libs directfuse-plugin)
 */
#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fuse.h>
#include <string.h>

static const char path_of_greeting[] = "/greeting";
static const char greeting[] = "Hello from a FUSE file system.\n";
static const size_t greeting_size = sizeof(greeting) - 1;

static int hello_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") == 0) {
        st->st_mode = S_IFDIR | 0755;
        st->st_nlink = 2;
        return 0;
    }
    if (strcmp(path, path_of_greeting) == 0) {
        st->st_mode = S_IFREG | 0444;
        st->st_nlink = 1;
        st->st_size = (off_t)greeting_size;
        return 0;
    }
    return -ENOENT;
}

static int hello_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)offset, (void)fi, (void)flags;
    if (strcmp(path, "/") != 0) {
        return -ENOENT;
    }
    fill(buf, ".", NULL, 0, 0);
    fill(buf, "..", NULL, 0, 0);
    fill(buf, path_of_greeting + 1, NULL, 0, 0);
    return 0;
}

static int hello_open(const char *path, struct fuse_file_info *fi)
{
    if (strcmp(path, path_of_greeting) != 0) {
        return -ENOENT;
    }
    return (fi->flags & O_ACCMODE) == O_RDONLY ? 0 : -EACCES;
}

static int hello_read(const char *path, char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (offset < 0 || (size_t)offset >= greeting_size) {
        return 0;
    }
    size_t left = greeting_size - (size_t)offset;
    size_t count = size < left ? size : left;
    memcpy(buf, greeting + offset, count);
    return (int)count;
}

static const struct fuse_operations hello = {
    .getattr = hello_getattr,
    .readdir = hello_readdir,
    .open = hello_open,
    .read = hello_read,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &hello, NULL);
}
