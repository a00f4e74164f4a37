/*
 * gates_low.c - the files of gates.h, by libfuse's low-level API.
 */
#define FUSE_USE_VERSION 31
#define TELL             fuse_lowlevel_notify_poll
#include <fuse_lowlevel.h>

#include "gates.h"

static void look_up(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    int file = parent == FUSE_ROOT_ID ? find(name) : FILES;
    struct fuse_entry_param entry = {.ino = (fuse_ino_t)(file + 2)};
    if (file == FILES) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    entry.attr = attributes_of(file);
    fuse_reply_entry(req, &entry);
}

static int file_of(fuse_ino_t ino)
{
    return (int)ino - 2;
}

static void get_attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = attributes_of(file_of(ino));
    (void)fi;
    fuse_reply_attr(req, &st, 0);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->direct_io = fi->nonseekable = 1;
    fuse_reply_open(req, fi);
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    char bytes[64];
    int got = take(file_of(ino), bytes, size < sizeof(bytes) ? size : sizeof(bytes));
    (void)offset, (void)fi;
    if (got < 0)
        fuse_reply_err(req, -got);
    else
        fuse_reply_buf(req, bytes, (size_t)got);
}

static void write_file(fuse_req_t req, fuse_ino_t ino, const char *from, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    int done = order(file_of(ino), from, size);
    (void)offset, (void)fi;
    if (done < 0)
        fuse_reply_err(req, -done);
    else
        fuse_reply_write(req, (size_t)done);
}

static void poll_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                      struct fuse_pollhandle *handle)
{
    unsigned events = 0;
    int error = ready(file_of(ino), handle, &events);
    (void)fi;
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_poll(req, events);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = look_up,
    .getattr = get_attributes,
    .open = open_file,
    .read = read_file,
    .write = write_file,
    .poll = poll_file,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    struct fuse_session *session;
    int failed = 1;
    if (fuse_parse_cmdline(&args, &opts) != 0)
        return 1;
    session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (session && fuse_session_mount(session, opts.mountpoint) == 0) {
        failed = fuse_session_loop(session);
        fuse_session_unmount(session);
    }
    return failed != 0;
}
