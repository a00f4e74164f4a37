/*
 * layers_2.c - a file system of FUSE 2 with a module of its own: `loud` shows every name in
 * capitals and counts, in the extended attribute user.calls, what went through it.
 */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 26
#endif
#include <ctype.h>
#include <errno.h>
#include <fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file system: /sub/file ---- */

static int plain_getattr(const char *path, struct stat *st)
{
    memset(st, 0, sizeof(*st));
    st->st_uid = getuid();
    st->st_gid = getgid();
    st->st_nlink = 1;
    if (strcmp(path, "/") == 0 || strcmp(path, "/sub") == 0 || strcmp(path, "/sub/") == 0)
        st->st_mode = S_IFDIR | 0755;
    else if (strcmp(path, "/sub/file") == 0)
        st->st_mode = S_IFREG | 0644;
    else
        return -ENOENT;
    st->st_size = S_ISREG(st->st_mode) ? 6 : 0;
    return 0;
}

static int plain_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                         struct fuse_file_info *fi)
{
    (void)off;
    (void)fi;
    fill(buf, ".", NULL, 0);
    fill(buf, "..", NULL, 0);
    fill(buf, strcmp(path, "/") == 0 ? "sub" : "file", NULL, 0);
    return 0;
}

static int plain_open(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    fi->fh = 33;
    return 0;
}

static int plain_read(const char *path, char *buf, size_t size, off_t off,
                      struct fuse_file_info *fi)
{
    (void)path;
    if (fi->fh != 33 || fuse_get_context()->private_data != (void *)plain_open)
        return -EIO;
    if (off >= 6)
        return 0;
    size = size < 6 - (size_t)off ? size : 6 - (size_t)off;
    memcpy(buf, "hello\n" + off, size);
    return (int)size;
}

static void *plain_init(struct fuse_conn_info *conn)
{
    (void)conn;
    return (void *)plain_open;
}

static const struct fuse_operations plain = {
    .init = plain_init,
    .getattr = plain_getattr,
    .readdir = plain_readdir,
    .open = plain_open,
    .read = plain_read,
};

/* ---- the module ---- */

struct loud {
    struct fuse_fs *next;
    _Atomic int calls;
    int quiet; /* -o quiet: names stay as they are */
};

static struct loud *loud_here(void)
{
    struct loud *loud = fuse_get_context()->private_data;
    loud->calls++;
    return loud;
}

static void turn(const struct loud *loud, const char *from, char *to, int (*how)(int))
{
    size_t i;
    for (i = 0; from[i]; i++)
        to[i] = (char)(loud->quiet ? from[i] : how((unsigned char)from[i]));
    to[i] = '\0';
}

#define BELOW(path)                                                                                \
    struct loud *loud = loud_here();                                                               \
    char below[4096];                                                                              \
    turn(loud, path, below, tolower)

static int loud_getattr(const char *path, struct stat *st)
{
    BELOW(path);
    return fuse_fs_getattr(loud->next, below, st);
}

static int loud_fgetattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_fgetattr(loud->next, below, st, fi);
}

struct filler {
    const struct loud *loud;
    fuse_fill_dir_t fill;
    void *buf;
};

static int fill_loud(void *data, const char *name, const struct stat *st, off_t off)
{
    const struct filler *filler = data;
    char above[256];
    turn(filler->loud, name, above, toupper);
    return filler->fill(filler->buf, above, st, off);
}

static int loud_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                        struct fuse_file_info *fi)
{
    BELOW(path);
    struct filler filler = {loud, fill, buf};
    return fuse_fs_readdir(loud->next, below, &filler, fill_loud, off, fi);
}

static int loud_opendir(const char *path, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_opendir(loud->next, below, fi);
}

static int loud_releasedir(const char *path, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_releasedir(loud->next, below, fi);
}

static int loud_open(const char *path, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_open(loud->next, below, fi);
}

static int loud_release(const char *path, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_release(loud->next, below, fi);
}

static int loud_read(const char *path, char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
    BELOW(path);
    return fuse_fs_read(loud->next, below, buf, size, off, fi);
}

static int loud_statfs(const char *path, struct statvfs *st)
{
    BELOW(path);
    return fuse_fs_statfs(loud->next, below, st);
}

static int loud_chmod(const char *path, mode_t mode)
{
    BELOW(path);
    return fuse_fs_chmod(loud->next, below, mode); /* ENOSYS: the file system has none */
}

static int loud_getxattr(const char *path, const char *name, char *value, size_t size)
{
    char text[16];
    (void)path;
    if (strcmp(name, "user.calls") != 0)
        return -ENODATA;
    int length = snprintf(text, sizeof(text), "%d",
                          fuse_get_context()->private_data ? loud_here()->calls > 1 : -1);
    if (size >= (size_t)length)
        memcpy(value, text, (size_t)length);
    return size && size < (size_t)length ? -ERANGE : length;
}

static void *loud_init(struct fuse_conn_info *conn)
{
    struct loud *loud = fuse_get_context()->private_data;
    fuse_fs_init(loud->next, conn);
    return loud;
}

static void loud_destroy(void *data)
{
    struct loud *loud = data;
    fuse_fs_destroy(loud->next);
    free(loud);
}

static const struct fuse_operations loud_ops = {
    .init = loud_init,
    .destroy = loud_destroy,
    .getattr = loud_getattr,
    .fgetattr = loud_fgetattr,
    .readdir = loud_readdir,
    .opendir = loud_opendir,
    .releasedir = loud_releasedir,
    .open = loud_open,
    .release = loud_release,
    .read = loud_read,
    .statfs = loud_statfs,
    .chmod = loud_chmod,
    .getxattr = loud_getxattr,
};

static const struct fuse_opt loud_opts[] = {
    {"quiet", offsetof(struct loud, quiet), 1},
    FUSE_OPT_END,
};

static struct fuse_fs *loud_new(struct fuse_args *args, struct fuse_fs *next[])
{
    struct loud *loud = calloc(1, sizeof(*loud));
    struct fuse_fs *fs = NULL;
    if (loud && next[0] && !next[1] && fuse_opt_parse(args, loud, loud_opts, NULL) == 0) {
        loud->next = next[0];
        fs = fuse_fs_new(&loud_ops, sizeof(loud_ops), loud);
    }
    if (!fs)
        free(loud);
    return fs;
}

FUSE_REGISTER_MODULE(loud, loud_new)

static __attribute__((constructor)) void register_loud(void)
{
    fuse_register_module(&fuse_fusemod_loud_module);
}

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &plain, NULL);
}
