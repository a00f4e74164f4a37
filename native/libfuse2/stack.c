/*
 * stack.c - struct fuse_fs of FUSE 2: layers, and the modules that make them.
 *
 * A struct fuse_fs is libdf3's own, with FUSE 3's operations in front of the program's, so layers
 * of FUSE 2 and of FUSE 3 (the modules subdir and iconv) stand on each other in any order. The
 * functions here are those by which a program's own layer calls the one below.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse2/abi2.h"

/* ---- life ----------------------------------------------------------------------------------- */

static struct fuse_fs *make_layer(const void *op, size_t op_size, void *user_data)
{
    struct fuse2_layer *layer = calloc(1, sizeof(*layer));
    if (!layer)
        return NULL;
    memcpy(&layer->ops, op, op_size < sizeof(layer->ops) ? op_size : sizeof(layer->ops));
    layer->generation = FUSE_26;
    layer->private_data = user_data;
    struct fuse_operations ops = df2_translate(layer);
    struct fuse_fs *fs = df3_layer_new(&ops, sizeof(ops), layer, df2_layer_destroy);
    if (!fs)
        free(layer);
    return fs;
}

struct fuse_fs *fuse2_fs_new(const void *op, size_t op_size, void *user_data)
{
    struct fuse_fs *fs = make_layer(op, op_size, user_data);
    if (!fs)
        fuse_log(FUSE_LOG_ERR, "fuse: failed to allocate fuse_fs object\n");
    return fs;
}
EXPORT(fuse2_fs_new, "fuse_fs_new@@FUSE_2.7");

/* A module's layer may still hold what its factory made, when the file system below was never
 * initialised and must not be destroyed. */
void df2_layer_destroy(void *data)
{
    struct fuse2_layer *layer = data;
    if (layer->ops.destroy && (layer->initialised || !layer->fuse))
        layer->ops.destroy(layer->private_data);
    if (!layer->fuse)
        free(layer);
}

/* What libdf3 negotiates with while init() of a layer runs on this thread. */
static _Thread_local struct {
    struct fuse_conn_info *conn;
    struct fuse_config *config;
} negotiation;

/* Whether it wants no paths beside handles. flag_nullpath_ok alone says that it can do without
 * where a file has none any more. */
static bool wants_none(const struct fuse2_layer *layer)
{
    return layer->ops.flag_nopath || (layer->fuse && layer->fuse->config.nopath);
}

bool df2_layer_takes_null(const struct fuse2_layer *layer)
{
    return layer->ops.flag_nullpath_ok || wants_none(layer);
}

/* Without these two an operation on a handle becomes one on a path, which must then be there. */
static bool knows_handles(const struct fuse2_layer *layer)
{
    return layer->ops.fgetattr && layer->ops.ftruncate;
}

bool df2_layer_bears_null(const struct fuse2_layer *layer)
{
    return df2_layer_takes_null(layer) && knows_handles(layer);
}

static void configure(const struct fuse2_layer *layer, struct fuse_config *config)
{
    const struct fuse2 *f = layer->fuse;
    if (!f) {
        config->nullpath_ok = config->nullpath_ok && wants_none(layer) && knows_handles(layer);
        return;
    }
    config->hard_remove = f->config.hard_remove;
    config->use_ino = f->config.use_ino;
    config->readdir_ino = f->config.readdir_ino;
    config->direct_io = f->config.direct_io;
    config->intr = f->config.intr;
    if (f->config.intr_signal)
        config->intr_signal = f->config.intr_signal;
    config->nullpath_ok = wants_none(layer) && knows_handles(layer);
}

void df2_layer_init(struct fuse2_layer *layer, struct fuse_conn_info *conn,
                    struct fuse_config *config)
{
    __auto_type before = negotiation;
    struct fuse2_conn_info shown =
        layer->fuse ? df2_conn_in(conn, &layer->fuse->conn, layer->ops.lock != NULL,
                                  layer->ops.flock != NULL)
                    : df2_conn_show(conn);
    layer->initialised = true;
    negotiation.conn = conn;
    negotiation.config = config;
    if (layer->ops.init)
        layer->private_data = layer->ops.init(&shown);
    negotiation = before;
    df2_conn_out(conn, &shown);
    configure(layer, config); /* after the layers below, which init() has initialised */
}

/* By the init() of the layer above, with what that has made of the negotiation so far. */
void fuse2_fs_init(struct fuse_fs *fs, struct fuse2_conn_info *shown)
{
    struct fuse_conn_info alone_conn = {0};
    struct fuse_config alone_config = {0};
    struct fuse_conn_info *conn = negotiation.conn ? negotiation.conn : &alone_conn;
    df2_conn_out(conn, shown);
    df3_fs_init(fs, conn, negotiation.config ? negotiation.config : &alone_config);
    *shown = df2_conn_show(conn);
}
EXPORT(fuse2_fs_init, "fuse_fs_init@@FUSE_2.7");

void fuse2_fs_destroy(struct fuse_fs *fs)
{
    df3_fs_destroy(fs);
}
EXPORT(fuse2_fs_destroy, "fuse_fs_destroy@@FUSE_2.7");

void fuse2_register_module(struct df3_module *module)
{
    df3_register_module(module);
}
EXPORT(fuse2_register_module, "fuse_register_module@@FUSE_2.7");

/* ---- what is the same ----------------------------------------------------------------------- */

/* FORWARD(name, version, (parameters), (arguments of libdf3's)) */
#define FORWARD(name, version, parameters, arguments)                                              \
    int fuse2_fs_##name parameters                                                                 \
    {                                                                                              \
        return df3_fs_##name arguments;                                                            \
    }                                                                                              \
    EXPORT(fuse2_fs_##name, "fuse_fs_" #name "@@FUSE_" version)

FORWARD(getattr, "2.7", (struct fuse_fs * fs, const char *path, struct stat *st),
        (fs, path, st, NULL));
FORWARD(readlink, "2.7", (struct fuse_fs * fs, const char *path, char *buf, size_t size),
        (fs, path, buf, size));
FORWARD(mknod, "2.7", (struct fuse_fs * fs, const char *path, mode_t mode, dev_t rdev),
        (fs, path, mode, rdev));
FORWARD(mkdir, "2.7", (struct fuse_fs * fs, const char *path, mode_t mode), (fs, path, mode));
FORWARD(unlink, "2.7", (struct fuse_fs * fs, const char *path), (fs, path));
FORWARD(rmdir, "2.7", (struct fuse_fs * fs, const char *path), (fs, path));
FORWARD(symlink, "2.7", (struct fuse_fs * fs, const char *target, const char *path),
        (fs, target, path));
FORWARD(rename, "2.7", (struct fuse_fs * fs, const char *from, const char *to), (fs, from, to, 0));
FORWARD(link, "2.7", (struct fuse_fs * fs, const char *from, const char *to), (fs, from, to));
FORWARD(chmod, "2.7", (struct fuse_fs * fs, const char *path, mode_t mode), (fs, path, mode, NULL));
FORWARD(chown, "2.7", (struct fuse_fs * fs, const char *path, uid_t uid, gid_t gid),
        (fs, path, uid, gid, NULL));
FORWARD(truncate, "2.7", (struct fuse_fs * fs, const char *path, off_t size),
        (fs, path, size, NULL));
FORWARD(utimens, "2.7", (struct fuse_fs * fs, const char *path, const struct timespec times[2]),
        (fs, path, times, NULL));
FORWARD(access, "2.7", (struct fuse_fs * fs, const char *path, int mask), (fs, path, mask));
FORWARD(statfs, "2.7", (struct fuse_fs * fs, const char *path, struct statvfs *out),
        (fs, path, out));
FORWARD(setxattr, "2.7",
        (struct fuse_fs * fs, const char *path, const char *name, const char *value, size_t size,
         int flags),
        (fs, path, name, value, size, flags));
FORWARD(getxattr, "2.7",
        (struct fuse_fs * fs, const char *path, const char *name, char *value, size_t size),
        (fs, path, name, value, size));
FORWARD(listxattr, "2.7", (struct fuse_fs * fs, const char *path, char *list, size_t size),
        (fs, path, list, size));
FORWARD(removexattr, "2.7", (struct fuse_fs * fs, const char *path, const char *name),
        (fs, path, name));
FORWARD(bmap, "2.7", (struct fuse_fs * fs, const char *path, size_t size, uint64_t *index),
        (fs, path, size, index));

/* ---- with a file info ------------------------------------------------------------------------ */

/* The layer below sees the info and may not change it; with OUT what it changes comes back. */
#define ON_FILE(type, name, as, version, parameters, arguments)                                    \
    type fuse2_fs_##name parameters                                                                \
    {                                                                                              \
        struct fuse_file_info fi = df2_info_3(info);                                               \
        return df3_fs_##as arguments;                                                              \
    }                                                                                              \
    EXPORT(fuse2_fs_##name, "fuse_fs_" #name "@@FUSE_" version)

#define OPENS(name, parameters, arguments)                                                         \
    int fuse2_fs_##name parameters                                                                 \
    {                                                                                              \
        struct fuse_file_info fi = df2_info_3(info);                                               \
        int result = df3_fs_##name arguments;                                                      \
        *info = df2_info_in(&fi);                                                                  \
        return result;                                                                             \
    }                                                                                              \
    EXPORT(fuse2_fs_##name, "fuse_fs_" #name "@@FUSE_2.7")

OPENS(open, (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info), (fs, path, &fi));
OPENS(opendir, (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info),
      (fs, path, &fi));
OPENS(create, (struct fuse_fs * fs, const char *path, mode_t mode, struct fuse2_file_info *info),
      (fs, path, mode, &fi));

ON_FILE(int, fgetattr, getattr, "2.7",
        (struct fuse_fs * fs, const char *path, struct stat *st, struct fuse2_file_info *info),
        (fs, path, st, &fi));
ON_FILE(int, ftruncate, truncate, "2.7",
        (struct fuse_fs * fs, const char *path, off_t size, struct fuse2_file_info *info),
        (fs, path, size, &fi));
ON_FILE(int, read, read, "2.7",
        (struct fuse_fs * fs, const char *path, char *buf, size_t size, off_t off,
         struct fuse2_file_info *info),
        (fs, path, buf, size, off, &fi));
ON_FILE(int, write, write, "2.7",
        (struct fuse_fs * fs, const char *path, const char *buf, size_t size, off_t off,
         struct fuse2_file_info *info),
        (fs, path, buf, size, off, &fi));
ON_FILE(int, read_buf, read_buf, "2.9",
        (struct fuse_fs * fs, const char *path, struct fuse_bufvec **buf, size_t size, off_t off,
         struct fuse2_file_info *info),
        (fs, path, buf, size, off, &fi));
ON_FILE(int, write_buf, write_buf, "2.9",
        (struct fuse_fs * fs, const char *path, struct fuse_bufvec *buf, off_t off,
         struct fuse2_file_info *info),
        (fs, path, buf, off, &fi));
ON_FILE(int, flush, flush, "2.7",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info), (fs, path, &fi));
ON_FILE(int, release, release, "2.7",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info), (fs, path, &fi));
ON_FILE(int, fsync, fsync, "2.7",
        (struct fuse_fs * fs, const char *path, int datasync, struct fuse2_file_info *info),
        (fs, path, datasync, &fi));
ON_FILE(int, releasedir, releasedir, "2.7",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info), (fs, path, &fi));
ON_FILE(int, fsyncdir, fsyncdir, "2.7",
        (struct fuse_fs * fs, const char *path, int datasync, struct fuse2_file_info *info),
        (fs, path, datasync, &fi));
ON_FILE(int, lock, lock, "2.7",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info, int command,
         struct flock *lock),
        (fs, path, &fi, command, lock));
ON_FILE(int, flock, flock, "2.9",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info, int operation),
        (fs, path, &fi, operation));
ON_FILE(int, ioctl, ioctl, "2.8",
        (struct fuse_fs * fs, const char *path, int command, void *arg,
         struct fuse2_file_info *info, unsigned flags, void *data),
        (fs, path, (unsigned)command, arg, &fi, flags, data));
ON_FILE(int, poll, poll, "2.8",
        (struct fuse_fs * fs, const char *path, struct fuse2_file_info *info,
         struct fuse_pollhandle *handle, unsigned *events),
        (fs, path, &fi, handle, events));
ON_FILE(int, fallocate, fallocate, "2.9.1",
        (struct fuse_fs * fs, const char *path, int mode, off_t off, off_t length,
         struct fuse2_file_info *info),
        (fs, path, mode, off, length, &fi));

/* ---- readdir ----------------------------------------------------------------------------------
 */

struct filler {
    fuse2_fill_dir_t fill;
    void *buf;
};

static int fill_entry(void *data, const char *name, const struct stat *st, off_t off,
                      enum fuse_fill_dir_flags flags)
{
    (void)flags;
    const struct filler *filler = data;
    return filler->fill(filler->buf, name, st, off);
}

int fuse2_fs_readdir(struct fuse_fs *fs, const char *path, void *buf, fuse2_fill_dir_t fill,
                     off_t off, struct fuse2_file_info *info)
{
    struct filler filler = {fill, buf};
    struct fuse_file_info fi = df2_info_3(info);
    return df3_fs_readdir(fs, path, &filler, fill_entry, off, &fi, 0);
}
EXPORT(fuse2_fs_readdir, "fuse_fs_readdir@@FUSE_2.7");
