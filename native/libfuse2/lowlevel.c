/*
 * lowlevel.c - FUSE 2's low-level operations behind FUSE 3's, and its sessions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "libfuse2/abi2.h"

static struct fuse2_session *session_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void do_init(void *data, struct fuse_conn_info *conn)
{
    struct fuse2_session *se = data;
    struct fuse2_conn_info shown =
        df2_conn_in(conn, &se->conn, se->ops.getlk && se->ops.setlk, se->ops.flock != NULL);
    if (se->ops.init)
        se->ops.init(se->userdata, &shown);
    df2_conn_out(conn, &shown);
}

static void do_destroy(void *data)
{
    struct fuse2_session *se = data;
    if (se->ops.destroy)
        se->ops.destroy(se->userdata);
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned flags)
{
    if (flags)
        fuse_reply_err(req, EINVAL);
    else
        session_of(req)->ops.rename(req, parent, name, newparent, newname);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    session_of(req)->ops.forget(req, ino, count);
}

/* Operations with a file info, which the plugin may lack (NULL). */
#define WITH_INFO(name, parameters, arguments)                                                     \
    static void do_##name parameters                                                               \
    {                                                                                              \
        struct fuse2_file_info copy, *info = NULL;                                                 \
        if (fi) {                                                                                  \
            copy = df2_info_in(fi);                                                                \
            info = &copy;                                                                          \
        }                                                                                          \
        session_of(req)->ops.name arguments;                                                       \
    }

WITH_INFO(getattr, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(setattr,
          (fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
           struct fuse_file_info *fi),
          (req, ino, attr, to_set, info))
WITH_INFO(open, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(read, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi),
          (req, ino, size, off, info))
WITH_INFO(write,
          (fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
           struct fuse_file_info *fi),
          (req, ino, buf, size, off, info))
WITH_INFO(flush, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(release, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(fsync, (fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi),
          (req, ino, datasync, info))
WITH_INFO(opendir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(readdir,
          (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi),
          (req, ino, size, off, info))
WITH_INFO(releasedir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, info))
WITH_INFO(fsyncdir, (fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi),
          (req, ino, datasync, info))
WITH_INFO(create,
          (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
           struct fuse_file_info *fi),
          (req, parent, name, mode, info))
WITH_INFO(getlk, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock),
          (req, ino, info, lock))
WITH_INFO(setlk,
          (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int wait),
          (req, ino, info, lock, wait))
WITH_INFO(ioctl,
          (fuse_req_t req, fuse_ino_t ino, unsigned command, void *arg, struct fuse_file_info *fi,
           unsigned flags, const void *in, size_t in_size, size_t out_size),
          (req, ino, (int)command, arg, info, flags, in, in_size, out_size))
WITH_INFO(poll,
          (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
           struct fuse_pollhandle *handle),
          (req, ino, info, handle))
WITH_INFO(write_buf,
          (fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *buf, off_t off,
           struct fuse_file_info *fi),
          (req, ino, buf, off, info))
WITH_INFO(flock, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int operation),
          (req, ino, info, operation))
WITH_INFO(fallocate,
          (fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
           struct fuse_file_info *fi),
          (req, ino, mode, offset, length, info))

/* FUSE 3's table for what the plugin has. */
static struct fuse_lowlevel_ops translate(const struct fuse2_lowlevel_ops *from)
{
    struct fuse_lowlevel_ops to = {.init = do_init, .destroy = do_destroy};
#define SAME(name) to.name = from->name
    SAME(lookup);
    SAME(readlink);
    SAME(mknod);
    SAME(mkdir);
    SAME(unlink);
    SAME(rmdir);
    SAME(symlink);
    SAME(link);
    SAME(statfs);
    SAME(setxattr);
    SAME(getxattr);
    SAME(listxattr);
    SAME(removexattr);
    SAME(access);
    SAME(bmap);
    SAME(retrieve_reply);
    SAME(forget_multi);
#undef SAME
#define IF_PRESENT(name) to.name = from->name ? do_##name : NULL
    IF_PRESENT(rename);
    IF_PRESENT(forget);
    IF_PRESENT(getattr);
    IF_PRESENT(setattr);
    IF_PRESENT(open);
    IF_PRESENT(read);
    IF_PRESENT(write);
    IF_PRESENT(flush);
    IF_PRESENT(release);
    IF_PRESENT(fsync);
    IF_PRESENT(opendir);
    IF_PRESENT(readdir);
    IF_PRESENT(releasedir);
    IF_PRESENT(fsyncdir);
    IF_PRESENT(create);
    IF_PRESENT(getlk);
    IF_PRESENT(setlk);
    IF_PRESENT(ioctl);
    IF_PRESENT(poll);
    IF_PRESENT(write_buf);
    IF_PRESENT(flock);
    IF_PRESENT(fallocate);
#undef IF_PRESENT
    return to;
}

/* The session that FUSE 3 knows is made when the mount is known: at the first loop. */
int df2_lowlevel_start(struct fuse2_session *se)
{
    struct fuse_args all;
    struct fuse_lowlevel_ops ops = translate(&se->ops);
    if (!se->chan)
        return -1;
    if (df2_join(&all, &se->chan->options, &se->options) == 0)
        se->real = fuse_session_new(&all, &ops, sizeof(ops), se);
    fuse_opt_free_args(&all);
    if (!se->real)
        return -1;
    return fuse_session_mount(se->real, se->chan->mountpoint);
}

struct fuse2_session *fuse2_lowlevel_new(struct fuse_args *args, const void *op, size_t op_size,
                                         void *userdata)
{
    struct fuse_args none = FUSE_ARGS_INIT(0, NULL);
    struct fuse2_session *se = calloc(1, sizeof(*se));
    if (!se)
        return NULL;
    if (op_size > sizeof(se->ops))
        op_size = sizeof(se->ops);
    memcpy(&se->ops, op, op_size);
    se->userdata = userdata;
    if (df2_take_conn_options(args, &se->conn) == 0 && df2_join(&se->options, args, &none) == 0)
        return se;
    fuse_opt_free_args(&se->options);
    free(se);
    return NULL;
}
EXPORT(fuse2_lowlevel_new, "fuse_lowlevel_new@@FUSE_2.6");

/* Operations of 2.5 take what those of 2.9 take, or less. */
EXPORT_ALSO(fuse2_lowlevel_new, fuse2_lowlevel_new_25, "fuse_lowlevel_new@FUSE_2.5");
EXPORT_ALSO(fuse2_lowlevel_new, fuse2_lowlevel_new_compat25,
            "fuse_lowlevel_new_compat25@@FUSE_2.6");

/* Handles of 2.4 are in fh_old, where df2_info_in() puts them too. */
struct fuse2_session *fuse2_lowlevel_new_24(const char *options, const void *op, size_t op_size,
                                            void *userdata)
{
    struct fuse_args args;
    struct fuse2_session *se = NULL;
    if (df2_arguments_of(options, &args) == 0)
        se = fuse2_lowlevel_new(&args, op, op_size, userdata);
    fuse_opt_free_args(&args);
    return se;
}
EXPORT(fuse2_lowlevel_new_24, "fuse_lowlevel_new@FUSE_2.4");
EXPORT_ALSO(fuse2_lowlevel_new_24, fuse2_lowlevel_new_compat, "fuse_lowlevel_new_compat@@FUSE_2.5");

/* ---- what differs in replies and requests ----------------------------------------------- */

void *fuse2_req_userdata(fuse_req_t req)
{
    return session_of(req)->userdata;
}
EXPORT(fuse2_req_userdata, "fuse_req_userdata@@FUSE_2.4");

int fuse2_reply_open(fuse_req_t req, const struct fuse2_file_info *info)
{
    struct fuse_file_info fi = df2_info_3(info);
    return fuse_reply_open(req, &fi);
}
EXPORT(fuse2_reply_open, "fuse_reply_open@@FUSE_2.5");

int fuse2_reply_open_24(fuse_req_t req, const struct fuse2_file_info *info)
{
    struct fuse_file_info fi = {
        .fh = info->fh_old,
        .direct_io = info->direct_io,
        .keep_cache = info->keep_cache,
    };
    return fuse_reply_open(req, &fi);
}
EXPORT(fuse2_reply_open_24, "fuse_reply_open@FUSE_2.4");
EXPORT_ALSO(fuse2_reply_open_24, fuse2_reply_open_compat, "fuse_reply_open_compat@@FUSE_2.5");

int fuse2_reply_statfs_24(fuse_req_t req, const struct statfs *st)
{
    struct statvfs out = df2_statvfs_of(st);
    return fuse_reply_statfs(req, &out);
}
EXPORT(fuse2_reply_statfs_24, "fuse_reply_statfs@FUSE_2.4");
EXPORT_ALSO(fuse2_reply_statfs_24, fuse2_reply_statfs_compat, "fuse_reply_statfs_compat@@FUSE_2.5");

int fuse2_reply_create(fuse_req_t req, const struct fuse_entry_param *entry,
                       const struct fuse2_file_info *info)
{
    struct fuse_file_info fi = df2_info_3(info);
    return fuse_reply_create(req, entry, &fi);
}
EXPORT(fuse2_reply_create, "fuse_reply_create@@FUSE_2.5");

/* A node's generation was an unsigned long then and is 64 bits wide now: the same on our machines.
 */
_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "struct fuse_entry_param has changed");
