/*
 * odd_answers.c - a low-level program whose answers are unusual, and not wrong. What they are, the
 * names of its files say:
 *
 *   file, directory, link   no data: fuse_reply_err(req, 0)
 *   elsewhere               data, and EXDEV to copy_file_range
 *   none, none_direct       no byte of a write is taken; the second has direct_io
 *   long, long_direct       as many bytes as are wanted, past its size; the second has direct_io
 *   numberless              a directory with the names above, "none" without an inode number
 *
 * Of each, process 1 has locked the first four bytes, and _IOR('x', 2, ...) is EIO, with data.
 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FILE_ = FUSE_ROOT_ID + 1,
    DIRECTORY,
    LINK,
    ELSEWHERE,
    NONE,
    NONE_DIRECT,
    LONG,
    LONG_DIRECT,
    NUMBERLESS,
    NODES
};

static const struct node {
    const char *name;
    mode_t mode;
} nodes[NODES] = {
    [FUSE_ROOT_ID] = {"/", S_IFDIR | 0755},          [FILE_] = {"file", S_IFREG | 0644},
    [DIRECTORY] = {"directory", S_IFDIR | 0755},     [LINK] = {"link", S_IFLNK | 0777},
    [ELSEWHERE] = {"elsewhere", S_IFREG | 0644},     [NONE] = {"none", S_IFREG | 0644},
    [NONE_DIRECT] = {"none_direct", S_IFREG | 0644}, [LONG] = {"long", S_IFREG | 0644},
    [LONG_DIRECT] = {"long_direct", S_IFREG | 0644}, [NUMBERLESS] = {"numberless", S_IFDIR | 0755},
};

static struct stat stat_of(fuse_ino_t ino)
{
    return (struct stat){.st_ino = ino, .st_mode = nodes[ino].mode, .st_nlink = 1, .st_size = 10};
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0};

    (void)parent;
    for (fuse_ino_t ino = FILE_; ino < NODES; ino++)
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

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->direct_io = ino == NONE_DIRECT || ino == LONG_DIRECT;
    fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    static const char zeros[1 << 17];

    (void)fi;
    if (ino == LONG || ino == LONG_DIRECT)
        fuse_reply_buf(req, zeros, size < sizeof(zeros) ? size : sizeof(zeros));
    else if (ino == ELSEWHERE && offset < 10)
        fuse_reply_buf(req, "0123456789" + offset,
                       size < 10 - (size_t)offset ? size : 10 - (size_t)offset);
    else
        fuse_reply_err(req, 0);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    char buf[4096];
    size_t used = 0;

    (void)fi;
    for (fuse_ino_t i = FILE_ + offset; ino == NUMBERLESS && i < NUMBERLESS; i++) {
        struct stat st = {.st_ino = i == NONE ? 0 : i, .st_mode = nodes[i].mode};

        used += fuse_add_direntry(req, buf + used, sizeof(buf) - used, nodes[i].name, &st,
                                  i - FILE_ + 1);
    }
    if (used)
        fuse_reply_buf(req, buf, used);
    else
        fuse_reply_err(req, 0);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)data, (void)offset, (void)fi;
    fuse_reply_write(req, ino == FILE_ ? size : 0);
}

static void op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
                               struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
                               struct fuse_file_info *fi_out, size_t size, int flags)
{
    (void)ino_in, (void)offset_in, (void)fi_in, (void)ino_out, (void)offset_out, (void)fi_out;
    (void)size, (void)flags;
    fuse_reply_err(req, EXDEV);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument,
                     struct fuse_file_info *fi, unsigned flags, const void *data, size_t in_size,
                     size_t out_size)
{
    (void)argument, (void)fi, (void)flags, (void)data, (void)in_size, (void)command, (void)out_size;
    if (command & 1)
        fuse_reply_ioctl(req, (int)ino, "some", ino == FILE_ ? 4 : 0);
    else
        fuse_reply_ioctl(req, -EIO, "some", 4);
}

static void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
    (void)ino, (void)fi;
    *lock = (struct flock){.l_type = F_WRLCK, .l_len = 4, .l_pid = 1};
    fuse_reply_lock(req, lock);
}

static void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                     int sleeps)
{
    (void)ino, (void)fi, (void)lock, (void)sleeps;
    fuse_reply_err(req, EAGAIN);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    (void)ino;
    if (name && strcmp(name, "user.x") != 0)
        fuse_reply_err(req, ENODATA);
    else if (size)
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
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .readdir = op_readdir,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .ioctl = op_ioctl,
    .getlk = op_getlk,
    .setlk = op_setlk,
    .copy_file_range = op_copy_file_range,
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
