/*
 * long_names.c - a tree of empty files and directories in memory, whose names may be as long as
 * FUSE allows. With -DLOW by the low-level API.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef LOW
#include <fuse_lowlevel.h>
#else
#include <fuse.h>
#endif

enum { ROOT = 1, NODES = 64 }; /* FUSE_ROOT_ID */

/* By inode number; ROOT is its own parent. */
static struct node {
    char name[PATH_MAX];
    mode_t mode; /* 0: none */
    unsigned parent;
} nodes[NODES] = {[ROOT] = {"", S_IFDIR | 0755, ROOT}};

static unsigned find(unsigned parent, const char *name, size_t len)
{
    for (unsigned ino = ROOT + 1; ino < NODES; ino++)
        if (nodes[ino].mode && nodes[ino].parent == parent && strlen(nodes[ino].name) == len &&
            memcmp(nodes[ino].name, name, len) == 0)
            return ino;
    return 0;
}

static struct stat stat_of(unsigned ino)
{
    return (struct stat){.st_ino = ino, .st_mode = nodes[ino].mode, .st_nlink = 1};
}

static int make(unsigned parent, const char *name, mode_t mode)
{
    unsigned ino = ROOT + 1;

    while (ino < NODES && nodes[ino].mode)
        ino++;
    if (ino == NODES)
        return -ENOSPC;
    nodes[ino] = (struct node){.mode = mode, .parent = parent};
    memcpy(nodes[ino].name, name, strlen(name));
    return (int)ino;
}

static int rename_to(unsigned ino, unsigned parent, const char *name)
{
    unsigned there = find(parent, name, strlen(name));

    if (there)
        nodes[there].mode = 0;
    nodes[ino].parent = parent;
    strcpy(nodes[ino].name, name);
    return 0;
}

#ifdef LOW

static struct fuse_entry_param entry_of(unsigned ino)
{
    return (struct fuse_entry_param){.ino = ino, .attr = stat_of(ino), .entry_timeout = 1};
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    unsigned ino = find((unsigned)parent, name, strlen(name));
    struct fuse_entry_param entry = entry_of(ino);

    if (ino)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, ENOENT);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = stat_of((unsigned)ino);

    (void)fi;
    fuse_reply_attr(req, &st, 1);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
    int ino = make((unsigned)parent, name, mode);
    struct fuse_entry_param entry;

    (void)dev;
    if (ino < 0) {
        fuse_reply_err(req, -ino);
        return;
    }
    entry = entry_of((unsigned)ino);
    fuse_reply_entry(req, &entry);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    op_mknod(req, parent, name, S_IFDIR | mode, 0);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    nodes[find((unsigned)parent, name, strlen(name))].mode = 0;
    fuse_reply_err(req, 0);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
                      const char *new_name, unsigned flags)
{
    unsigned ino = find((unsigned)parent, name, strlen(name));

    (void)flags;
    fuse_reply_err(req, ino ? -rename_to(ino, (unsigned)to, new_name) : ENOENT);
}

static void op_readdir(fuse_req_t req, fuse_ino_t directory, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    char *buf = malloc(size);
    size_t used = 0;

    (void)fi;
    for (unsigned ino = offset ? (unsigned)offset : ROOT + 1; ino < NODES; ino++) {
        struct stat st = stat_of(ino);
        size_t wants = fuse_add_direntry(req, NULL, 0, nodes[ino].name, NULL, 0);

        if (!nodes[ino].mode || nodes[ino].parent != directory)
            continue;
        if (wants > size - used)
            break;
        used += fuse_add_direntry(req, buf + used, size - used, nodes[ino].name, &st, ino + 1);
    }
    fuse_reply_buf(req, buf, used);
    free(buf);
}

static const struct fuse_lowlevel_ops ops = {
    .lookup = op_lookup,
    .getattr = op_getattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_unlink,
    .rename = op_rename,
    .readdir = op_readdir,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    struct fuse_session *session;
    int ret = 1;

    if (fuse_parse_cmdline(&args, &opts) != 0)
        return 1;
    session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
    if (session && fuse_set_signal_handlers(session) == 0 &&
        fuse_session_mount(session, opts.mountpoint) == 0) {
        ret = fuse_session_loop(session);
        fuse_session_unmount(session);
    }
    return ret;
}

#else

/* 0: there is none. *last: the name in the directory *parent. */
static unsigned walk(const char *path, unsigned *parent, const char **last)
{
    unsigned ino = ROOT;

    *parent = ino;
    for (*last = ++path; *path; path += strcspn(path, "/"), path += *path == '/') {
        *parent = ino;
        *last = path;
        ino = ino ? find(ino, path, strcspn(path, "/")) : 0;
    }
    return ino;
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    const char *last;
    unsigned parent, ino = walk(path, &parent, &last);

    (void)fi;
    if (!ino)
        return -ENOENT;
    *st = stat_of(ino);
    return 0;
}

static int op_mknod(const char *path, mode_t mode, dev_t dev)
{
    const char *last;
    unsigned parent;
    int ret;

    (void)dev;
    walk(path, &parent, &last);
    ret = make(parent, last, mode);
    return ret < 0 ? ret : 0;
}

static int op_mkdir(const char *path, mode_t mode)
{
    return op_mknod(path, S_IFDIR | mode, 0);
}

static int op_unlink(const char *path)
{
    const char *last;
    unsigned parent;

    nodes[walk(path, &parent, &last)].mode = 0;
    return 0;
}

static int op_rename(const char *from, const char *to, unsigned flags)
{
    const char *last;
    unsigned parent, ino = walk(from, &parent, &last);

    (void)flags;
    walk(to, &parent, &last);
    return rename_to(ino, parent, last);
}

static int op_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    const char *last;
    unsigned parent, directory = walk(path, &parent, &last);

    (void)fi;
    (void)flags;
    (void)offset;
    for (unsigned ino = ROOT + 1; ino < NODES; ino++)
        if (nodes[ino].mode && nodes[ino].parent == directory)
            fill(buf, nodes[ino].name, NULL, 0, 0);
    return 0;
}

static const struct fuse_operations ops = {
    .getattr = op_getattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_unlink,
    .rename = op_rename,
    .readdir = op_readdir,
};

int main(int argc, char **argv)
{
    return fuse_main(argc, argv, &ops, NULL);
}

#endif
