/*
 * sized.c - files that are there by their names: SIZE.NUMBER holds SIZE times the letter x. A line
 * for each READ goes into the file of -o log=, with -o asks for each question for attributes, too.
 * The access time is the number of READs. With -o direct nothing may be kept of bytes.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    char *log;
    int direct, asks;
} settings;

static int log_fd = -1;
static _Atomic int reads;

static off_t size_of(const char *path)
{
    return atoll(path + 1);
}

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->direct_io = settings.direct;
    return NULL;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (settings.asks && write(log_fd, "getattr\n", 8) != 8)
        return -EIO;
    *st = (struct stat){
        .st_mode = S_IFREG | 0666, .st_nlink = 1, .st_size = size_of(path), .st_atime = reads};
    if (strcmp(path, "/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return 0;
}

static int do_read(const char *path, char *buf, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    off_t left = size_of(path) - offset;

    (void)fi;
    if (write(log_fd, "read\n", 5) != 5)
        return -EIO;
    reads++;
    if (left <= 0)
        return 0;
    if (size > (size_t)left)
        size = (size_t)left;
    memset(buf, 'x', size);
    return (int)size;
}

static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr,
    .read = do_read,
};

static const struct fuse_opt options[] = {{"log=%s", offsetof(struct settings, log), 0},
                                          {"direct", offsetof(struct settings, direct), 1},
                                          {"asks", offsetof(struct settings, asks), 1},
                                          FUSE_OPT_END};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &settings, options, NULL) < 0)
        return 1;
    log_fd = open(settings.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return log_fd < 0 ? 1 : fuse_main(args.argc, args.argv, &operations, NULL);
}
