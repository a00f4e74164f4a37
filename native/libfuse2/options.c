/*
 * options.c - what FUSE 2 takes from the command line and FUSE 3 does not, and which options belong
 * to the mount. In FUSE 2 fuse_mount() takes those out of the arguments before fuse_new() sees
 * them.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse2/abi2.h"

enum { KEY_MOUNT = 1 };

#define MOUNT(template) FUSE_OPT_KEY(template, KEY_MOUNT)
#define GONE(template)  FUSE_OPT_KEY(template, FUSE_OPT_KEY_DISCARD)

static const struct fuse_opt mount_opts[] = {
    MOUNT("allow_other"),  MOUNT("allow_root"),   MOUNT("default_permissions"),
    MOUNT("auto_unmount"), MOUNT("blkdev"),       MOUNT("fsname="),
    MOUNT("subtype="),     MOUNT("blksize="),     MOUNT("max_read="),
    MOUNT("user="),        MOUNT("context="),     MOUNT("fscontext="),
    MOUNT("defcontext="),  MOUNT("rootcontext="), MOUNT("-r"),
    MOUNT("-n"),           MOUNT("ro"),           MOUNT("rw"),
    MOUNT("suid"),         MOUNT("nosuid"),       MOUNT("dev"),
    MOUNT("nodev"),        MOUNT("exec"),         MOUNT("noexec"),
    MOUNT("async"),        MOUNT("sync"),         MOUNT("dirsync"),
    MOUNT("atime"),        MOUNT("noatime"),      GONE("-w"),
    GONE("nonempty"),   /* a mountpoint need not even exist */
    GONE("large_read"), /* of Linux 2.4 */
    GONE("fusermount="),   FUSE_OPT_END,
};

static int take_mount_option(void *data, const char *arg, int key, struct fuse_args *rest)
{
    (void)rest;
    struct fuse_args *mount = data;
    if (key != KEY_MOUNT)
        return 1;
    if (arg[0] != '-' && fuse_opt_add_arg(mount, "-o") == -1)
        return -1;
    return fuse_opt_add_arg(mount, arg);
}

int df2_take_mount_options(struct fuse_args *args, struct fuse_args *mount)
{
    return fuse_opt_parse(args, mount, mount_opts, take_mount_option);
}

#define SET(template, member, value) {template, offsetof(struct fuse2, config.member), value}

static const struct fuse_opt high_opts[] = {
    SET("hard_remove", hard_remove, 1),
    SET("use_ino", use_ino, 1),
    SET("readdir_ino", readdir_ino, 1),
    SET("direct_io", direct_io, 1),
    SET("intr", intr, 1),
    SET("intr_signal=%d", intr_signal, 0),
    SET("nopath", nopath, 1),
    FUSE_OPT_END,
};

#define CONN(template, member, value) {template, offsetof(struct fuse2_conn_opts, member), value}

static const struct fuse_opt conn_opts[] = {
    CONN("max_write=%u", max_write, 0),
    CONN("max_readahead=%u", max_readahead, 0),
    CONN("max_background=%u", max_background, 0),
    CONN("congestion_threshold=%u", congestion_threshold, 0),
    CONN("async_read", sync_read, 0),
    CONN("sync_read", sync_read, 1),
    CONN("atomic_o_trunc", atomic_o_trunc, 1),
    CONN("no_remote_lock", no_posix_lock, 1),
    CONN("no_remote_lock", no_flock, 1),
    CONN("no_remote_posix_lock", no_posix_lock, 1),
    CONN("no_remote_flock", no_flock, 1),
    CONN("big_writes", big_writes, 1),
    CONN("splice_write", splice_write, 1),
    CONN("no_splice_write", no_splice_write, 1),
    CONN("splice_move", splice_move, 1),
    CONN("no_splice_move", no_splice_move, 1),
    CONN("splice_read", splice_read, 1),
    CONN("no_splice_read", no_splice_read, 1),
    FUSE_OPT_END,
};

int df2_take_conn_options(struct fuse_args *args, struct fuse2_conn_opts *opts)
{
    return fuse_opt_parse(args, opts, conn_opts, NULL);
}

int df2_take_high_options(struct fuse_args *args, struct fuse2 *f)
{
    if (fuse_opt_parse(args, f, high_opts, NULL) == -1)
        return -1;
    return df2_take_conn_options(args, &f->conn);
}

int df2_arguments_of(const char *options, struct fuse_args *args)
{
    *args = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    if (fuse_opt_add_arg(args, "fuse") == -1)
        return -1;
    if (!options || !options[0])
        return 0;
    return fuse_opt_add_arg(args, "-o") == -1 ? -1 : fuse_opt_add_arg(args, options);
}

int df2_join(struct fuse_args *out, const struct fuse_args *first, const struct fuse_args *more)
{
    *out = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    for (int i = 0; i < first->argc; i++)
        if (fuse_opt_add_arg(out, first->argv[i]) == -1)
            return -1;
    for (int i = 1; i < more->argc; i++)
        if (fuse_opt_add_arg(out, more->argv[i]) == -1)
            return -1;
    return 0;
}

/* Whether a program should hand an option on to the library (deprecated, still used). */
static int is_known(const struct fuse_opt *opts, const char *opt)
{
    return fuse_opt_match(opts, opt);
}

static const struct fuse_opt low_opts[] = {
    GONE("debug"),
    GONE("-d"),
    GONE("allow_root"),
    FUSE_OPT_END,
};

static const struct fuse_opt kept_high_opts[] = {
    GONE("kernel_cache"),     GONE("auto_cache"),    GONE("noauto_cache"),
    GONE("umask="),           GONE("uid="),          GONE("gid="),
    GONE("entry_timeout="),   GONE("attr_timeout="), GONE("negative_timeout="),
    GONE("ac_attr_timeout="), GONE("noforget"),      GONE("remember="),
    GONE("modules="),         FUSE_OPT_END,
};

int fuse2_lowlevel_is_lib_option(const char *opt)
{
    return is_known(low_opts, opt) || is_known(conn_opts, opt);
}
EXPORT(fuse2_lowlevel_is_lib_option, "fuse_lowlevel_is_lib_option@@FUSE_2.4");

int fuse2_is_lib_option(const char *opt)
{
    return fuse2_lowlevel_is_lib_option(opt) || is_known(high_opts, opt) ||
           is_known(kept_high_opts, opt);
}
EXPORT(fuse2_is_lib_option, "fuse_is_lib_option@@FUSE_2.2");
