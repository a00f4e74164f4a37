/*
 * open.c - opening what is there; flush and release.
 *
 * The order of questions is that of path_openat() and do_open() of the kernel.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/open_traits.h"
#include "host/permission.h"
#include "host/pollhandle.h"
#include "lowlevel/changes.h"
#include "lowlevel/open.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"
#include "nodes/path.h"

/* ---- the open file ------------------------------------------------------------------------- */

static bool writes(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

static uint8_t kind_of(const struct df_node *node)
{
    if (S_ISREG(node->type))
        return DF_KIND_REGULAR;
    return df_node_is_dir(node) ? DF_KIND_DIRECTORY : DF_KIND_OTHER;
}

/* What FUSE_OPEN says. The kernel keeps what is opened without asking; FLUSH is not for
 * directories, nor for those who have said that they lack it. */
static uint8_t traits_of(const struct df_lowlevel *lane, const struct fuse_file_info *fi,
                         bool asked, uint8_t kind)
{
    bool flushes = kind == DF_KIND_REGULAR && !df_lowlevel_lacks(lane, DF_LACKS_FLUSH);

    return df_open_traits(fi, lane->want) | (asked ? 0 : DF_FILE_KEEP | DF_FILE_LISTS) |
           (flushes ? 0 : DF_FILE_NOFLUSH);
}

void df_lowlevel_fill_file(const struct df_opening *opening, struct df_node *node, int flags,
                           const struct fuse_file_info *fi, bool has_handle)
{
    struct df_file *file = opening->file;

    file->host[DF_FILE_NODE] = (uint64_t)(uintptr_t)node;
    file->host[DF_FILE_FH] = fi->fh;
    file->host[DF_FILE_BITS] = has_handle ? DF_FILE_HAS_HANDLE : 0;
    file->host[DF_FILE_FLAGS] = (uint64_t)(unsigned)flags;
    file->host[DF_FILE_FLOCK_OWNER] = 0;
    file->host[DF_FILE_POLL] = 0;
    file->kind = kind_of(node);
    file->traits = traits_of(opening->lane, fi, has_handle, file->kind);
    file->ino = node->id; /* files that share a node share their locks */
    file->body = node->serial;
}

/* ---- OPEN, OPENDIR, RELEASE, RELEASEDIR ---------------------------------------------------- */

static int send_open(const struct df_opening *opening, struct df_node *node,
                     struct fuse_file_info *fi, bool *has_handle)
{
    struct df_lowlevel *lane = opening->lane;
    bool dir = df_node_is_dir(node);
    uint32_t lack = dir ? DF_LACKS_OPENDIR : DF_LACKS_OPEN;
    struct fuse_req req;
    int result;

    *has_handle = true;
    if (!(dir ? lane->ops.opendir : lane->ops.open))
        return 0; /* libfuse answers for it: handle 0 */
    *has_handle = !df_lowlevel_lacks(lane, lack);
    if (!*has_handle)
        return 0;
    df_request_begin(&req, lane, opening->call, DF_TAKES_OPEN);
    req.fi = fi;
    result =
        (int)(dir ? DF_REQUEST(&req, opendir, node->id, fi) : DF_REQUEST(&req, open, node->id, fi));
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, lack);
    *has_handle = false;
    fi->fh = 0;
    return 0;
}

void df_lowlevel_send_release(struct df_lowlevel *lane, struct df_call *call, uint64_t id, bool dir,
                              struct fuse_file_info *fi)
{
    struct fuse_req req;

    if (!(dir ? lane->ops.releasedir : lane->ops.release))
        return;
    df_request_begin(&req, lane, call, DF_TAKES_OK);
    if (dir)
        DF_REQUEST(&req, releasedir, id, fi);
    else
        DF_REQUEST(&req, release, id, fi);
}

/* ---- what is there ------------------------------------------------------------------------- */

static int check_noatime(const struct df_opening *opening, struct df_node *node)
{
    struct stat st;
    int result;

    if (!(opening->flags & O_NOATIME) || opening->call->caller->capable)
        return 0;
    result = df_lowlevel_attr(opening->lane, opening->call, node, NULL, DF_ATTR_OWNER, &st);
    return result < 0 ? result : st.st_uid == opening->call->caller->uid ? 0 : -EPERM;
}

/* may_open() of the kernel. */
static int check_open(const struct df_opening *opening, struct df_node *node)
{
    int flags = opening->flags, result;

    if (df_node_has(node, DF_NODE_BAD))
        return -EIO;
    if (df_node_is_dir(node) && (writes(flags) || (flags & O_CREAT)))
        return -EISDIR;
    if (!df_node_is_dir(node) && (flags & O_DIRECTORY))
        return -ENOTDIR;
    if (S_ISLNK(node->type))
        return -ELOOP;
    result = df_lowlevel_permit(opening->lane, opening->call, node, df_permission_of_open(flags));
    if (result == 0)
        result = check_noatime(opening, node);
    if (result == 0 && !df_node_is_dir(node) && !S_ISREG(node->type))
        return -ENXIO; /* FIFOs, sockets and devices belong to the kernel */
    return result;
}

/* O_TRUNC of a plugin that wants it as SETATTR: after OPEN, without the handle. */
static int truncate_opened(const struct df_opening *opening, struct df_node *node)
{
    struct df_target target = {.lane = opening->lane, .call = opening->call, .node = node};
    struct df_setattr set = {.valid = DF_SET_SIZE, .size = 0};
    struct stat st;

    if (!(opening->flags & O_TRUNC))
        return 0;
    if (!opening->lane->atomic_truncate)
        return df_lowlevel_change(&target, &set, &st);
    df_node_attr_truncated(node);
    return 0;
}

int df_lowlevel_open_node(const struct df_opening *opening, struct df_node *node)
{
    int flags = opening->flags & ~(O_CREAT | O_EXCL | O_NOCTTY);
    union df_file_info info;
    bool has_handle;
    int result;

    if (flags & O_TRUNC)
        DF_TELL_ATTR(opening->call, node, false);
    if (!opening->lane->atomic_truncate)
        flags &= ~O_TRUNC;
    memset(&info, 0, sizeof(info));
    info.fi.flags = flags;
    result = send_open(opening, node, &info.fi, &has_handle);
    if (result < 0)
        return result;
    result = truncate_opened(opening, node);
    if (result < 0) {
        info.fi.flags = flags & ~O_TRUNC;
        if (has_handle)
            df_lowlevel_send_release(opening->lane, opening->call, node->id, df_node_is_dir(node),
                                     &info.fi);
        return result;
    }
    df_lowlevel_fill_file(opening, node, flags & ~O_TRUNC, &info.fi, has_handle);
    return 0;
}

int df_lowlevel_open_existing(const struct df_opening *opening, struct df_node *node)
{
    int result = check_open(opening, node);

    return result < 0 ? result : df_lowlevel_open_node(opening, node);
}

static int open_path(const struct df_opening *opening, struct df_node *node)
{
    const struct fuse_file_info none = {0};

    if ((opening->flags & O_DIRECTORY) && !df_node_is_dir(node))
        return -ENOTDIR;
    df_lowlevel_fill_file(opening, node, opening->flags, &none, false);
    return 0;
}

static int open_object(const struct df_opening *opening, const struct df_where *where,
                       bool revalidate)
{
    struct df_nodes *nodes = &opening->lane->nodes;
    struct df_node_spot spot;
    int result = df_node_walk_object(nodes, opening->call, where, revalidate, &spot);

    if (result != 0)
        return result;
    if (!spot.held) /* openat() with an empty name: another reference for another file */
        df_node_hold(spot.node);
    result = opening->flags & O_PATH ? open_path(opening, spot.node)
                                     : df_lowlevel_open_existing(opening, spot.node);
    if (result < 0)
        df_node_put(nodes, spot.node);
    return result;
}

/* ---- the ops ------------------------------------------------------------------------------- */

static int open_once(const struct df_opening *opening, const struct df_where *where,
                     bool revalidate)
{
    return opening->flags & O_CREAT ? df_lowlevel_open_creating(opening, where, revalidate)
                                    : open_object(opening, where, revalidate);
}

int df_lowlevel_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                     struct df_file *file, int flags, mode_t mode)
{
    struct df_opening opening = {df_lowlevel_of(fs), call, file, flags, mode};
    int result = df_lowlevel_enter(opening.lane, call);

    if (result < 0)
        return result;
    df_lowlevel_tells(call);
    result = open_once(&opening, where, false);
    if (result == -ESTALE)
        result = open_once(&opening, where, true);
    df_lowlevel_leave(opening.lane);
    return result;
}

int df_lowlevel_flush(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    union df_file_info info;
    struct fuse_file_info *fi;
    struct fuse_req req;
    int result;

    if (file->kind != DF_KIND_REGULAR || df_lowlevel_lacks(lane, DF_LACKS_FLUSH))
        return 0;
    fi = df_lowlevel_handle(&info, file);
    fi->flush = 1;
    fi->lock_owner = owner;
    df_request_begin(&req, lane, call, DF_TAKES_OK);
    result = (int)DF_REQUEST(&req, flush, df_node_of_file(file)->id, fi);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, DF_LACKS_FLUSH);
    return 0;
}

void df_lowlevel_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    struct df_node *node = df_node_of_file(file);
    union df_file_info info;

    if (df_lowlevel_file_has(file, DF_FILE_HAS_HANDLE)) {
        df_lowlevel_handle(&info, file);
        info.fi.flags = (int)file->host[DF_FILE_FLAGS];
        if (df_lowlevel_file_has(file, DF_FILE_HAS_FLOCK)) {
            info.fi.flock_release = 1;
            info.fi.lock_owner = file->host[DF_FILE_FLOCK_OWNER];
        }
        df_lowlevel_send_release(lane, call, node->id, df_node_is_dir(node), &info.fi);
    }
    df_pollnode_release((struct df_pollnode *)(uintptr_t)file->host[DF_FILE_POLL]);
    df_node_put(&lane->nodes, node);
}

ssize_t df_lowlevel_path(struct df_fs *fs, struct df_call *call, struct df_file *file, char *buf,
                         size_t size)
{
    (void)call;
    return df_node_path(&df_lowlevel_of(fs)->nodes, df_node_of_file(file), buf, size);
}
