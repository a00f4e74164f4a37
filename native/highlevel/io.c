/*
 * io.c - reading an open file, finding its holes, syncing it. No lock when the plugin
 * needs no paths (nullpath_ok).
 */
#include <unistd.h>

#include "core/gate.h"
#include "highlevel/handle.h"
#include "host/iov_piece.h"

/* ---- reading ---- */

/* An operation's view of an open file. */
struct access {
    struct df_frame *frame;
    struct df_file *file;
    const char *path; /* for the plugin; held */
};

static DF_FLAT ssize_t read_one(struct access *access, char *buf, size_t size, off_t offset)
{
    union df_file_info fi;

    df_handle_info(access->frame, access->file, &fi);
    int got = access->frame->hl->ops.read(access->path, buf, size, offset, &fi.info);
    return got > 0 && (size_t)got > size ? -EIO : df_answer_count(got);
}

/* The piece's iovecs are used up. */
static ssize_t read_buffers(struct access *access, struct df_iov_piece *piece, off_t offset)
{
    struct fuse_bufvec *vec = NULL;
    union df_file_info fi;

    df_handle_info(access->frame, access->file, &fi);
    ssize_t got = df_answer_count(
        access->frame->hl->ops.read_buf(access->path, &vec, piece->size, offset, &fi.info));
    if (got >= 0)
        got = vec ? df_bufvec_take(vec, piece->iov, piece->count) : 0;
    df_bufvec_free(vec);
    return got;
}

/* Several buffers at once through read_buf, or each by a read. */
static ssize_t read_piece(struct access *access, struct df_iov_piece *piece, off_t offset)
{
    size_t done = 0;

    if (access->frame->hl->ops.read_buf)
        return read_buffers(access, piece, offset);
    for (int i = 0; i < piece->count; i++) {
        size_t size = piece->iov[i].iov_len;
        ssize_t got =
            size ? read_one(access, piece->iov[i].iov_base, size, offset + (off_t)done) : 0;
        if (got < 0)
            return done ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < size)
            break;
    }
    return (ssize_t)done;
}

static __attribute__((noinline)) ssize_t read_pieces(struct access *access, const struct iovec *iov,
                                                     int count, off_t offset)
{
    struct df_iov_rest rest = {.iov = iov, .count = count};
    struct df_iov_piece piece;
    size_t done = 0;

    for (;;) {
        df_iov_cut(&piece, &rest, access->frame->hl->max_read);
        if (piece.size == 0)
            break;
        ssize_t got = read_piece(access, &piece, offset + (off_t)done);
        if (got < 0)
            return done ? (ssize_t)done : got;
        done += (size_t)got;
        if ((size_t)got < piece.size)
            break;
    }
    return (ssize_t)done;
}

/* The size that a page cache would know. False: it would not, or the file cannot be asked any more:
 * removed, with hard_remove. */
static bool known_size(struct df_frame *frame, struct df_file *file, off_t *size)
{
    struct stat st;

    if (file->traits & DF_FILE_DIRECT || file->kind != DF_KIND_REGULAR)
        return false;
    if (!df_highlevel_kept_size(frame, file, size)) {
        if (df_highlevel_stat_file(frame, file, &st))
            return false;
        *size = st.st_size;
    }
    atomic_store_explicit(&df_handle_of(file)->vouched, *size, memory_order_relaxed);
    return true;
}

/* The bytes of a file that there are: `end` is past the size that getattr has told so far. */
static DF_COLD ssize_t cut(struct df_frame *frame, struct df_file *file, ssize_t got, off_t end)
{
    off_t offset = end - got, size;

    if (!known_size(frame, file, &size))
        return got;
    return end <= size ? got : offset < size ? size - offset : 0;
}

/* The page cache asks for nothing behind the end of a file, so a plugin may have no good answer to
 * that, as in the node lane. `error` is what it said. */
static DF_COLD ssize_t refused(struct df_frame *frame, struct df_file *file, off_t offset,
                               ssize_t error)
{
    off_t size;

    return error != -EINTR && known_size(frame, file, &size) && offset >= size ? 0 : error;
}

/* The page cache ends where getattr says that the file does; so do reads, but for direct_io. */
static DF_FLAT ssize_t inside(struct df_frame *frame, struct df_file *file, ssize_t got,
                              off_t offset)
{
    off_t vouched = atomic_load_explicit(&df_handle_of(file)->vouched, memory_order_relaxed);

    if (DF_UNLIKELY(got < 0))
        return refused(frame, file, offset, got);
    if (DF_LIKELY(got == 0 || got <= vouched - offset))
        return got;
    return cut(frame, file, got, offset + got);
}

ssize_t df_highlevel_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t offset)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;
    struct access access = {.frame = &frame, .file = file};
    ssize_t result;

    df_gate_rest(call->thread);
    df_frame_enter(&frame, hl, call);
    access.path = df_handle_hold(&frame, file);
    if (df_handle_lost(&frame, access.path))
        result = -ENOENT;
    else if (DF_LIKELY(iovcnt == 1 && hl->ops.read && iov->iov_len <= hl->max_read))
        result = iov->iov_len ? read_one(&access, iov->iov_base, iov->iov_len, offset) : 0;
    else if (hl->ops.read || hl->ops.read_buf)
        result = read_pieces(&access, iov, iovcnt, offset);
    else
        result = -ENOSYS;
    df_handle_unhold(&frame, file);
    result = inside(&frame, file, result, offset);
    if (hl->attr_ns)
        df_highlevel_accessed(hl, df_open_path_key(df_handle_of(file)->node));
    df_frame_leave(&frame);
    df_gate_rise(call->thread);
    return result;
}

/* ---- holes ---- */

/* Without the plugin's help a file is data up to its end. */
static off_t seek_without_holes(struct df_frame *frame, struct df_file *file, off_t offset,
                                int whence)
{
    struct stat st;
    int result = df_highlevel_stat_file(frame, file, &st);

    if (result)
        return result;
    if (offset < 0 || offset >= st.st_size)
        return -ENXIO;
    return whence == SEEK_HOLE ? st.st_size : offset;
}

off_t df_highlevel_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                         int whence)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_handle *handle = df_handle_of(file);
    struct df_frame frame;
    union df_file_info fi;
    off_t result = -ENOSYS;

    df_frame_enter(&frame, hl, call);
    if (hl->ops.lseek && !df_highlevel_lacks(hl, DF_MISSING_LSEEK)) {
        df_handle_info(&frame, file, &fi);
        const char *path = df_frame_hold(&frame, handle->node); /* wanted by libfuse, always */
        result = path ? df_answer_count(hl->ops.lseek(path, offset, whence, &fi.info)) : -ENOENT;
        df_frame_unhold(&frame, handle->node);
        if (result == -ENOSYS)
            df_highlevel_miss(hl, DF_MISSING_LSEEK);
    }
    if (result == -ENOSYS)
        result = seek_without_holes(&frame, file, offset, whence);
    df_frame_leave(&frame);
    return result;
}

/* ---- sync ---- */

int df_highlevel_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file, bool datasync)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    bool directory = file->kind == DF_KIND_DIRECTORY;
    uint32_t missing = directory ? DF_MISSING_FSYNCDIR : DF_MISSING_FSYNC;
    int (*op)(const char *, int, struct fuse_file_info *) =
        directory ? hl->ops.fsyncdir : hl->ops.fsync;
    struct df_frame frame;
    union df_file_info fi;

    if (!op || df_highlevel_lacks(hl, missing))
        return 0; /* nothing to sync: what the kernel makes of ENOSYS */
    df_frame_enter(&frame, hl, call);
    df_handle_info(&frame, file, &fi);
    const char *path = df_handle_hold(&frame, file);
    int result =
        df_handle_lost(&frame, path) ? -ENOENT : df_answer_error(op(path, datasync, &fi.info));
    df_handle_unhold(&frame, file);
    df_frame_leave(&frame);
    if (result == -ENOSYS) {
        df_highlevel_miss(hl, missing);
        result = 0;
    }
    return result;
}
