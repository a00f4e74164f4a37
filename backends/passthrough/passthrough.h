/*
 * passthrough.h - a directory served as it is, through libfuse's high-level API.
 *
 *   passthrough.c  command line, options, main
 *   names.c        operations on names: attributes, entries, links, extended attributes
 *   files.c        operations on open files and directories
 *
 * Every operation is one system call, relative to the source directory's descriptor or on the
 * handle. Paths that arrive here hold no symlinks but as their last component: the kernel, or
 * whoever calls instead of it, has walked them.
 */
#ifndef PASSTHROUGH_H
#define PASSTHROUGH_H

#define FUSE_USE_VERSION 312
#include <fuse.h>
#include <stdbool.h>

struct passthrough {
    int root;        /* the source directory, O_PATH; fixed once serving */
    mode_t umask;    /* of this process: what the system takes from modes behind our back */
    bool give_files; /* we are root: what a caller makes becomes the caller's */
};

extern struct passthrough passthrough;

/* "/a/b" as the *at calls want it, relative to the root. */
static inline const char *relative(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* 0 or -errno for a call that returned 0 or -1. */
int result(int returned);

/* After something was made: restores mode bits that our umask took, gives it to the caller. Returns
 * 0 or -errno. `fd` is the new file, or -1 to go by path. */
int settle(const char *path, int fd, mode_t mode);

/* The tables' parts. */
void add_name_operations(struct fuse_operations *ops);
void add_file_operations(struct fuse_operations *ops);

#endif
