/*
 * late_times.c - one file of the low-level API that leaves its writes to a write-back cache, and
 * shows in the extended attribute "user.seen" how it was told the times: by the handle or by none.
 */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <string.h>

#define FILE_NODE 2
#define HANDLE    77

static char seen[16] = "nothing";
static struct stat file = {.st_ino = FILE_NODE, .st_mode = S_IFREG | 0644, .st_nlink = 1};

static struct stat attributes(fuse_ino_t ino)
{
    return ino == FILE_NODE ? file
                            : (struct stat){.st_ino = 1, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
}

static void do_init(void *data, struct fuse_conn_info *conn)
{
    conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = FILE_NODE, .attr_timeout = 9, .attr = file};

    if (strcmp(name, "file") != 0)
        fuse_reply_err(req, ENOENT);
    else
        fuse_reply_entry(req, &entry);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = attributes(ino);

    fuse_reply_attr(req, &st, 9);
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    if (to_set & FUSE_SET_ATTR_MTIME)
        strcpy(seen, fi && fi->fh == HANDLE ? "handle" : "none");
    do_getattr(req, ino, fi);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->fh = HANDLE;
    fuse_reply_open(req, fi);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    if (file.st_size < offset + (off_t)size)
        file.st_size = offset + (off_t)size;
    fuse_reply_write(req, size);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    if (strcmp(name, "user.seen") != 0)
        fuse_reply_err(req, ENODATA);
    else if (size == 0)
        fuse_reply_xattr(req, strlen(seen));
    else
        fuse_reply_buf(req, seen, strlen(seen));
}

static const struct fuse_lowlevel_ops ops = {
    .init = do_init,
    .lookup = do_lookup,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .open = do_open,
    .write = do_write,
    .getxattr = do_getxattr,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *session = fuse_session_new(&args, &ops, sizeof(ops), NULL);

    if (!session || fuse_session_mount(session, argv[argc - 1]) != 0)
        return 1;
    int result = fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return result != 0;
}
