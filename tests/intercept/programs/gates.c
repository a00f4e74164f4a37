/*
 * gates.c - the files of gates.h, by libfuse's high-level API: of version 3, or 2 if
 * FUSE_USE_VERSION says so.
 */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 31
#endif
#define TELL fuse_notify_poll
#include "gates.h"

#if FUSE_USE_VERSION >= 30
#define OF_FILE , struct fuse_file_info *fi
#define NO_FILE (void)fi
#else
#define OF_FILE
#define NO_FILE (void)0
#endif

static int get_attributes(const char *path, struct stat *st OF_FILE)
{
    int file = strcmp(path, "/") == 0 ? -1 : find(path + 1);
    NO_FILE;
    *st = attributes_of(file);
    return file < FILES ? 0 : -ENOENT;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    fi->fh = (uint64_t)find(path + 1);
    fi->direct_io = fi->nonseekable = 1;
    return fi->fh < FILES ? 0 : -ENOENT;
}

static int read_file(const char *path, char *to, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path, (void)offset;
    return take((int)fi->fh, to, size);
}

static int write_file(const char *path, const char *from, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)path, (void)offset;
    return order((int)fi->fh, from, size);
}

static int poll_file(const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
                     unsigned *events)
{
    (void)path;
    return ready((int)fi->fh, handle, events);
}

static const struct fuse_operations operations = {
    .getattr = get_attributes,
    .open = open_file,
    .read = read_file,
    .write = write_file,
    .poll = poll_file,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}
