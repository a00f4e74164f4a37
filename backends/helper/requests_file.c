/*
 * requests_file.c - requests about open files and directories.
 */
#include <errno.h>
#include <fcntl.h>

#include "requests.h"

static size_t at_most(size_t size, size_t limit)
{
    return size < limit ? size : limit;
}

/* ---- opening and closing ----------------------------------------------------------------------
 */

/* Sends a request that opens, with room for what is kept of the open file. */
static void send_opening(fuse_req_t req, struct message *message, struct fuse_file_info *fi,
                         void (*send)(fuse_req_t, struct message *))
{
    struct channel *channel = fuse_req_userdata(req);
    struct handle *handle = handle_new();

    if (!handle) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)handle;
    send(req, message);
    if (!handle->opened) /* so nobody has it */
        handle_free(channel, handle);
}

static void open_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_open_in in = {.flags = file_flags(fi)};
    struct message message =
        REQUEST(opcode, ino, .fi = fi, .changes = fi->flags & O_TRUNC ? ino : 0);

    request_add(&message, &in, sizeof(in));
    send_opening(req, &message, fi, request_send);
}

void request_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    open_as(req, FUSE_OPEN, ino, fi);
}

void request_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    open_as(req, FUSE_OPENDIR, ino, fi);
}

static void create_as(fuse_req_t req, uint32_t opcode, fuse_ino_t parent, const char *name,
                      mode_t mode, struct fuse_file_info *fi)
{
    struct fuse_create_in in = {
        .flags = file_flags(fi), .mode = mode, .umask = fuse_req_ctx(req)->umask};
    const struct channel *channel = fuse_req_userdata(req);
    struct message message = REQUEST(opcode, parent, .fi = fi);

    request_add(&message, &in,
                channel->minor < PROTOCOL_UMASK_MINOR ? offsetof(struct fuse_create_in, umask)
                                                      : sizeof(in));
    request_add_name(&message, name);
    send_opening(req, &message, fi, request_make);
}

void request_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                    struct fuse_file_info *fi)
{
    create_as(req, FUSE_CREATE, parent, name, mode, fi);
}

/* "/" is what the kernel calls a file without a name. */
void request_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi)
{
    create_as(req, FUSE_TMPFILE, parent, "/", mode, fi);
}

void request_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_flush_in in = {.fh = handle_fh(fi), .lock_owner = fi->lock_owner};
    struct message message = REQUEST(FUSE_FLUSH, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

static void release_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct channel *channel = fuse_req_userdata(req);
    struct handle *handle = handle_of(fi);

    notify_forget_poll(channel, ino, fi->fh);
    if (handle)
        ahead_settle(req, &handle->ahead);
    release_send(channel, req, opcode, ino, fi);
    if (handle)
        handle_free(channel, handle);
}

void request_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    release_as(req, FUSE_RELEASE, ino, fi);
}

void request_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    release_as(req, FUSE_RELEASEDIR, ino, fi);
}

/* ---- data -------------------------------------------------------------------------------------
 */

static void read_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi, uint32_t flags)
{
    const struct channel *channel = fuse_req_userdata(req);
    struct fuse_read_in in = {
        .fh = handle_fh(fi),
        .offset = (uint64_t)offset,
        .size = (uint32_t)at_most(size, channel->max_read),
        .read_flags = flags,
        .lock_owner = fi->lock_owner,
        .flags = file_flags(fi),
    };
    struct message message = REQUEST(opcode, ino, .room = in.size);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                  struct fuse_file_info *fi)
{
    if (!ahead_read(req, ino, size, offset, fi))
        read_as(req, FUSE_READ, ino, size, offset, fi, fi->lock_owner ? FUSE_READ_LOCKOWNER : 0);
}

void request_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    read_as(req, FUSE_READDIR, ino, size, offset, fi, 0);
}

void request_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                         struct fuse_file_info *fi)
{
    read_as(req, FUSE_READDIRPLUS, ino, size, offset, fi, 0);
}

void request_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    const struct channel *channel = fuse_req_userdata(req);
    struct fuse_write_in in = {
        .fh = handle_fh(fi),
        .offset = (uint64_t)offset,
        .size = (uint32_t)at_most(size, channel->max_write),
        .write_flags =
            (fi->writepage ? FUSE_WRITE_CACHE : 0) | (fi->lock_owner ? FUSE_WRITE_LOCKOWNER : 0),
        .lock_owner = fi->lock_owner,
        .flags = file_flags(fi),
    };
    struct message message = REQUEST(FUSE_WRITE, ino, .room = in.size, .changes = ino);

    request_add(&message, &in,
                channel->minor < PROTOCOL_BLKSIZE_MINOR ? offsetof(struct fuse_write_in, lock_owner)
                                                        : sizeof(in));
    request_add(&message, data, in.size);
    request_send(req, &message);
}

void request_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                       struct fuse_file_info *fi)
{
    struct fuse_fallocate_in in = {.fh = handle_fh(fi),
                                   .offset = (uint64_t)offset,
                                   .length = (uint64_t)length,
                                   .mode = (uint32_t)mode};
    struct message message = REQUEST(FUSE_FALLOCATE, ino, .changes = ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* False: the server does not know the request whose reply counts in 64 bits. */
static bool copy_64(fuse_req_t req, fuse_ino_t ino, struct fuse_copy_file_range_in *in)
{
    struct channel *channel = fuse_req_userdata(req);
    struct message message = REQUEST(PROTOCOL_COPY_FILE_RANGE_64, ino, .changes = in->nodeid_out);
    struct protocol_copy_out out;

    if (channel->minor < 45 || atomic_load(&channel->no_copy_64))
        return false;
    request_add(&message, in, sizeof(*in));
    int error = channel_ask(channel, req, &message, &out, sizeof(out));
    if (error == ENOSYS)
        atomic_store(&channel->no_copy_64, true);
    else if (error || out.bytes > in->len)
        fuse_reply_err(req, error ? error : EIO);
    else
        fuse_reply_write(req, out.bytes);
    return error != ENOSYS;
}

void request_copy(fuse_req_t req, fuse_ino_t ino, off_t offset, struct fuse_file_info *fi,
                  fuse_ino_t to, off_t to_offset, struct fuse_file_info *to_fi, size_t size,
                  int flags)
{
    struct fuse_copy_file_range_in in = {
        .fh_in = handle_fh(fi),
        .off_in = (uint64_t)offset,
        .nodeid_out = to,
        .fh_out = handle_fh(to_fi),
        .off_out = (uint64_t)to_offset,
        .len = size,
        .flags = (uint64_t)flags,
    };

    if (copy_64(req, ino, &in))
        return;
    in.len = at_most(size, UINT32_MAX & ~4095u); /* the reply's count has 32 bits */
    struct message message = REQUEST(FUSE_COPY_FILE_RANGE, ino, .room = in.len, .changes = to);
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                   struct fuse_file_info *fi)
{
    struct fuse_lseek_in in = {
        .fh = handle_fh(fi), .offset = (uint64_t)offset, .whence = (uint32_t)whence};
    struct message message = REQUEST(FUSE_LSEEK, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* ---- to the disk ------------------------------------------------------------------------------
 */

static void sync_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, int datasync,
                    struct fuse_file_info *fi)
{
    struct fuse_fsync_in in = {.fh = handle_fh(fi),
                               .fsync_flags = datasync ? FUSE_FSYNC_FDATASYNC : 0};
    struct message message = REQUEST(opcode, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    sync_as(req, FUSE_FSYNC, ino, datasync, fi);
}

void request_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    sync_as(req, FUSE_FSYNCDIR, ino, datasync, fi);
}
