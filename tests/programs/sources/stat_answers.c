/*
 * stat_answers.c - a FUSE program whose files' attributes are what their names say: stat_answers.h.
 */
#include <fuse.h>

#include "stat_answers.h"

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = root_attributes;
    return path[1] ? -answer(path + 1, st) : 0;
}

static int op_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)fi, (void)flags;
    for (int i = 0; listed[i]; i++) {
        struct stat st;

        answer(listed[i], &st);
        fill(buf, listed[i], &st, 0, FUSE_FILL_DIR_PLUS);
    }
    return 0;
}

static int op_readlink(const char *path, char *to, size_t size)
{
    char target[LONGEST + 1];
    size_t length = target_of(path + 1, target) + 1;

    memcpy(to, target, length < size ? length : size); /* perhaps without its end */
    return 0;
}

static int op_statfs(const char *path, struct statvfs *out)
{
    (void)path;
    *out = space;
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = op_getattr,
    .readdir = op_readdir,
    .readlink = op_readlink,
    .statfs = op_statfs,
};

int main(int argc, char **argv)
{
    return fuse_main(argc, argv, &operations, NULL);
}
