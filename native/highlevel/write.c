/*
 * write.c - changing the data of an open file: write and append, fallocate,
 * copy_file_range.
 *
 * Changes of one file go one after the other, under its node's data_lock, as under the kernel's
 * inode lock: an append finds the end and writes there with no other change in between.
 */
#include <fcntl.h>

#include "core/check.h"
#include "highlevel/handle.h"
#include "host/iov_piece.h"
#include "host/permission.h"
#include "host/sane.h"

/* An operation's view of an open file. */
struct access {
    struct df_frame *frame;
    struct df_file *file;
    const char *path; /* for the plugin; held when not NULL */
    union df_file_info fi;
};

/* The size now, as the plugin or live cached attributes say; one below zero is EIO, as wherever
 * attributes are told. */
static off_t size_now(struct access *access)
{
    struct df_frame *frame = access->frame;
    struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(access->file);
    union df_file_info fi = access->fi;
    struct stat st = {0};
    off_t size;

    if (df_highlevel_kept_size(frame, access->file, &size))
        return size;
    if (!hl->ops.getattr)
        return -ENOSYS;
    if (!access->path && !hl->bears_null)
        return -ENOENT; /* getattr is not called so */
    bool by_handle = handle->bits & DF_HANDLE_PLUGIN;
    int result = df_answer_error(hl->ops.getattr(by_handle ? access->path : handle->node->path, &st,
                                                 by_handle ? &fi.info : NULL));
    if (result == 0 && st.st_size < 0)
        result = -EIO;
    return result ? result : st.st_size;
}

static ssize_t write_one(struct access *access, const struct iovec *iov, off_t offset)
{
    const struct fuse_operations *ops = &access->frame->hl->ops;
    union df_file_info fi = access->fi;
    union df_bufvec vec;

    if (ops->write)
        return ops->write(access->path, iov->iov_base, iov->iov_len, offset, &fi.info);
    df_bufvec_show(&vec, iov, 1);
    return ops->write_buf(access->path, &vec.vec, offset, &fi.info);
}

static ssize_t write_piece(struct access *access, struct df_iov_piece *piece, off_t offset)
{
    const struct fuse_operations *ops = &access->frame->hl->ops;
    union df_file_info fi = access->fi;
    union df_bufvec vec;
    size_t done = 0;

    if (piece->count == 1)
        return write_one(access, piece->iov, offset);
    if (ops->write_buf) {
        df_bufvec_show(&vec, piece->iov, piece->count);
        return ops->write_buf(access->path, &vec.vec, offset, &fi.info);
    }
    for (int i = 0; i < piece->count; i++) {
        if (piece->iov[i].iov_len == 0)
            continue;
        ssize_t put = write_one(access, &piece->iov[i], offset + (off_t)done);
        if (put < 0)
            return done ? (ssize_t)done : put;
        done += (size_t)put;
        if ((size_t)put < piece->iov[i].iov_len)
            break;
    }
    return (ssize_t)done;
}

/* A plugin that took fewer bytes than it got has written those; none at all is EIO, as in
 * fuse_perform_write(), but for direct_io. */
static ssize_t written(const struct access *access, ssize_t put, size_t size)
{
    if (put == 0)
        return access->file->traits & DF_FILE_DIRECT ? 0 : -EIO;
    return put > 0 && (size_t)put > size ? -EIO : df_answer_count(put);
}

static ssize_t write_pieces(struct access *access, const struct iovec *iov, int count, off_t offset)
{
    struct df_iov_rest rest = {.iov = iov, .count = count};
    struct df_iov_piece piece;
    size_t done = 0;

    for (;;) {
        df_iov_cut(&piece, &rest, access->frame->hl->max_write);
        if (piece.size == 0)
            break;
        ssize_t put =
            written(access, write_piece(access, &piece, offset + (off_t)done), piece.size);
        if (put < 0)
            return done ? (ssize_t)done : put;
        done += (size_t)put;
        if ((size_t)put < piece.size)
            break;
    }
    return (ssize_t)done;
}

/* The usual write: one buffer, one operation. */
static DF_FLAT ssize_t write_all(struct access *access, const struct iovec *iov, int count,
                                 off_t offset)
{
    struct df_highlevel *hl = access->frame->hl;
    size_t size = iov->iov_len;

    if (DF_UNLIKELY(count != 1 || !hl->ops.write || size == 0 || size > hl->max_write))
        return write_pieces(access, iov, count, offset);
    return written(
        access, hl->ops.write(access->path, iov->iov_base, size, offset, &access->fi.info), size);
}

/* The plugin's chmod of an open file, by its handle where it has one. */
static int change_mode(struct df_frame *frame, struct df_file *file, mode_t mode)
{
    struct df_handle *handle = df_handle_of(file);
    struct df_highlevel *hl = frame->hl;
    bool by_handle = handle->bits & DF_HANDLE_PLUGIN;
    bool nullpath_ok = by_handle && hl->config.nullpath_ok && !hl->needs_paths;
    union df_file_info fi;
    int result = -ENOENT;

    df_handle_info(frame, file, &fi);
    const char *path = df_frame_hold(frame, handle->node);
    if (path || nullpath_ok)
        result = df_answer_error(
            hl->ops.chmod(nullpath_ok ? NULL : path, mode, by_handle ? &fi.info : NULL));
    df_frame_unhold(frame, handle->node);
    df_handle_changed(frame, file);
    return result;
}

/* Before the first write through a handle that strips_privileges: setuid and setgid go. */
static __attribute__((noinline)) int strip(struct df_frame *frame, struct df_file *file)
{
    struct stat st;
    int result = df_highlevel_stat_file(frame, file, &st);

    if (df_handle_is_mute(frame, file, result))
        result = 0;
    else if (result == 0 && df_check_strip(st.st_mode) != st.st_mode && frame->hl->ops.chmod)
        result = df_permission_stripped(frame->call,
                                        change_mode(frame, file, df_check_strip(st.st_mode)));
    atomic_fetch_and(&df_handle_of(file)->bits, ~(uint32_t)DF_HANDLE_STRIPS);
    return result;
}

static DF_FLAT int strip_privileges(struct df_frame *frame, struct df_file *file)
{
    return df_handle_of(file)->bits & DF_HANDLE_STRIPS ? strip(frame, file) : 0;
}

/* When the plugin gets the path, or when the file has no handle but that. */
static DF_FLAT bool holds_path(const struct access *access)
{
    return !access->frame->hl->config.nullpath_ok ||
           !(df_handle_of(access->file)->bits & DF_HANDLE_PLUGIN);
}

/* Holds the path and the data; neither if it fails. */
static DF_FLAT int begin_change(struct access *access)
{
    struct df_open_path *node = df_handle_of(access->file)->node;

    df_handle_info(access->frame, access->file, &access->fi);
    access->path = holds_path(access) ? df_frame_hold(access->frame, node) : NULL;
    int result = df_frame_lock_data(access->frame, node);
    if (DF_UNLIKELY(result) && holds_path(access))
        df_frame_unhold(access->frame, node);
    return result;
}

/* begin_change() found no path for a plugin that needs one. */
static DF_FLAT bool lost(const struct access *access)
{
    return df_handle_lost(access->frame, access->path);
}

static DF_FLAT void end_change(struct access *access)
{
    struct df_open_path *node = df_handle_of(access->file)->node;

    df_handle_changed(access->frame, access->file);
    df_frame_unlock_data(access->frame, node);
    if (holds_path(access))
        df_frame_unhold(access->frame, node);
}

static DF_FLAT ssize_t write_file(struct df_frame *frame, struct df_file *file,
                                  const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct access access = {.frame = frame, .file = file};
    ssize_t result = strip_privileges(frame, file);
    bool appends;

    if (result == 0)
        result = begin_change(&access);
    if (result)
        return result;
    appends = df_call_appends(frame->call, access.fi.info.flags);
    access.fi.info.writepage = frame->call->writes_back;
    if (!appends)
        access.fi.info.flags &= ~O_APPEND;
    if (lost(&access)) {
        result = -ENOENT;
    } else if (appends) {
        off_t size = df_append_start(size_now(&access));
        result = size < 0 ? size : 0;
        *offset = size < 0 ? *offset : size;
    }
    if (result == 0)
        result = write_all(&access, iov, iovcnt, *offset);
    end_change(&access);
    return result;
}

ssize_t df_highlevel_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t *offset)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    if (!hl->ops.write && !hl->ops.write_buf)
        return -ENOSYS;
    df_frame_enter(&frame, hl, call);
    ssize_t result = write_file(&frame, file, iov, iovcnt, offset);
    df_frame_leave(&frame);
    return result;
}

/* ---- allocation, copying ---- */

static int allocate(struct df_frame *frame, struct df_file *file, int mode, off_t offset,
                    off_t length)
{
    struct df_highlevel *hl = frame->hl;
    struct access access = {.frame = frame, .file = file};
    int result = strip_privileges(frame, file);

    if (result == 0)
        result = begin_change(&access);
    if (result)
        return result;
    result = lost(&access) ? -ENOENT
                           : df_answer_error(hl->ops.fallocate(access.path, mode, offset, length,
                                                               &access.fi.info));
    end_change(&access);
    if (result == -ENOSYS) {
        df_highlevel_miss(hl, DF_MISSING_FALLOCATE);
        result = -EOPNOTSUPP;
    }
    return result;
}

int df_highlevel_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                           off_t offset, off_t length)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) ||
        !hl->ops.fallocate || df_highlevel_lacks(hl, DF_MISSING_FALLOCATE))
        return -EOPNOTSUPP;
    df_frame_enter(&frame, hl, call);
    int result = allocate(&frame, file, mode, offset, length);
    df_frame_leave(&frame);
    return result;
}

/* The input's node is held beside the output's; a reader may. */
static ssize_t copy(struct df_frame *frame, struct df_file *in, off_t offset_in,
                    struct df_file *out, off_t offset_out, size_t size, unsigned flags)
{
    struct df_highlevel *hl = frame->hl;
    struct df_open_path *node_in = df_handle_of(in)->node;
    bool held = !hl->config.nullpath_ok && node_in != df_handle_of(out)->node;
    struct access access = {.frame = frame, .file = out};
    union df_file_info fi_in;

    df_handle_info(frame, in, &fi_in);
    ssize_t result = begin_change(&access);
    if (result)
        return result;
    const char *path_in = held ? df_frame_hold(frame, node_in) : access.path;
    result = -ENOENT;
    if (!lost(&access) && !df_handle_lost(frame, path_in))
        result = hl->ops.copy_file_range(path_in, &fi_in.info, offset_in, access.path,
                                         &access.fi.info, offset_out, size, (int)flags);
    if (held)
        df_frame_unhold(frame, node_in);
    end_change(&access);
    return result > 0 && (size_t)result > size ? -EIO : df_answer_count(result);
}

ssize_t df_highlevel_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                     off_t offset_in, struct df_file *out, off_t offset_out,
                                     size_t size, unsigned flags)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    if (!hl->ops.copy_file_range || df_highlevel_lacks(hl, DF_MISSING_COPY))
        return -EOPNOTSUPP;
    df_frame_enter(&frame, hl, call);
    ssize_t result = strip_privileges(&frame, out);
    if (result == 0)
        result = copy(&frame, in, offset_in, out, offset_out, size, flags);
    df_frame_leave(&frame);
    if (result == -ENOSYS) {
        df_highlevel_miss(hl, DF_MISSING_COPY);
        result = -EOPNOTSUPP;
    }
    return result;
}
