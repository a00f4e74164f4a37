/*
 * operations.c - FUSE 2's high-level operations behind FUSE 3's.
 *
 * What changed between the two: several operations were joined (getattr and fgetattr, truncate and
 * ftruncate, utime and utimens, getdir and readdir), rename got flags, and the handle became an
 * argument of those that work on attributes.
 */
#include <errno.h>
#include <sys/statvfs.h>
#include <time.h>

#include "libfuse2/abi2.h"

struct fuse2_layer *df2_layer_here(void)
{
    return fuse_get_context()->private_data;
}

/* ---- life ------------------------------------------------------------------------------- */

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    struct fuse2_layer *layer = df2_layer_here();
    df2_layer_init(layer, conn, config);
    return layer;
}

/* ---- attributes ------------------------------------------------------------------------- */

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    const struct fuse2_layer *f = df2_layer_here();
    if (!fi || !f->ops.fgetattr)
        return f->ops.getattr(path, st);
    struct fuse2_file_info info = df2_info_in(fi);
    return f->ops.fgetattr(path, st, &info);
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    (void)fi;
    return df2_layer_here()->ops.chmod(path, mode);
}

static int do_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    (void)fi;
    return df2_layer_here()->ops.chown(path, uid, gid);
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    const struct fuse2_layer *f = df2_layer_here();
    if (!fi || !f->ops.ftruncate)
        return f->ops.truncate ? f->ops.truncate(path, size) : -ENOSYS;
    struct fuse2_file_info info = df2_info_in(fi);
    return f->ops.ftruncate(path, size, &info);
}

/* UTIME_NOW and UTIME_OMIT as times, for a file system that knows neither. */
static int spell_out(const struct fuse2_layer *f, const char *path, struct timespec times[2])
{
    struct stat st = {0};
    if (times[0].tv_nsec == UTIME_OMIT || times[1].tv_nsec == UTIME_OMIT) {
        int error = f->ops.getattr(path, &st);
        if (error)
            return error;
    }
    for (int i = 0; i < 2; i++) {
        if (times[i].tv_nsec == UTIME_OMIT)
            times[i] = i == 0 ? st.st_atim : st.st_mtim;
        else if (times[i].tv_nsec == UTIME_NOW)
            clock_gettime(CLOCK_REALTIME, &times[i]);
    }
    return 0;
}

static int do_utimens(const char *path, const struct timespec given[2], struct fuse_file_info *fi)
{
    (void)fi;
    const struct fuse2_layer *f = df2_layer_here();
    if (f->ops.utimens && f->ops.flag_utime_omit_ok)
        return f->ops.utimens(path, given);
    struct timespec times[2] = {given[0], given[1]};
    int error = spell_out(f, path, times);
    if (error)
        return error;
    if (f->ops.utimens)
        return f->ops.utimens(path, times);
    struct utimbuf seconds = {.actime = times[0].tv_sec, .modtime = times[1].tv_sec};
    return f->ops.utime(path, &seconds);
}

/* ---- names ------------------------------------------------------------------------------ */

static int do_rename(const char *from, const char *to, unsigned flags)
{
    return flags ? -EINVAL : df2_layer_here()->ops.rename(from, to);
}

/* ---- open files ------------------------------------------------------------------------- */

static int do_open(const char *path, struct fuse_file_info *fi)
{
    const struct fuse2_layer *f = df2_layer_here();
    struct fuse2_file_info info = df2_info_in(fi);
    int result = f->ops.open(path, &info);
    df2_info_out(fi, &info, f->generation <= FUSE_22);
    return result;
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    const struct fuse2_layer *f = df2_layer_here();
    struct fuse2_file_info info = df2_info_in(fi);
    int result = f->ops.create(path, mode, &info);
    df2_info_out(fi, &info, f->generation <= FUSE_22);
    return result;
}

static int do_opendir(const char *path, struct fuse_file_info *fi)
{
    const struct fuse2_layer *f = df2_layer_here();
    struct fuse2_file_info info = df2_info_in(fi);
    int result = f->ops.opendir(path, &info);
    df2_info_out(fi, &info, f->generation <= FUSE_22);
    return result;
}

/* What FUSE 2 tells a program that does not expect NULL of a file that has no name any more. */
static const char *path_or_dash(const char *path)
{
    return path || df2_layer_takes_null(df2_layer_here()) ? path : "-";
}

/* An operation on a handle, the same in both versions but for the info. */
#define ON_HANDLE(name, parameters, arguments)                                                     \
    static int do_##name parameters                                                                \
    {                                                                                              \
        struct fuse2_file_info info = df2_info_in(fi);                                             \
        return df2_layer_here()->ops.name arguments;                                               \
    }

ON_HANDLE(read, (const char *path, char *buf, size_t size, off_t off, struct fuse_file_info *fi),
          (path, buf, size, off, &info))
ON_HANDLE(write,
          (const char *path, const char *buf, size_t size, off_t off, struct fuse_file_info *fi),
          (path, buf, size, off, &info))
ON_HANDLE(read_buf,
          (const char *path, struct fuse_bufvec **buf, size_t size, off_t off,
           struct fuse_file_info *fi),
          (path, buf, size, off, &info))
ON_HANDLE(write_buf,
          (const char *path, struct fuse_bufvec *buf, off_t off, struct fuse_file_info *fi),
          (path, buf, off, &info))
ON_HANDLE(flush, (const char *path, struct fuse_file_info *fi), (path, &info))
ON_HANDLE(release, (const char *path, struct fuse_file_info *fi), (path_or_dash(path), &info))
ON_HANDLE(fsync, (const char *path, int datasync, struct fuse_file_info *fi),
          (path, datasync, &info))
ON_HANDLE(releasedir, (const char *path, struct fuse_file_info *fi), (path_or_dash(path), &info))
ON_HANDLE(fsyncdir, (const char *path, int datasync, struct fuse_file_info *fi),
          (path, datasync, &info))
ON_HANDLE(lock, (const char *path, struct fuse_file_info *fi, int command, struct flock *lock),
          (path, &info, command, lock))
ON_HANDLE(flock, (const char *path, struct fuse_file_info *fi, int operation),
          (path, &info, operation))
ON_HANDLE(ioctl,
          (const char *path, unsigned command, void *arg, struct fuse_file_info *fi, unsigned flags,
           void *data),
          (path, (int)command, arg, &info, flags, data))
ON_HANDLE(poll,
          (const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
           unsigned *events),
          (path, &info, handle, events))
ON_HANDLE(fallocate,
          (const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *fi),
          (path, mode, offset, length, &info))

/* ---- directories ------------------------------------------------------------------------ */

static int fill_entry(void *data, const char *name, const struct stat *st, off_t off)
{
    const struct fuse2_filler *filler = data;
    return filler->fill(filler->buf, name, st, off, 0);
}

int df2_fill_typed(void *data, const char *name, int type, ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_mode = (mode_t)type << 12};
    return fill_entry(data, name, &st, 0) ? -ENOMEM : 0;
}

static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)flags;
    const struct fuse2_layer *f = df2_layer_here();
    struct fuse2_filler filler = {fill, buf};
    struct fuse2_file_info info = df2_info_in(fi);
    if (f->ops.readdir)
        return f->ops.readdir(path, &filler, fill_entry, off, &info);
    return f->ops.getdir(path, &filler, df2_fill_typed);
}

/* ---- the table -------------------------------------------------------------------------- */

struct fuse_operations df2_translate(const struct fuse2_layer *layer)
{
    struct fuse_operations to = {.init = do_init, .destroy = df2_layer_destroy};
    const struct fuse2_operations *from = &layer->ops;

#define SAME(name) to.name = from->name
    SAME(readlink);
    SAME(mknod);
    SAME(mkdir);
    SAME(unlink);
    SAME(rmdir);
    SAME(symlink);
    SAME(link);
    SAME(setxattr);
    SAME(getxattr);
    SAME(listxattr);
    SAME(removexattr);
    SAME(access);
    SAME(bmap);
    SAME(statfs);
#undef SAME
#define IF_PRESENT(name) to.name = from->name ? do_##name : NULL
    IF_PRESENT(getattr);
    IF_PRESENT(chmod);
    IF_PRESENT(chown);
    IF_PRESENT(rename);
    IF_PRESENT(open);
    IF_PRESENT(create);
    IF_PRESENT(opendir);
    IF_PRESENT(read);
    IF_PRESENT(write);
    IF_PRESENT(read_buf);
    IF_PRESENT(write_buf);
    IF_PRESENT(flush);
    IF_PRESENT(release);
    IF_PRESENT(fsync);
    IF_PRESENT(releasedir);
    IF_PRESENT(fsyncdir);
    IF_PRESENT(lock);
    IF_PRESENT(flock);
    IF_PRESENT(ioctl);
    IF_PRESENT(poll);
    IF_PRESENT(fallocate);
#undef IF_PRESENT
    to.truncate = from->truncate || from->ftruncate ? do_truncate : NULL;
    to.utimens = from->utimens || from->utime ? do_utimens : NULL;
    to.readdir = from->readdir || from->getdir ? do_readdir : NULL;
    if (layer->generation < FUSE_26)
        df2_translate_old(&to, layer->generation, from);
    return to;
}
