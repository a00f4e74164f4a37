/*
 * info.c - struct fuse_file_info and struct fuse_conn_info of FUSE 2 there and back.
 */
#include "libfuse2/abi2.h"

/* ---- file info ---------------------------------------------------------------------------- */

struct fuse2_file_info df2_info_in(const struct fuse_file_info *fi)
{
    return (struct fuse2_file_info){
        .flags = fi->flags,
        .fh_old = fi->fh,
        .writepage = fi->writepage,
        .direct_io = fi->direct_io,
        .keep_cache = fi->keep_cache,
        .flush = fi->flush,
        .nonseekable = fi->nonseekable,
        .flock_release = fi->flock_release,
        .fh = fi->fh,
        .lock_owner = fi->lock_owner,
    };
}

struct fuse_file_info df2_info_3(const struct fuse2_file_info *info)
{
    return (struct fuse_file_info){
        .flags = info->flags,
        .writepage = !!info->writepage,
        .direct_io = info->direct_io,
        .keep_cache = info->keep_cache,
        .flush = info->flush,
        .nonseekable = info->nonseekable,
        .flock_release = info->flock_release,
        .fh = info->fh,
        .lock_owner = info->lock_owner,
    };
}

void df2_info_out(struct fuse_file_info *fi, const struct fuse2_file_info *from, bool old)
{
    fi->fh = old ? from->fh_old : from->fh;
    fi->direct_io = from->direct_io;
    fi->keep_cache = from->keep_cache;
    if (!old)
        fi->nonseekable = from->nonseekable;
}

/* ---- negotiation -------------------------------------------------------------------------- */

/* libfuse 2 reads requests into 128 KiB, and its programs have buffers to match. */
enum { MAX_WRITE = 128 * 1024 };

static unsigned least(unsigned limit, unsigned asked)
{
    return asked && asked < limit ? asked : limit;
}

static unsigned wanted(const struct fuse2_conn_opts *opts, bool posix_lock, bool flock)
{
    return (opts->atomic_o_trunc ? FUSE_CAP_ATOMIC_O_TRUNC : 0) |
           (posix_lock && !opts->no_posix_lock ? FUSE_CAP_POSIX_LOCKS : 0) |
           (flock && !opts->no_flock ? FUSE_CAP_FLOCK_LOCKS : 0) |
           (opts->big_writes ? FUSE2_CAP_BIG_WRITES : 0) |
           (opts->splice_write && !opts->no_splice_write ? FUSE_CAP_SPLICE_WRITE : 0) |
           (opts->splice_move && !opts->no_splice_move ? FUSE_CAP_SPLICE_MOVE : 0) |
           (opts->splice_read && !opts->no_splice_read ? FUSE_CAP_SPLICE_READ : 0);
}

struct fuse2_conn_info df2_conn_show(const struct fuse_conn_info *conn)
{
    return (struct fuse2_conn_info){
        .proto_major = conn->proto_major,
        .proto_minor = conn->proto_minor,
        .async_read = !!(conn->want & FUSE_CAP_ASYNC_READ),
        .max_write = conn->max_write,
        .max_readahead = conn->max_readahead,
        .capable = (conn->capable & FUSE2_CAP_MASK) | FUSE2_CAP_BIG_WRITES,
        .want = conn->want & FUSE2_CAP_MASK,
        .max_background = conn->max_background,
        .congestion_threshold = conn->congestion_threshold,
    };
}

struct fuse2_conn_info df2_conn_in(const struct fuse_conn_info *conn,
                                   const struct fuse2_conn_opts *opts, bool posix_lock, bool flock)
{
    struct fuse2_conn_info shown = df2_conn_show(conn);
    shown.async_read = !opts->sync_read;
    shown.max_write = least(least(MAX_WRITE, conn->max_write), opts->max_write);
    shown.max_readahead = least(conn->max_readahead, opts->max_readahead);
    shown.max_background = opts->max_background;
    shown.congestion_threshold = opts->congestion_threshold;
    shown.want = wanted(opts, posix_lock, flock) & shown.capable;
    return shown;
}

/* What FUSE 2 has no word for stays as FUSE 3 has it. */
void df2_conn_out(struct fuse_conn_info *conn, const struct fuse2_conn_info *from)
{
    unsigned want = from->want & FUSE2_CAP_MASK & ~FUSE2_CAP_BIG_WRITES;
    if (from->async_read)
        want |= FUSE_CAP_ASYNC_READ;
    conn->want = (conn->want & ~(unsigned)FUSE2_CAP_MASK) | (want & conn->capable);
    conn->max_write = from->max_write;
    conn->max_readahead = from->max_readahead;
    conn->max_background = from->max_background;
    conn->congestion_threshold = from->congestion_threshold;
}
