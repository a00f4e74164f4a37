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

/* As the kernel hands open(2)'s flags on: a descriptor's own is not among them, and every file of a
 * 64-bit process is large, which the C library does not say. */
static uint32_t file_flags(const struct fuse_file_info *fi)
{
    const uint32_t large = 0100000; /* O_LARGEFILE of asm-generic/fcntl.h */

    return ((uint32_t)fi->flags & ~(uint32_t)O_CLOEXEC) | large;
}

/* ---- opening and closing ----------------------------------------------------------------------
 */

static void open_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_open_in in = {.flags = file_flags(fi)};
    struct message message = REQUEST(opcode, ino, .fi = fi);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    open_as(req, FUSE_OPEN, ino, fi);
}

void request_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    open_as(req, FUSE_OPENDIR, ino, fi);
}

void request_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                    struct fuse_file_info *fi)
{
    struct fuse_create_in in = {
        .flags = file_flags(fi), .mode = mode, .umask = fuse_req_ctx(req)->umask};
    struct message message = REQUEST(FUSE_CREATE, parent, .fi = fi);

    request_add(&message, &in, sizeof(in));
    request_add_name(&message, name);
    request_make(req, &message);
}

void request_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_flush_in in = {.fh = fi->fh, .lock_owner = fi->lock_owner};
    struct message message = REQUEST(FUSE_FLUSH, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

static void release_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_release_in in = {
        .fh = fi->fh,
        .flags = file_flags(fi),
        .release_flags = (fi->flush ? FUSE_RELEASE_FLUSH : 0) |
                         (fi->flock_release ? FUSE_RELEASE_FLOCK_UNLOCK : 0),
        .lock_owner = fi->lock_owner,
    };
    struct message message = REQUEST(opcode, ino);

    notify_forget_poll(fuse_req_userdata(req), fi->fh);
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
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
        .fh = fi->fh,
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
        .fh = fi->fh,
        .offset = (uint64_t)offset,
        .size = (uint32_t)at_most(size, channel->max_write),
        .write_flags =
            (fi->writepage ? FUSE_WRITE_CACHE : 0) | (fi->lock_owner ? FUSE_WRITE_LOCKOWNER : 0),
        .lock_owner = fi->lock_owner,
        .flags = file_flags(fi),
    };
    struct message message = REQUEST(FUSE_WRITE, ino, .room = in.size);

    request_add(&message, &in, sizeof(in));
    request_add(&message, data, in.size);
    request_send(req, &message);
}

void request_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                       struct fuse_file_info *fi)
{
    struct fuse_fallocate_in in = {.fh = fi->fh,
                                   .offset = (uint64_t)offset,
                                   .length = (uint64_t)length,
                                   .mode = (uint32_t)mode};
    struct message message = REQUEST(FUSE_FALLOCATE, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* False: the server does not know the request whose reply counts in 64 bits. */
static bool copy_64(fuse_req_t req, fuse_ino_t ino, struct fuse_copy_file_range_in *in)
{
    struct channel *channel = fuse_req_userdata(req);
    struct message message = REQUEST(PROTOCOL_COPY_FILE_RANGE_64, ino);
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
        .fh_in = fi->fh,
        .off_in = (uint64_t)offset,
        .nodeid_out = to,
        .fh_out = to_fi->fh,
        .off_out = (uint64_t)to_offset,
        .len = size,
        .flags = (uint64_t)flags,
    };

    if (copy_64(req, ino, &in))
        return;
    in.len = at_most(size, UINT32_MAX & ~4095u); /* the reply's count has 32 bits */
    struct message message = REQUEST(FUSE_COPY_FILE_RANGE, ino, .room = in.len);
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                   struct fuse_file_info *fi)
{
    struct fuse_lseek_in in = {
        .fh = fi->fh, .offset = (uint64_t)offset, .whence = (uint32_t)whence};
    struct message message = REQUEST(FUSE_LSEEK, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* ---- to the disk ------------------------------------------------------------------------------
 */

static void sync_as(fuse_req_t req, uint32_t opcode, fuse_ino_t ino, int datasync,
                    struct fuse_file_info *fi)
{
    struct fuse_fsync_in in = {.fh = fi->fh, .fsync_flags = datasync ? FUSE_FSYNC_FDATASYNC : 0};
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
