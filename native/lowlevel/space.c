/*
 * space.c - where a file's bytes are: lseek for data and holes, fsync, fallocate,
 * copy_file_range.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "lowlevel/changes.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"

#define COPY_MAX ((size_t)0xfffff000) /* bytes of one request: the answer has 32 bits */

/* ---- lseek --------------------------------------------------------------------------------- */

/* A file without holes has one behind its end. */
static off_t seek_generic(struct df_lowlevel *lane, struct df_call *call, struct df_file *file,
                          off_t offset, int whence)
{
    struct stat st;
    int result = df_lowlevel_attr(lane, call, df_node_of_file(file), file, DF_ATTR_SIZE, &st);

    if (result < 0)
        return result;
    if (offset < 0 || offset >= st.st_size)
        return -ENXIO;
    return whence == SEEK_DATA ? offset : st.st_size;
}

off_t df_lowlevel_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                        int whence)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;
    off_t result;

    if (df_lowlevel_lacks(lane, DF_LACKS_LSEEK))
        return seek_generic(lane, call, file, offset, whence);
    df_request_begin(&req, lane, call, DF_TAKES_LSEEK);
    result = DF_REQUEST(&req, lseek, df_node_of_file(file)->id, offset, whence, fi);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, DF_LACKS_LSEEK);
    return seek_generic(lane, call, file, offset, whence);
}

/* ---- fsync --------------------------------------------------------------------------------- */

int df_lowlevel_fsync(struct df_fs *fs, struct df_call *call, struct df_file *file, bool datasync)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    uint64_t id = df_node_of_file(file)->id;
    bool dir = file->kind == DF_KIND_DIRECTORY;
    uint32_t lack = dir ? DF_LACKS_FSYNCDIR : DF_LACKS_FSYNC;
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, file);
    struct fuse_req req;
    int result;

    if (df_lowlevel_lacks(lane, lack))
        return 0;
    df_request_begin(&req, lane, call, DF_TAKES_OK);
    result = (int)(dir ? DF_REQUEST(&req, fsyncdir, id, datasync, fi)
                       : DF_REQUEST(&req, fsync, id, datasync, fi));
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, lack);
    return 0;
}

/* ---- fallocate ----------------------------------------------------------------------------- */

static int send_fallocate(const struct df_target *target, int mode, off_t offset, off_t length)
{
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, target->file);
    struct fuse_req req;
    int result = df_lowlevel_strip(target);

    if (result < 0)
        return result;
    df_request_begin(&req, target->lane, target->call, DF_TAKES_OK);
    result = (int)DF_REQUEST(&req, fallocate, target->node->id, mode, offset, length, fi);
    if (result == 0 && !(mode & FALLOC_FL_KEEP_SIZE))
        df_node_attr_wrote(target->node, offset + length);
    else if (result == 0)
        df_node_attr_forget(target->node, DF_ATTR_TIMES);
    return result;
}

int df_lowlevel_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                          off_t offset, off_t length)
{
    struct df_target target = {df_lowlevel_of(fs), call, df_node_of_file(file), file};
    struct df_node_held held;
    int result;

    if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) ||
        df_lowlevel_lacks(target.lane, DF_LACKS_FALLOCATE))
        return -EOPNOTSUPP;
    result = df_node_held_take(&held, &target.lane->nodes, &target.node->lock, false);
    if (result < 0)
        return result;
    result = send_fallocate(&target, mode, offset, length);
    df_node_held_give(&held);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(target.lane, DF_LACKS_FALLOCATE);
    return -EOPNOTSUPP;
}

/* ---- copy_file_range ----------------------------------------------------------------------- */

static ssize_t send_copy(const struct df_target *target, struct df_file *in, off_t offset_in,
                         off_t offset, size_t size, unsigned flags)
{
    union df_file_info info_in, info;
    struct fuse_file_info *fi_in = df_lowlevel_handle(&info_in, in);
    struct fuse_file_info *fi = df_lowlevel_handle(&info, target->file);
    struct fuse_req req;
    ssize_t result = df_lowlevel_strip(target);

    if (result < 0)
        return result;
    if (size > COPY_MAX)
        size = COPY_MAX;
    df_request_begin(&req, target->lane, target->call, DF_TAKES_WRITE);
    req.room = size;
    result = DF_REQUEST(&req, copy_file_range, df_node_of_file(in)->id, offset_in, fi_in,
                        target->node->id, offset, fi, size, (int)flags);
    if (result > 0)
        df_node_attr_wrote(target->node, offset + result);
    df_node_attr_accessed(&target->lane->nodes, df_node_of_file(in));
    return result;
}

ssize_t df_lowlevel_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                    off_t offset_in, struct df_file *out, off_t offset_out,
                                    size_t size, unsigned flags)
{
    struct df_target target = {df_lowlevel_of(fs), call, df_node_of_file(out), out};
    struct df_node_held held;
    ssize_t result;

    df_lowlevel_tells(call);
    if (df_lowlevel_lacks(target.lane, DF_LACKS_COPY))
        return -EOPNOTSUPP;
    DF_TELL_ATTR(call, target.node, false);
    DF_TELL_ATTR(call, df_node_of_file(in), false);
    result = df_node_held_take(&held, &target.lane->nodes, &target.node->lock, false);
    if (result < 0)
        return result;
    result = send_copy(&target, in, offset_in, offset_out, size, flags);
    df_node_held_give(&held);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(target.lane, DF_LACKS_COPY);
    return -EOPNOTSUPP;
}
