/*
 * odd_answers.c - a low-level program whose answers are unusual, and not wrong: a file, a directory
 * and a link that answer every question for data with fuse_reply_err(req, 0), which is no data.
 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct node {
    const char *name;
    mode_t mode;
} nodes[] = {
    [FUSE_ROOT_ID] = {"/", S_IFDIR | 0755},
    {"file", S_IFREG | 0644},
    {"directory", S_IFDIR | 0755},
    {"link", S_IFLNK | 0777},
};
enum { NODES = sizeof(nodes) / sizeof(nodes[0]) };

static struct stat stat_of(fuse_ino_t ino)
{
    return (struct stat){
        .st_ino = ino, .st_mode = nodes[ino].mode, .st_nlink = 1, .st_size = 1 << 20};
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0};

    (void)parent;
    for (fuse_ino_t ino = FUSE_ROOT_ID + 1; ino < NODES; ino++)
        if (strcmp(nodes[ino].name, name) == 0)
            entry = (struct fuse_entry_param){.ino = ino, .attr = stat_of(ino)};
    if (entry.ino)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, ENOENT);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = stat_of(ino);

    (void)fi;
    fuse_reply_attr(req, &st, 0);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    (void)ino, (void)size, (void)offset, (void)fi;
    fuse_reply_err(req, 0);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    (void)ino, (void)name;
    if (size)
        fuse_reply_err(req, 0);
    else
        fuse_reply_xattr(req, 10);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    op_getxattr(req, ino, NULL, size);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = op_lookup,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .read = op_read,
    .readdir = op_read,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    int status = 1;

    if (fuse_parse_cmdline(&args, &opts) != 0)
        return 1;
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (session && fuse_session_mount(session, opts.mountpoint) == 0) {
        status = fuse_session_loop(session);
        fuse_session_unmount(session);
    }
    if (session)
        fuse_session_destroy(session);
    free(opts.mountpoint);
    fuse_opt_free_args(&args);
    return status;
}
