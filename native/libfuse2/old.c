/*
 * old.c - what the operations of FUSE 1.x to 2.5 had otherwise. Their table is the beginning of
 * that of 2.9, with functions of other types here and there; programs bound to the compatible entry
 * points (compat.c) bring such tables.
 *
 * Arguments that were added at the end of an operation are simply not looked at by one that was
 * written before, so only those are here that take others or understand them otherwise.
 */
#include <errno.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "libfuse2/abi2.h"

struct statfs_1x {
    long block_size; /* bytes */
    long blocks;     /* counts */
    long blocks_free;
    long files;
    long files_free;
    long name_length;
};

/* The operations that differ, by the generation that they came with. */
union old {
    int (*open_21)(const char *, int flags);
    int (*release_21)(const char *, int flags);
    int (*getdir_21)(const char *, void *, int (*)(void *, const char *, int type));
    int (*statfs_1x)(struct statfs_1x *);
    int (*statfs_22)(const char *, struct statfs *);
    int (*statfs_25)(const char *, struct statvfs *);
    void *any;
};

#define OLD(name) ((union old){.any = (void *)df2_layer_here()->ops.name})

/* ---- open files: no handles before 2.2 ------------------------------------------------------ */

static int open_21(const char *path, struct fuse_file_info *fi)
{
    return OLD(open).open_21(path, fi->flags);
}

static int release_21(const char *path, struct fuse_file_info *fi)
{
    return OLD(release).release_21(path, fi->flags);
}

/* ---- directories ---------------------------------------------------------------------------- */

static int fill_21(void *data, const char *name, int type)
{
    return df2_fill_typed(data, name, type, 0);
}

static int readdir_21(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)off;
    (void)fi;
    (void)flags;
    struct fuse2_filler filler = {fill, buf};
    return OLD(getdir).getdir_21(path, &filler, fill_21);
}

/* ---- statfs --------------------------------------------------------------------------------- */

struct statvfs df2_statvfs_of(const struct statfs *st)
{
    return (struct statvfs){
        .f_bsize = st->f_bsize,
        .f_frsize = st->f_bsize,
        .f_blocks = st->f_blocks,
        .f_bfree = st->f_bfree,
        .f_bavail = st->f_bavail,
        .f_files = st->f_files,
        .f_ffree = st->f_ffree,
        .f_favail = st->f_ffree,
        .f_namemax = st->f_namelen,
    };
}

static int statfs_1x(const char *path, struct statvfs *out)
{
    (void)path;
    struct statfs_1x st = {0};
    int error = OLD(statfs).statfs_1x(&st);
    *out = (struct statvfs){
        .f_bsize = st.block_size,
        .f_frsize = st.block_size,
        .f_blocks = st.blocks,
        .f_bfree = st.blocks_free,
        .f_bavail = st.blocks_free,
        .f_files = st.files,
        .f_ffree = st.files_free,
        .f_favail = st.files_free,
        .f_namemax = st.name_length,
    };
    return error;
}

static int statfs_22(const char *path, struct statvfs *out)
{
    (void)path;
    struct statfs st = {0};
    int error = OLD(statfs).statfs_22("/", &st);
    *out = df2_statvfs_of(&st);
    return error;
}

static int statfs_25(const char *path, struct statvfs *out)
{
    (void)path;
    return OLD(statfs).statfs_25("/", out);
}

/* ---- the table ------------------------------------------------------------------------------ */

void df2_translate_old(struct fuse_operations *ops, enum fuse2_generation generation,
                       const struct fuse2_operations *from)
{
    if (from->statfs)
        ops->statfs = generation == FUSE_1X   ? statfs_1x
                      : generation <= FUSE_22 ? statfs_22
                                              : statfs_25;
    if (generation > FUSE_21)
        return;
    ops->open = from->open ? open_21 : NULL;
    ops->release = from->release ? release_21 : NULL;
    ops->readdir = from->getdir ? readdir_21 : NULL;
}
