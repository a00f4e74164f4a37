/*
 * leaving.c - a file system of one directory, "d", with "a" and "b". The first who asks for the
 * attributes of "b" waits until "d" has been listed. Who asks then for those of "a" waits until "b"
 * is asked for in vain, or "go" is opened. Opening "begun" waits until somebody waits for "b".
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <string.h>

#include "awaiting.h"

static bool begun, listed, gone, goes;

static bool is(const bool *what)
{
    bool value;

    pthread_mutex_lock(&lock);
    value = *what;
    pthread_mutex_unlock(&lock);
    return value;
}

/* Names are looked up beside a listing, and known from then on. */
static void *begin(struct fuse_conn_info *connection, struct fuse_config *settings)
{
    connection->want |= FUSE_CAP_PARALLEL_DIROPS;
    settings->entry_timeout = 3600;
    settings->attr_timeout = 0;
    return NULL;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1};
    if (strcmp(path, "/") == 0 || strcmp(path, "/d") == 0) {
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    } else if (strcmp(path, "/d/a") == 0 && is(&listed)) {
        await(&goes);
    } else if (strcmp(path, "/d/b") == 0 && is(&gone)) {
        set(&goes, true);
        return -ENOENT;
    } else if (strcmp(path, "/d/b") == 0 && !is(&begun)) {
        set(&begun, true);
        await(&listed);
    }
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/begun") == 0)
        await(&begun);
    if (strcmp(path, "/go") == 0)
        set(&goes, true);
    return 0;
}

/* Without types, so each is asked for. */
static int list(const char *path, void *to, fuse_fill_dir_t fill, off_t at,
                struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)at, (void)fi, (void)flags;
    if (strcmp(path, "/") == 0)
        return fill(to, "d", NULL, 0, 0);
    fill(to, "a", NULL, 0, 0);
    if (!is(&gone))
        fill(to, "b", NULL, 0, 0);
    set(&listed, true);
    return 0;
}

static int remove_file(const char *path)
{
    (void)path;
    set(&gone, true);
    return 0;
}

static int make_file(const char *path, mode_t mode, dev_t device)
{
    (void)path, (void)mode, (void)device;
    set(&gone, false);
    return 0;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {
        .init = begin,
        .getattr = get_attributes,
        .open = open_file,
        .readdir = list,
        .unlink = remove_file,
        .mknod = make_file,
    };

    return fuse_main(argc, argv, &operations, NULL);
}
