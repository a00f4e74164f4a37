/*
 * versions3.c - what libfuse3.so.3 has otherwise than libfuse3.so.4 (versions4.c): its structures
 * are those of the headers that we are built with, so every function here is one jump.
 */
#include "highlevel/highlevel.h"
#include "libfuse/abi.h"
#include "libfuse/translator.h"
#include "lowlevel/lowlevel.h"

#define VERSION(function, name) __asm__(".symver " #function "," name)

#define TEXT_OF(x)              #x
#define TEXT(x)                 TEXT_OF(x)

#if FUSE_MINOR_VERSION >= 17
#define MINOR 16 /* the last of libfuse3.so.3 */
#else
#define MINOR FUSE_MINOR_VERSION
#endif

const struct df_abi_version df_abi_version = {
    .number = FUSE_MAKE_VERSION(3, MINOR),
    .name = "3." TEXT(MINOR) ".0",
    .help = "",
};

/* ---- making a file system ------------------------------------------------------------------- */

VERSION(fuse_new_30, "fuse_new@FUSE_3.0");
VERSION(fuse_new_31, "fuse_new@@FUSE_3.1");

struct fuse *fuse_new_30(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data)
{
    return df_abi_fuse_new_30(args, op, op_size, user_data,
                              df_abi_plugin(__builtin_return_address(0)));
}

struct fuse *fuse_new_31(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data)
{
    return df_abi_fuse_new(args, op, op_size, user_data,
                           df_abi_plugin(__builtin_return_address(0)));
}

struct fuse_fs *df_abi_layer_new(const struct fuse_operations *op, size_t op_size, void *user_data)
{
    return df_abi_fs_new(op, op_size, user_data);
}

/* FUSE 2's, by way of its translator; in FUSE 3 there is no function to register one. */
df_abi_factory *df_abi_find_factory(const char *name)
{
    const struct df3_module *module = df3_find_module(name);
    return module ? module->factory : NULL;
}

int df_abi_take_later_options(struct fuse_args *args, struct fuse *f)
{
    (void)args;
    (void)f;
    return 0;
}

struct fuse_session *fuse_session_new(struct fuse_args *args, const struct fuse_lowlevel_ops *op,
                                      size_t op_size, void *userdata)
{
    return df_abi_lowlevel_session(args, op, op_size, userdata,
                                   df_abi_plugin(__builtin_return_address(0)));
}

int fuse_session_custom_io(struct fuse_session *se, const struct fuse_custom_io *io, int fd)
{
    (void)se;
    return df_abi_custom_io(io, fd);
}

/* ---- inside an operation -------------------------------------------------------------------- */

struct fuse_context *fuse_get_context(void)
{
    return df_highlevel_context();
}

void *fuse_req_userdata(fuse_req_t req)
{
    return df_req_userdata(req);
}

/* ---- layers --------------------------------------------------------------------------------- */

struct fuse_fs *fuse_fs_new(const struct fuse_operations *op, size_t op_size, void *private_data)
{
    return df_abi_fs_new(op, op_size, private_data);
}

void fuse_fs_init(struct fuse_fs *fs, struct fuse_conn_info *conn, struct fuse_config *cfg)
{
    df_abi_fs_init(fs, conn, cfg);
}

int fuse_fs_read_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec **bufp, size_t size,
                     off_t off, struct fuse_file_info *fi)
{
    return df_abi_fs_read_buf(fs, path, bufp, size, off, fi);
}

int fuse_fs_write_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec *buf, off_t off,
                      struct fuse_file_info *fi)
{
    return df_abi_fs_write_buf(fs, path, buf, off, fi);
}

/* ---- buffers -------------------------------------------------------------------------------- */

size_t fuse_buf_size(const struct fuse_bufvec *bufv)
{
    return df_abi_buf_size(bufv);
}

ssize_t fuse_buf_copy(struct fuse_bufvec *dst, struct fuse_bufvec *src,
                      enum fuse_buf_copy_flags flags)
{
    return df_abi_buf_copy(dst, src, flags);
}

int fuse_reply_data(fuse_req_t req, struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    return df_reply_data(req, bufv, flags);
}

/* ---- notifications -------------------------------------------------------------------------- */

int fuse_lowlevel_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
                               struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    return df_abi_notify_store(se, ino, offset, bufv, flags);
}

/* Nothing can be mounted on top of an entry, so expiring it is invalidating it. */
int fuse_lowlevel_notify_expire_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
                                      size_t namelen, enum fuse_expire_flags flags)
{
    (void)flags; /* which of the two */
    return fuse_lowlevel_notify_inval_entry(se, parent, name, namelen);
}
