/*
 * awaited.c - a file system whose reads end when they are told to. Reading "slow" or "mapped" waits
 * until "go" was opened, once for all, and so does writing, of which nothing is kept; opening
 * "begun" waits until somebody waits so. All hold the alphabet.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <string.h>

#include "awaiting.h"

static const char text[] = "abcdefghijklmnopqrstuvwxyz";
static const char *const names[] = {"/slow", "/mapped", "/quick", "/begun", "/go"};

static bool begun, goes;

static void await_going(void)
{
    set(&begun, true);
    await(&goes);
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (strcmp(path, "/") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(path, names[i]) == 0) {
            *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_size = 26};
            return 0;
        }
    return -ENOENT;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    fi->direct_io = strcmp(path, "/slow") == 0;
    if (strcmp(path, "/begun") == 0)
        await(&begun);
    if (strcmp(path, "/go") == 0)
        set(&goes, true);
    return 0;
}

static int read_file(const char *path, char *to, size_t size, off_t at, struct fuse_file_info *fi)
{
    size_t left = at < 26 ? 26 - (size_t)at : 0;

    (void)fi;
    if (strcmp(path, "/quick") != 0)
        await_going();
    size = size < left ? size : left;
    memcpy(to, text + at, size);
    return (int)size;
}

static int write_file(const char *path, const char *from, size_t size, off_t at,
                      struct fuse_file_info *fi)
{
    (void)path, (void)from, (void)at, (void)fi;
    await_going();
    return (int)size;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {
        .getattr = get_attributes,
        .open = open_file,
        .read = read_file,
        .write = write_file,
    };

    return fuse_main(argc, argv, &operations, NULL);
}
