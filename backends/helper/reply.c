/*
 * reply.c - the body of a reply becomes a fuse_reply_*: sizes are checked, for the server may say
 * anything.
 */
#include <errno.h>
#include <string.h>

#include "channel.h"

static double seconds(uint64_t whole, uint32_t nanoseconds)
{
    return (double)whole + (double)nanoseconds / 1e9;
}

static struct stat to_stat(const struct fuse_attr *attr)
{
    return (struct stat){
        .st_ino = attr->ino,
        .st_mode = attr->mode,
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = attr->rdev,
        .st_size = (off_t)attr->size,
        .st_blksize = attr->blksize,
        .st_blocks = (blkcnt_t)attr->blocks,
        .st_atim = {(time_t)attr->atime, attr->atimensec},
        .st_mtim = {(time_t)attr->mtime, attr->mtimensec},
        .st_ctim = {(time_t)attr->ctime, attr->ctimensec},
    };
}

static struct fuse_entry_param to_entry(const struct fuse_entry_out *out)
{
    return (struct fuse_entry_param){
        .ino = out->nodeid,
        .generation = out->generation,
        .attr = to_stat(&out->attr),
        .attr_timeout = seconds(out->attr_valid, out->attr_valid_nsec),
        .entry_timeout = seconds(out->entry_valid, out->entry_valid_nsec),
    };
}

/* `node`: 0 for a directory. */
static void take_open(struct channel *channel, uint64_t node, struct fuse_file_info *fi,
                      const struct fuse_open_out *out)
{
    handle_opened(channel, handle_of(fi), node, fi->flags, out);
    fi->direct_io = (out->open_flags & FOPEN_DIRECT_IO) != 0;
    fi->keep_cache = (out->open_flags & FOPEN_KEEP_CACHE) != 0;
    fi->nonseekable = (out->open_flags & (FOPEN_NONSEEKABLE | FOPEN_STREAM)) != 0;
    fi->cache_readdir = (out->open_flags & FOPEN_CACHE_DIR) != 0;
#ifdef FOPEN_NOFLUSH
    fi->noflush = (out->open_flags & FOPEN_NOFLUSH) != 0;
#endif
}

/* ---- one function for each kind of body, whose size the table says ------------------------- */

static void pass_nothing(const struct pending *pending, const char *body, size_t size)
{
    (void)body, (void)size;
    fuse_reply_err(pending->req, 0);
}

static void pass_entry(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_entry_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    struct fuse_entry_param entry = to_entry(&out);
    files_told(pending->channel, out.nodeid, &out.attr, out.attr_valid, out.attr_valid_nsec,
               pending->clock);
    fuse_reply_entry(pending->req, &entry);
}

static void pass_create(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_entry_out out;
    struct fuse_open_out open;
    struct fuse_file_info fi = pending->fi;

    (void)size;
    memcpy(&out, body, sizeof(out));
    memcpy(&open, body + sizeof(out), sizeof(open));
    struct fuse_entry_param entry = to_entry(&out);
    take_open(pending->channel, out.nodeid, &fi, &open);
    files_told(pending->channel, out.nodeid, &out.attr, out.attr_valid, out.attr_valid_nsec,
               pending->clock);
    fuse_reply_create(pending->req, &entry, &fi);
}

static void pass_attr(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_attr_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    struct stat st = to_stat(&out.attr);
    files_told(pending->channel, pending->node, &out.attr, out.attr_valid, out.attr_valid_nsec,
               pending->clock);
    fuse_reply_attr(pending->req, &st, seconds(out.attr_valid, out.attr_valid_nsec));
}

/* What belongs to bytes that were read ahead is told as by GETATTR. */
static void tell_files(const struct pending *pending, const struct protocol_statx_out *out)
{
    const struct statx *stx = &out->stat;
    struct fuse_attr attr = {
        .ino = stx->stx_ino,
        .size = stx->stx_size,
        .mtime = (uint64_t)stx->stx_mtime.tv_sec,
        .mtimensec = stx->stx_mtime.tv_nsec,
        .mode = stx->stx_mode,
    };

    if ((stx->stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS)
        files_told(pending->channel, pending->node, &attr, out->attr_valid, out->attr_valid_nsec,
                   pending->clock);
}

static void pass_statx(const struct pending *pending, const char *body, size_t size)
{
    struct protocol_statx_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    tell_files(pending, &out);
    fuse_reply_statx(pending->req, (int)out.flags, &out.stat,
                     seconds(out.attr_valid, out.attr_valid_nsec));
}

/* As it is: how much of it is the target is the host's matter. */
static void pass_link(const struct pending *pending, const char *body, size_t size)
{
    fuse_reply_buf(pending->req, body, size);
}

static void pass_open(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_open_out out;
    struct fuse_file_info fi = pending->fi;

    (void)size;
    memcpy(&out, body, sizeof(out));
    take_open(pending->channel, pending->opcode == FUSE_OPEN ? pending->node : 0, &fi, &out);
    fuse_reply_open(pending->req, &fi);
}

static void pass_data(const struct pending *pending, const char *body, size_t size)
{
    if (size > pending->room)
        fuse_reply_err(pending->req, EIO); /* as the kernel: more than was asked for */
    else
        fuse_reply_buf(pending->req, body, size);
}

static void pass_entries(const struct pending *pending, const char *body, size_t size)
{
    files_told_many(pending->channel, body, size, pending->clock);
    pass_data(pending, body, size);
}

static void pass_write(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_write_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    if (out.size > pending->room)
        fuse_reply_err(pending->req, EIO);
    else
        fuse_reply_write(pending->req, out.size);
}

static void pass_statfs(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_statfs_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    struct statvfs st = {
        .f_bsize = out.st.bsize,
        .f_frsize = out.st.frsize,
        .f_blocks = out.st.blocks,
        .f_bfree = out.st.bfree,
        .f_bavail = out.st.bavail,
        .f_files = out.st.files,
        .f_ffree = out.st.ffree,
        .f_favail = out.st.ffree,
        .f_namemax = out.st.namelen,
    };
    fuse_reply_statfs(pending->req, &st);
}

/* A question for the size is answered with a number, one for the value with the value. */
static void pass_xattr(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_getxattr_out out;

    if (pending->room > 0) {
        pass_data(pending, body, size);
    } else if (size != sizeof(out)) {
        fuse_reply_err(pending->req, EIO);
    } else {
        memcpy(&out, body, sizeof(out));
        fuse_reply_xattr(pending->req, out.size);
    }
}

/* As convert_fuse_file_lock() of the kernel. */
static bool is_lock(const struct fuse_file_lock *lock)
{
    return lock->type == F_UNLCK || ((lock->type == F_RDLCK || lock->type == F_WRLCK) &&
                                     lock->start <= lock->end && lock->end <= INT64_MAX);
}

static void pass_lock(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_lk_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    if (!is_lock(&out.lk)) {
        fuse_reply_err(pending->req, EIO);
        return;
    }
    struct flock lock = {
        .l_type = (short)out.lk.type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)out.lk.start,
        .l_pid = (pid_t)out.lk.pid,
    };
    if (out.lk.end < INT64_MAX)
        lock.l_len = (off_t)(out.lk.end - out.lk.start + 1); /* else 0: to the end of the file */
    fuse_reply_lock(pending->req, &lock);
}

static void pass_ioctl(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_ioctl_out out;

    memcpy(&out, body, sizeof(out));
    size -= sizeof(out);
    if (out.flags & FUSE_IOCTL_RETRY || size > pending->room)
        fuse_reply_err(pending->req, EIO); /* only unrestricted ioctls may, and there are none */
    else
        fuse_reply_ioctl(pending->req, out.result, body + sizeof(out), size);
}

static void pass_poll(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_poll_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    fuse_reply_poll(pending->req, out.revents);
}

static void pass_offset(const struct pending *pending, const char *body, size_t size)
{
    struct fuse_lseek_out out;

    (void)size;
    memcpy(&out, body, sizeof(out));
    fuse_reply_lseek(pending->req, (off_t)out.offset);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct kind {
    void (*pass)(const struct pending *pending, const char *body, size_t size);
    size_t size; /* bytes of the body */
    bool more;   /* at least as many */
} kinds[] = {
    [FUSE_LOOKUP] = {pass_entry, sizeof(struct fuse_entry_out)},
    [FUSE_MKNOD] = {pass_entry, sizeof(struct fuse_entry_out)},
    [FUSE_MKDIR] = {pass_entry, sizeof(struct fuse_entry_out)},
    [FUSE_SYMLINK] = {pass_entry, sizeof(struct fuse_entry_out)},
    [FUSE_LINK] = {pass_entry, sizeof(struct fuse_entry_out)},
    [FUSE_CREATE] = {pass_create, sizeof(struct fuse_entry_out) + sizeof(struct fuse_open_out)},
    [FUSE_TMPFILE] = {pass_create, sizeof(struct fuse_entry_out) + sizeof(struct fuse_open_out)},
    [FUSE_GETATTR] = {pass_attr, sizeof(struct fuse_attr_out)},
    [PROTOCOL_STATX] = {pass_statx, sizeof(struct protocol_statx_out)},
    [FUSE_SETATTR] = {pass_attr, sizeof(struct fuse_attr_out)},
    [FUSE_READLINK] = {pass_link, 0, true},
    [FUSE_OPEN] = {pass_open, sizeof(struct fuse_open_out)},
    [FUSE_OPENDIR] = {pass_open, sizeof(struct fuse_open_out)},
    [FUSE_READ] = {pass_data, 0, true},
    [FUSE_READDIR] = {pass_data, 0, true},
    [FUSE_READDIRPLUS] = {pass_entries, 0, true},
    [FUSE_WRITE] = {pass_write, sizeof(struct fuse_write_out)},
    [FUSE_COPY_FILE_RANGE] = {pass_write, sizeof(struct fuse_write_out)},
    [FUSE_STATFS] = {pass_statfs, sizeof(struct fuse_statfs_out)},
    [FUSE_GETXATTR] = {pass_xattr, 0, true},
    [FUSE_LISTXATTR] = {pass_xattr, 0, true},
    [FUSE_GETLK] = {pass_lock, sizeof(struct fuse_lk_out)},
    [FUSE_IOCTL] = {pass_ioctl, sizeof(struct fuse_ioctl_out), true},
    [FUSE_POLL] = {pass_poll, sizeof(struct fuse_poll_out)},
    [FUSE_LSEEK] = {pass_offset, sizeof(struct fuse_lseek_out)},
};

/* Where the attributes in a reply ended before 7.9; 0: it has none. */
static size_t old_end(uint32_t opcode)
{
    size_t gone = sizeof(struct fuse_attr) - offsetof(struct fuse_attr, blksize);

    switch (opcode) {
    case FUSE_LOOKUP:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_SYMLINK:
    case FUSE_LINK:
    case FUSE_CREATE:
        return sizeof(struct fuse_entry_out) - gone;
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        return sizeof(struct fuse_attr_out) - gone;
    default:
        return 0;
    }
}

size_t reply_widen(uint32_t opcode, char *body, size_t size)
{
    size_t end = old_end(opcode),
           more = sizeof(struct fuse_attr) - offsetof(struct fuse_attr, blksize);

    if (end == 0 || size < end)
        return size;
    memmove(body + end + more, body + end, size - end);
    memset(body + end, 0, more);
    return size + more;
}

void reply_pass_on(const struct pending *pending, const char *body, size_t size)
{
    static const struct kind nothing = {pass_nothing, 0, false};
    const struct kind *kind = &nothing;

    if (pending->opcode < sizeof(kinds) / sizeof(kinds[0]) && kinds[pending->opcode].pass)
        kind = &kinds[pending->opcode];
    if (size < kind->size || (size > kind->size && !kind->more))
        fuse_reply_err(pending->req, EIO);
    else
        kind->pass(pending, body, size);
}
