/*
 * module.c - the operations of a renaming module (module.h), and the list of modules.
 */
#include "libfuse/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "highlevel/highlevel.h"

static struct df_layer *layer_here(void)
{
    return df_highlevel_context()->private_data;
}

/* NULL (a plugin with nullpath_ok) stays NULL. */
static int go_down(struct df_layer *layer, const char *path, char **below)
{
    *below = NULL;
    return path ? layer->path(layer, path, below) : 0;
}

/*
 * Evaluates `call` with `down` as the path of the layer below. A statement expression, so that each
 * operation below is one line that says what it calls.
 */
#define WITH_PATH(call)                                                                            \
    ({                                                                                             \
        struct df_layer *layer = layer_here();                                                     \
        char *down;                                                                                \
        __auto_type result = (__typeof__(call))go_down(layer, path, &down);                        \
        if (result == 0)                                                                           \
            result = (call);                                                                       \
        free(down);                                                                                \
        result;                                                                                    \
    })

/* The same for two paths, `path` and `other`. */
#define WITH_PATHS(call)                                                                           \
    ({                                                                                             \
        struct df_layer *layer = layer_here();                                                     \
        char *down, *other_down = NULL;                                                            \
        __auto_type result = (__typeof__(call))go_down(layer, path, &down);                        \
        if (result == 0)                                                                           \
            result = go_down(layer, other, &other_down);                                           \
        if (result == 0)                                                                           \
            result = (call);                                                                       \
        free(down);                                                                                \
        free(other_down);                                                                          \
        result;                                                                                    \
    })

/* ---- by path ---------------------------------------------------------------------------- */

static int layer_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_getattr(layer->next, down, st, fi));
}

static int layer_statx(const char *path, int flags, int mask, struct statx *stx,
                       struct fuse_file_info *fi)
{
    return WITH_PATH(df_abi_fs_statx(layer->next, down, flags, mask, stx, fi));
}

static int read_link(struct df_layer *layer, const char *down, char *target, size_t size)
{
    int result = fuse_fs_readlink(layer->next, down, target, size);
    return result == 0 && layer->read_link ? layer->read_link(layer, down, target, size) : result;
}

static int layer_readlink(const char *path, char *target, size_t size)
{
    return WITH_PATH(read_link(layer, down, target, size));
}

static int layer_mknod(const char *path, mode_t mode, dev_t rdev)
{
    return WITH_PATH(fuse_fs_mknod(layer->next, down, mode, rdev));
}

static int layer_mkdir(const char *path, mode_t mode)
{
    return WITH_PATH(fuse_fs_mkdir(layer->next, down, mode));
}

static int layer_unlink(const char *path)
{
    return WITH_PATH(fuse_fs_unlink(layer->next, down));
}

static int layer_rmdir(const char *path)
{
    return WITH_PATH(fuse_fs_rmdir(layer->next, down));
}

static int new_link(struct df_layer *layer, const char *target, const char *down)
{
    char *changed = NULL;
    int result = layer->new_link ? layer->new_link(layer, target, &changed) : 0;
    if (result == 0)
        result = fuse_fs_symlink(layer->next, changed ? changed : target, down);
    free(changed);
    return result;
}

static int layer_symlink(const char *target, const char *path)
{
    return WITH_PATH(new_link(layer, target, down));
}

static int layer_rename(const char *path, const char *other, unsigned flags)
{
    return WITH_PATHS(fuse_fs_rename(layer->next, down, other_down, flags));
}

static int layer_link(const char *path, const char *other)
{
    return WITH_PATHS(fuse_fs_link(layer->next, down, other_down));
}

static int layer_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_chmod(layer->next, down, mode, fi));
}

static int layer_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_chown(layer->next, down, uid, gid, fi));
}

static int layer_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_truncate(layer->next, down, size, fi));
}

static int layer_utimens(const char *path, const struct timespec tv[2], struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_utimens(layer->next, down, tv, fi));
}

static int layer_access(const char *path, int mask)
{
    return WITH_PATH(fuse_fs_access(layer->next, down, mask));
}

static int layer_statfs(const char *path, struct statvfs *out)
{
    return WITH_PATH(fuse_fs_statfs(layer->next, down, out));
}

static int layer_setxattr(const char *path, const char *name, const char *value, size_t size,
                          int flags)
{
    return WITH_PATH(fuse_fs_setxattr(layer->next, down, name, value, size, flags));
}

static int layer_getxattr(const char *path, const char *name, char *value, size_t size)
{
    return WITH_PATH(fuse_fs_getxattr(layer->next, down, name, value, size));
}

static int layer_listxattr(const char *path, char *list, size_t size)
{
    return WITH_PATH(fuse_fs_listxattr(layer->next, down, list, size));
}

static int layer_removexattr(const char *path, const char *name)
{
    return WITH_PATH(fuse_fs_removexattr(layer->next, down, name));
}

static int layer_bmap(const char *path, size_t blocksize, uint64_t *index)
{
    return WITH_PATH(fuse_fs_bmap(layer->next, down, blocksize, index));
}

/* ---- open files ------------------------------------------------------------------------- */

static int layer_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_create(layer->next, down, mode, fi));
}

static int layer_open(const char *path, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_open(layer->next, down, fi));
}

static int layer_read_buf(const char *path, struct fuse_bufvec **bufp, size_t size, off_t offset,
                          struct fuse_file_info *fi)
{
    return WITH_PATH(df_abi_fs_read_buf(layer->next, down, bufp, size, offset, fi));
}

static int layer_write_buf(const char *path, struct fuse_bufvec *buf, off_t offset,
                           struct fuse_file_info *fi)
{
    return WITH_PATH(df_abi_fs_write_buf(layer->next, down, buf, offset, fi));
}

static int layer_flush(const char *path, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_flush(layer->next, down, fi));
}

static int layer_release(const char *path, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_release(layer->next, down, fi));
}

static int layer_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_fsync(layer->next, down, datasync, fi));
}

static int layer_lock(const char *path, struct fuse_file_info *fi, int cmd, struct flock *lock)
{
    return WITH_PATH(fuse_fs_lock(layer->next, down, fi, cmd, lock));
}

static int layer_flock(const char *path, struct fuse_file_info *fi, int op)
{
    return WITH_PATH(fuse_fs_flock(layer->next, down, fi, op));
}

static int layer_ioctl(const char *path, unsigned int cmd, void *arg, struct fuse_file_info *fi,
                       unsigned int flags, void *data)
{
    return WITH_PATH(fuse_fs_ioctl(layer->next, down, cmd, arg, fi, flags, data));
}

static int layer_poll(const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
                      unsigned *revents)
{
    return WITH_PATH(fuse_fs_poll(layer->next, down, fi, handle, revents));
}

static int layer_fallocate(const char *path, int mode, off_t offset, off_t length,
                           struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_fallocate(layer->next, down, mode, offset, length, fi));
}

static ssize_t layer_copy_file_range(const char *path, struct fuse_file_info *fi_in, off_t in,
                                     const char *other, struct fuse_file_info *fi_out, off_t out,
                                     size_t size, int flags)
{
    return WITH_PATHS(fuse_fs_copy_file_range(layer->next, down, fi_in, in, other_down, fi_out, out,
                                              size, flags));
}

static off_t layer_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_lseek(layer->next, down, offset, whence, fi));
}

/* ---- directories ------------------------------------------------------------------------ */

static int layer_opendir(const char *path, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_opendir(layer->next, down, fi));
}

/* Stands between the layer below and the filler of the layer above. */
struct renaming_filler {
    struct df_layer *layer;
    fuse_fill_dir_t filler;
    void *buf;
};

/* An entry whose name cannot be shown is left out, as it could not be opened either. */
static int fill_renamed(void *buf, const char *name, const struct stat *st, off_t offset,
                        enum fuse_fill_dir_flags flags)
{
    const struct renaming_filler *to = buf;
    char *above;
    int result = to->layer->entry(to->layer, name, &above);
    if (result != 0)
        return 0;
    result = to->filler(to->buf, above, st, offset, flags);
    free(above);
    return result;
}

static int layer_readdir(const char *path, void *buf, fuse_fill_dir_t filler, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    struct renaming_filler to = {layer_here(), filler, buf};
    if (to.layer->entry) {
        buf = &to;
        filler = fill_renamed;
    }
    return WITH_PATH(fuse_fs_readdir(layer->next, down, buf, filler, offset, fi, flags));
}

static int layer_fsyncdir(const char *path, int datasync, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_fsyncdir(layer->next, down, datasync, fi));
}

static int layer_releasedir(const char *path, struct fuse_file_info *fi)
{
    return WITH_PATH(fuse_fs_releasedir(layer->next, down, fi));
}

/* ---- life ------------------------------------------------------------------------------- */

static void *layer_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    struct df_layer *layer = layer_here();
    df_abi_fs_init(layer->next, conn, config);
    return layer;
}

static void layer_destroy(void *data)
{
    struct df_layer *layer = data;
    fuse_fs_destroy(layer->next);
    layer->free(layer);
}

static void layer_discard(void *data)
{
    struct df_layer *layer = data;
    layer->free(layer);
}

/* What the layer below lacks this one must lack too: a missing operation means a default, which an
 * ENOSYS from below would hide. */
static struct fuse_operations operations_above(const struct fuse_operations *below)
{
#define IF_BELOW(op) .op = below->op ? layer_##op : NULL
    return (struct fuse_operations){
        IF_BELOW(getattr),
        IF_BELOW(readlink),
        IF_BELOW(mknod),
        IF_BELOW(mkdir),
        IF_BELOW(unlink),
        IF_BELOW(rmdir),
        IF_BELOW(symlink),
        IF_BELOW(rename),
        IF_BELOW(link),
        IF_BELOW(chmod),
        IF_BELOW(chown),
        IF_BELOW(truncate),
        IF_BELOW(utimens),
        IF_BELOW(access),
        IF_BELOW(statfs),
        IF_BELOW(setxattr),
        IF_BELOW(getxattr),
        IF_BELOW(listxattr),
        IF_BELOW(removexattr),
        IF_BELOW(bmap),
        IF_BELOW(create),
        IF_BELOW(open),
        IF_BELOW(flush),
        IF_BELOW(release),
        IF_BELOW(fsync),
        IF_BELOW(lock),
        IF_BELOW(flock),
        IF_BELOW(ioctl),
        IF_BELOW(poll),
        IF_BELOW(fallocate),
        IF_BELOW(copy_file_range),
        IF_BELOW(lseek),
        IF_BELOW(opendir),
        IF_BELOW(readdir),
        IF_BELOW(fsyncdir),
        IF_BELOW(releasedir),
        .read_buf = below->read_buf || below->read ? layer_read_buf : NULL,
        .write_buf = below->write_buf || below->write ? layer_write_buf : NULL,
        .init = layer_init,
        .destroy = layer_destroy,
    };
#undef IF_BELOW
}

struct fuse_fs *df_layer_push(struct df_layer *layer, struct fuse_fs *below)
{
    struct fuse_operations ops = operations_above(&below->ops);
    struct fuse_fs *fs = df_abi_fs_new(&ops, sizeof(ops), layer);
    if (!fs)
        return NULL;
    fs->statx = below->statx ? layer_statx : NULL;
    layer->next = below;
    fs->below = below;
    fs->discard = layer_discard;
    return fs;
}

/* ---- the list of modules ---------------------------------------------------------------- */

static const struct {
    const char *name;
    struct fuse_fs *(*push)(struct fuse_args *args, struct fuse_fs *below);
} modules[] = {
    {"subdir", df_module_subdir},
    {"iconv", df_module_iconv},
};

enum { MODULE_COUNT = sizeof(modules) / sizeof(modules[0]) };

/* One that the program registered, or one of ours; NULL after logging. */
static struct fuse_fs *push(struct fuse_fs *below, const char *name, struct fuse_args *args)
{
    struct fuse_fs *layers[] = {below, NULL};
    df_abi_factory *registered = df_abi_find_factory(name);
    if (registered)
        return registered(args, layers);
    for (int i = 0; i < MODULE_COUNT; i++)
        if (strcmp(modules[i].name, name) == 0)
            return modules[i].push(args, below);
    fuse_log(FUSE_LOG_ERR, "fuse: there is no module `%s': the modules are subdir and iconv\n",
             name);
    return NULL;
}

/* libfuse would also load libfusemod_<name>.so, which is linked to the real libfuse. */
int df_abi_push_module(struct fuse_fs **top, const char *name, struct fuse_args *args)
{
    struct fuse_fs *fs = push(*top, name, args);
    if (!fs)
        return -1;
    *top = fs;
    return 0;
}

void df_abi_modules_help(void)
{
    for (int i = 0; i < MODULE_COUNT; i++) {
        const char *argv[] = {"", "-h", NULL};
        struct fuse_args args = FUSE_ARGS_INIT(2, (char **)argv);
        df_abi_print("\nOptions for %s module:\n", modules[i].name);
        modules[i].push(&args, NULL); /* prints its help and makes nothing */
        fuse_opt_free_args(&args);
    }
}
