/*
 * tardy.c - a file system of one file, "f", in which a write takes a while: it makes the file of
 * -o begun=, and stores what it was given 0.3 s later.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    char *begun;
} settings;

static char content[3] = "old";

static int tardy_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(path, "/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    else if (strcmp(path, "/f") == 0)
        *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_size = sizeof(content)};
    else
        return -ENOENT;
    return 0;
}

static int tardy_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (at != 0 || size < sizeof(content))
        return 0;
    memcpy(buf, content, sizeof(content));
    return sizeof(content);
}

static int tardy_write(const char *path, const char *buf, size_t size, off_t at,
                       struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    if (at != 0 || size > sizeof(content))
        return -EFBIG;
    close(open(settings.begun, O_CREAT | O_WRONLY, 0600));
    usleep(300000);
    memcpy(content, buf, size);
    return (int)size;
}

static const struct fuse_operations operations = {
    .getattr = tardy_getattr,
    .read = tardy_read,
    .write = tardy_write,
};

int main(int argc, char **argv)
{
    const struct fuse_opt options[] = {{"begun=%s", offsetof(struct settings, begun), 1},
                                       FUSE_OPT_END};
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &settings, options, NULL) < 0 || !settings.begun)
        return 1;
    return fuse_main(args.argc, args.argv, &operations, NULL);
}
