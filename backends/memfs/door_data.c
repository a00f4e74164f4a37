/*
 * door_data.c - FUSE low-level requests about the contents of files.
 *
 * Reads answer with vectors that point into the store, writes copy from libfuse's buffer into it:
 * no byte is copied twice on the way. There are no file handles: what FUSE asks is answered by the
 * inode alone. The caller appends (O_APPEND): offsets are always given.
 */
#include "door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VECTORS = 256 }; /* of one reply; more pieces than that are gathered first */

/* ---- open ------------------------------------------------------------------------------- */

void door_data_file_info(const struct door *door, struct fuse_file_info *fi)
{
    fi->direct_io = door->direct_io;
    fi->keep_cache = door->keep_cache;
    fi->noflush = 1;
}

int door_data_truncate(fuse_req_t req, struct inode *inode, int flags)
{
    if (!(flags & O_TRUNC))
        return 0;
    struct attr_change change = {
        .valid = ATTR_SIZE,
        .caller = fuse_req_ctx(req)->uid,
    };
    return attr_set(door_of(req)->store, inode, &change);
}

void door_data_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);

    if (fi->flags & O_TRUNC) { /* FUSE_CAP_ATOMIC_O_TRUNC */
        int error = door_data_truncate(req, door_inode(door, ino), fi->flags);
        if (error) {
            fuse_reply_err(req, -error);
            return;
        }
    }
    door_data_file_info(door, fi);
    fuse_reply_open(req, fi);
}

/* ---- read ------------------------------------------------------------------------------- */

/* Answers with a copy: for data in more pieces than vectors. The inode is locked. */
static void reply_gathered(fuse_req_t req, const struct inode *inode, int64_t off, size_t size)
{
    char *copy = malloc(size);
    size_t done = 0, n;

    if (!copy) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    do {
        struct iovec iov;
        int one = 1;
        n = data_read(inode, off + (int64_t)done, size - done, &iov, &one);
        if (n)
            memcpy(copy + done, iov.iov_base, n);
        done += n;
    } while (n && done < size);
    fuse_reply_buf(req, copy, done);
    free(copy);
}

static void reply_data(fuse_req_t req, const struct inode *inode, int64_t off, size_t size)
{
    struct iovec iov[VECTORS];
    int count = VECTORS;
    size_t got = data_read(inode, off, size, iov, &count);

    if (got == 0)
        fuse_reply_buf(req, NULL, 0);
    else if (count == 1)
        fuse_reply_buf(req, iov[0].iov_base, got);
    else if (count < VECTORS || got == size)
        fuse_reply_iov(req, iov, count);
    else
        reply_gathered(req, inode, off, size);
}

void door_data_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    struct inode *inode = door_inode(door, ino);

    if (inode->type != DT_REG || off < 0) {
        fuse_reply_err(req, inode->type == DT_DIR ? EISDIR : EINVAL);
        return;
    }
    inode_lock_accessed(door->store, inode, fi->flags);
    reply_data(req, inode, off, size);
    lock_read_done(&inode->lock);
}

/* ---- write ------------------------------------------------------------------------------ */

/* A data_source. */
static ssize_t from_buf(void *from, void *to, size_t size)
{
    struct fuse_bufvec into = FUSE_BUFVEC_INIT(size);
    into.buf[0].mem = to;
    return fuse_buf_copy(&into, from, FUSE_BUF_SPLICE_NONBLOCK);
}

static void reply_count(fuse_req_t req, ssize_t count)
{
    if (count < 0)
        fuse_reply_err(req, (int)-count);
    else
        fuse_reply_write(req, (size_t)count);
}

void door_data_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *bufv, off_t off,
                         struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    /* Write-back has no caller; the kernel cleared suid when the file was written. */
    uid_t caller = fi->writepage ? 0 : fuse_req_ctx(req)->uid;

    reply_count(req, data_write(door->store, door_inode(door, ino), off, fuse_buf_size(bufv),
                                from_buf, bufv, caller));
}

/* ---- holes and copies ------------------------------------------------------------------- */

void door_data_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                         struct fuse_file_info *fi)
{
    const struct door *door = door_of(req);
    (void)fi;
    fuse_reply_err(req, -space_allocate(door->store, door_inode(door, ino), mode, off, len,
                                        fuse_req_ctx(req)->uid));
}

void door_data_copy(fuse_req_t req, fuse_ino_t in, off_t off_in, struct fuse_file_info *fi_in,
                    fuse_ino_t out, off_t off_out, struct fuse_file_info *fi_out, size_t len,
                    int flags)
{
    const struct door *door = door_of(req);
    (void)fi_in;
    (void)fi_out;

    if (flags)
        fuse_reply_err(req, EINVAL);
    else
        reply_count(req, space_copy(door->store, door_inode(door, in), off_in,
                                    door_inode(door, out), off_out, len, fuse_req_ctx(req)->uid));
}

void door_data_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
                     struct fuse_file_info *fi)
{
    int64_t found = space_seek(door_inode(door_of(req), ino), off, whence);
    (void)fi;

    if (found < 0)
        fuse_reply_err(req, (int)-found);
    else
        fuse_reply_lseek(req, found);
}
