/*
 * dummy.c - dummyfs: a file system that answers at once, as Direct-FUSE's dummy reads and writes.
 * What a call takes here is the way to the file system and back. `directfuse bench --breakdown`
 * uses it, through the kernel and as a plugin.
 *
 * One directory with one file of 8 MiB of zeros; what is written to it is thrown away.
 */
#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DIRECTORY = FUSE_ROOT_ID, INNER, FILE_NODE, SIZE = 8 << 20, PIECE = 1 << 20 };

static char zeros[PIECE];

static struct stat stat_of(fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_nlink = 1, .st_mode = S_IFDIR | 0755};

    if (ino == FILE_NODE) {
        st.st_mode = S_IFREG | 0644;
        st.st_size = SIZE;
    }
    return st;
}

static void dummy_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0};

    if (parent == DIRECTORY && strcmp(name, "inner") == 0)
        entry.ino = INNER;
    else if (parent == INNER && strcmp(name, "file") == 0)
        entry.ino = FILE_NODE;
    entry.attr = stat_of(entry.ino);
    if (entry.ino == 0)
        fuse_reply_err(req, ENOENT);
    else
        fuse_reply_entry(req, &entry);
}

static void dummy_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = stat_of(ino);

    (void)fi;
    fuse_reply_attr(req, &st, 0);
}

static void dummy_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->direct_io = 1; /* the kernel asks each time */
    fuse_reply_open(req, fi);
}

static void dummy_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    size_t left = offset < SIZE ? (size_t)(SIZE - offset) : 0;

    (void)ino, (void)fi;
    if (size > PIECE)
        size = PIECE;
    fuse_reply_buf(req, zeros, size < left ? size : left);
}

static void dummy_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                        struct fuse_file_info *fi)
{
    (void)ino, (void)buf, (void)offset, (void)fi;
    fuse_reply_write(req, size);
}

static size_t add(fuse_req_t req, char *buf, size_t at, size_t room, const char *name,
                  fuse_ino_t ino, off_t next)
{
    struct stat st = stat_of(ino);

    return at + fuse_add_direntry(req, buf + at, room - at, name, &st, next);
}

static void dummy_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                          struct fuse_file_info *fi)
{
    char buf[256];
    size_t used = 0;

    (void)fi;
    if (offset == 0) {
        used = add(req, buf, used, sizeof(buf), ".", ino, 1);
        used = add(req, buf, used, sizeof(buf), "..", DIRECTORY, 2);
        used = ino == DIRECTORY ? add(req, buf, used, sizeof(buf), "inner", INNER, 3)
                                : add(req, buf, used, sizeof(buf), "file", FILE_NODE, 3);
    }
    fuse_reply_buf(req, buf, used < size ? used : 0);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = dummy_lookup,
    .getattr = dummy_getattr,
    .open = dummy_open,
    .read = dummy_read,
    .write = dummy_write,
    .readdir = dummy_readdir,
};

static int serve(struct fuse_session *session, const struct fuse_cmdline_opts *options)
{
    int result = 1;

    if (fuse_set_signal_handlers(session) != 0)
        return 1;
    if (fuse_session_mount(session, options->mountpoint) == 0) {
        if (fuse_daemonize(options->foreground) == 0)
            result = fuse_session_loop(session);
        fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
    return result;
}

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts options;
    int result = 1;

    if (fuse_parse_cmdline(&args, &options) != 0)
        return 1;
    if (!options.mountpoint) {
        fprintf(stderr, "usage: dummyfs MOUNTPOINT\n");
        return 1;
    }
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (session)
        result = serve(session, &options);
    if (session)
        fuse_session_destroy(session);
    free(options.mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}
