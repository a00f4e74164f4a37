/*
 * requests_node.c - requests about names, attributes and extended attributes.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "extension.h"
#include "forget.h"
#include "requests.h"

void request_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct message message = REQUEST(FUSE_LOOKUP, parent);

    request_add_name(&message, name);
    request_send(req, &message);
}

/* ---- forgetting ------------------------------------------------------------------------------ */

void request_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    const struct fuse_forget_one one = {.nodeid = ino, .nlookup = count};

    forget_send(fuse_req_userdata(req), req, &one, 1);
    fuse_reply_none(req);
}

_Static_assert(sizeof(struct fuse_forget_data) == sizeof(struct fuse_forget_one) &&
                   offsetof(struct fuse_forget_data, nlookup) ==
                       offsetof(struct fuse_forget_one, nlookup),
               "lists of nodes are passed on as they are");

void request_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    forget_send(fuse_req_userdata(req), req, (const struct fuse_forget_one *)forgets, count);
    fuse_reply_none(req);
}

/* ---- attributes ------------------------------------------------------------------------------ */

void request_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_getattr_in in = {0};
    struct message message = REQUEST(FUSE_GETATTR, ino);

    if (fi) {
        in.getattr_flags = FUSE_GETATTR_FH;
        in.fh = handle_fh(fi);
    }
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi)
{
    struct protocol_statx_in in = {.sx_flags = (uint32_t)flags, .sx_mask = (uint32_t)mask};
    struct message message = REQUEST(PROTOCOL_STATX, ino);

    if (fi) {
        in.getattr_flags = FUSE_GETATTR_FH;
        in.fh = handle_fh(fi);
    }
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* FUSE_SET_ATTR_* of libfuse and FATTR_* of the protocol are the same bits. */
_Static_assert(FUSE_SET_ATTR_MODE == FATTR_MODE && FUSE_SET_ATTR_UID == FATTR_UID &&
                   FUSE_SET_ATTR_GID == FATTR_GID && FUSE_SET_ATTR_SIZE == FATTR_SIZE &&
                   FUSE_SET_ATTR_ATIME == FATTR_ATIME && FUSE_SET_ATTR_MTIME == FATTR_MTIME &&
                   FUSE_SET_ATTR_ATIME_NOW == FATTR_ATIME_NOW &&
                   FUSE_SET_ATTR_MTIME_NOW == FATTR_MTIME_NOW,
               "what to set is passed on as it is");

void request_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                     struct fuse_file_info *fi)
{
    struct fuse_setattr_in in = {
        .valid = (uint32_t)to_set & (FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_SIZE | FATTR_ATIME |
                                     FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW),
        .size = (uint64_t)attr->st_size,
        .atime = (uint64_t)attr->st_atim.tv_sec,
        .mtime = (uint64_t)attr->st_mtim.tv_sec,
        .atimensec = (uint32_t)attr->st_atim.tv_nsec,
        .mtimensec = (uint32_t)attr->st_mtim.tv_nsec,
        .mode = attr->st_mode,
        .uid = attr->st_uid,
        .gid = attr->st_gid,
    };
    struct message message = REQUEST(FUSE_SETATTR, ino, .changes = in.valid & FATTR_SIZE ? ino : 0);

    if (fi) {
        in.valid |= FATTR_FH;
        in.fh = handle_fh(fi);
    }
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
    struct fuse_access_in in = {.mask = (uint32_t)mask};
    struct message message = REQUEST(FUSE_ACCESS, ino);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct message message = REQUEST(FUSE_READLINK, ino);

    request_send(req, &message);
}

void request_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct message message = REQUEST(FUSE_STATFS, ino);

    request_send(req, &message);
}

/* ---- names: making
 * ----------------------------------------------------------------------------------- */

void request_make(fuse_req_t req, struct message *message)
{
    struct channel *channel = fuse_req_userdata(req);
    struct extension room;
    int error = extension_add(channel, req, message, &room);

    if (error)
        fuse_reply_err(req, error);
    else
        channel_send(channel, req, message);
}

void request_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct fuse_mknod_in in = {
        .mode = mode, .rdev = (uint32_t)rdev, .umask = fuse_req_ctx(req)->umask};
    const struct channel *channel = fuse_req_userdata(req);
    struct message message = REQUEST(FUSE_MKNOD, parent);

    request_add(&message, &in,
                channel->minor < PROTOCOL_UMASK_MINOR ? offsetof(struct fuse_mknod_in, umask)
                                                      : sizeof(in));
    request_add_name(&message, name);
    request_make(req, &message);
}

void request_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct fuse_mkdir_in in = {.mode = mode, .umask = fuse_req_ctx(req)->umask};
    struct message message = REQUEST(FUSE_MKDIR, parent);

    request_add(&message, &in, sizeof(in));
    request_add_name(&message, name);
    request_make(req, &message);
}

void request_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct message message = REQUEST(FUSE_SYMLINK, parent);

    request_add_name(&message, name);
    request_add_name(&message, target);
    request_make(req, &message);
}

void request_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct fuse_link_in in = {.oldnodeid = ino};
    struct message message = REQUEST(FUSE_LINK, parent);

    request_add(&message, &in, sizeof(in));
    request_add_name(&message, name);
    request_send(req, &message);
}

static void remove_entry(fuse_req_t req, uint32_t opcode, fuse_ino_t parent, const char *name)
{
    struct message message = REQUEST(opcode, parent);

    release_settle(fuse_req_userdata(req), req);
    request_add_name(&message, name);
    request_send(req, &message);
}

void request_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_entry(req, FUSE_UNLINK, parent, name);
}

void request_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_entry(req, FUSE_RMDIR, parent, name);
}

/* Servers before 7.23 know renames without flags only. */
void request_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                    const char *new_name, unsigned flags)
{
    struct channel *channel = fuse_req_userdata(req);
    struct fuse_rename2_in in2 = {.newdir = new_parent, .flags = flags};
    struct fuse_rename_in in = {.newdir = new_parent};
    struct message message = REQUEST(flags ? FUSE_RENAME2 : FUSE_RENAME, parent);

    if (flags && channel->minor < 23) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    release_settle(channel, req);
    if (flags)
        request_add(&message, &in2, sizeof(in2));
    else
        request_add(&message, &in, sizeof(in));
    request_add_name(&message, name);
    request_add_name(&message, new_name);
    request_send(req, &message);
}

/* ---- extended attributes --------------------------------------------------------------------- */

void request_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                      size_t size, int flags)
{
    const struct channel *channel = fuse_req_userdata(req);
    struct fuse_setxattr_in in = {.size = (uint32_t)size, .flags = (uint32_t)flags};
    struct message message = REQUEST(FUSE_SETXATTR, ino);

    request_add(&message, &in,
                channel->flags & FUSE_SETXATTR_EXT ? sizeof(in) : FUSE_COMPAT_SETXATTR_IN_SIZE);
    request_add_name(&message, name);
    request_add(&message, value, size);
    request_send(req, &message);
}

void request_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct fuse_getxattr_in in = {.size = (uint32_t)size};
    struct message message = REQUEST(FUSE_GETXATTR, ino, .room = size);

    request_add(&message, &in, sizeof(in));
    request_add_name(&message, name);
    request_send(req, &message);
}

void request_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct fuse_getxattr_in in = {.size = (uint32_t)size};
    struct message message = REQUEST(FUSE_LISTXATTR, ino, .room = size);

    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

void request_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct message message = REQUEST(FUSE_REMOVEXATTR, ino);

    request_add_name(&message, name);
    request_send(req, &message);
}
