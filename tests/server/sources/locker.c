/* locker.c - a file system that keeps locks itself, and tells so: an empty file "f" of which it
 * refuses every lock with an error that no kernel has for it. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <string.h>

static int locker_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") != 0 && strcmp(path, "/f") != 0)
        return -ENOENT;
    *st = (struct stat){.st_mode = path[1] ? S_IFREG | 0644 : S_IFDIR | 0755, .st_nlink = 1};
    return 0;
}

static int locker_open(const char *path, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    return 0;
}

static int locker_lock(const char *path, struct fuse_file_info *fi, int command, struct flock *f)
{
    (void)path, (void)fi;
    if (command != F_GETLK)
        return f->l_type == F_UNLCK ? 0 : -EDOM; /* a close unlocks */
    *f = (struct flock){.l_type = F_WRLCK, .l_start = 3, .l_len = 4, .l_pid = 1};
    return 0;
}

static int locker_flock(const char *path, struct fuse_file_info *fi, int operation)
{
    (void)path, (void)fi, (void)operation;
    return -ERANGE;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations ops = {
        .getattr = locker_getattr,
        .open = locker_open,
        .lock = locker_lock,
        .flock = locker_flock,
    };

    return fuse_main(argc, argv, &ops, NULL);
}
