/* talker.c - a file system of a root directory, which says by every way what it is asked. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <fuse_log.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int talker_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") != 0) {
        printf("printed %s\n", path);
        fprintf(stderr, "complained %s\n", path);
        fuse_log(FUSE_LOG_WARNING, "logged %s\n", path);
        return -ENOENT;
    }
    *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return 0;
}

static const struct fuse_operations operations = {.getattr = talker_getattr};

int main(int argc, char *argv[])
{
    fprintf(stderr, "at the start\n");
    return fuse_main(argc, argv, &operations, NULL);
}
