/*
 * one_inode.c - a file system of one object at a time, whatever it is: it always has the inode
 * number that the one before it had, as on ext4.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <string.h>
#include <sys/stat.h>

#define INODE 12

static char name[256]; /* "": there is none */
static mode_t mode;

static void *begin(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->use_ino = 1;
    return NULL;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2, .st_ino = 1};
    else if (strcmp(path, name) == 0)
        *st = (struct stat){.st_mode = mode, .st_nlink = 1, .st_ino = INODE};
    else
        return -ENOENT;
    return 0;
}

static int make(const char *path, mode_t wanted, dev_t device)
{
    (void)device;
    if (name[0] != '\0' || strlen(path) >= sizeof(name))
        return -ENOSPC;
    strcpy(name, path);
    mode = wanted;
    return 0;
}

static int remove_name(const char *path)
{
    if (strcmp(path, name) != 0)
        return -ENOENT;
    name[0] = '\0';
    return 0;
}

static const struct fuse_operations operations = {
    .init = begin,
    .getattr = get_attributes,
    .mknod = make,
    .unlink = remove_name,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}
