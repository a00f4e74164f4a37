/*
 * xattr_answers.c - a FUSE program whose extended attributes are as long as their names say,
 * whatever room there is: the attribute "user.N" of any file, and the list of names of the file
 * "N".
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1};
    if (strcmp(path, "/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return 0;
}

static int answer(const char *number, char *to, size_t size)
{
    long length = atol(number);

    if (strcmp(number, "over") == 0)
        return (int)size + 1;
    if (length <= 0)
        return -atoi(number + strcspn(number, "0123456789"));
    for (size_t i = 0; i < size; i++)
        to[i] = i + 1 < (size_t)length ? 'x' : '\0';
    return (int)length;
}

static int op_getxattr(const char *path, const char *name, char *value, size_t size)
{
    (void)path;
    return answer(name + strlen("user."), value, size);
}

static int op_listxattr(const char *path, char *names, size_t size)
{
    if (strcmp(path, "/bad") == 0) { /* a name without an end */
        memset(names, 'x', size < 5 ? size : 5);
        return 5;
    }
    return answer(path + 1, names, size);
}

static const struct fuse_operations operations = {
    .getattr = op_getattr,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
};

int main(int argc, char **argv)
{
    return fuse_main(argc, argv, &operations, NULL);
}
