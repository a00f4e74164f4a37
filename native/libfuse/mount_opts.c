/*
 * mount_opts.c - the options that libfuse takes for itself, for mount(8) and for the kernel.
 *
 * What has a meaning without a kernel mount goes to struct df_session. The rest is accepted as
 * libfuse accepts it and has no effect: nothing is executed, no device is opened and no label is
 * checked through a mount inside a process, and times are the file system's own business.
 */
#include <stddef.h>
#include <stdlib.h>

#include "libfuse/abi.h"

struct mount_opts {
    int debug;
    int allow_other;
    int allow_root;
    int default_permissions;
    int readonly;
    unsigned max_read;
    char *fsname;
    char *subtype;
};

#define SET(template, member, value) {template, offsetof(struct mount_opts, member), value}
#define ACCEPT(template)             FUSE_OPT_KEY(template, FUSE_OPT_KEY_DISCARD)

static const struct fuse_opt mount_opts[] = {
    SET("-d", debug, 1),
    SET("--debug", debug, 1),
    SET("debug", debug, 1),
    SET("allow_other", allow_other, 1),
    SET("allow_root", allow_root, 1),
    SET("default_permissions", default_permissions, 1),
    SET("-r", readonly, 1),
    SET("ro", readonly, 1),
    SET("rw", readonly, 0),
    SET("max_read=%u", max_read, 0),
    SET("fsname=%s", fsname, 0),
    SET("subtype=%s", subtype, 0),
    ACCEPT("-n"),
    ACCEPT("auto_unmount"),
    ACCEPT("blkdev"),
    ACCEPT("blksize="),
    ACCEPT("user="),
    ACCEPT("context="),
    ACCEPT("fscontext="),
    ACCEPT("defcontext="),
    ACCEPT("rootcontext="),
    ACCEPT("suid"),
    ACCEPT("nosuid"),
    ACCEPT("dev"),
    ACCEPT("nodev"),
    ACCEPT("exec"),
    ACCEPT("noexec"),
    ACCEPT("async"),
    ACCEPT("sync"),
    ACCEPT("dirsync"),
    ACCEPT("atime"),
    ACCEPT("noatime"),
    FUSE_OPT_END,
};

int df_abi_parse_mount_opts(struct fuse_args *args, struct fuse_session *se)
{
    struct mount_opts opts = {0};
    if (fuse_opt_parse(args, &opts, mount_opts, NULL) == -1) {
        free(opts.fsname);
        free(opts.subtype);
        return -1;
    }
    se->debug = opts.debug;
    se->words = (struct df_mount_words){.fsname = opts.fsname, .subtype = opts.subtype};
    se->mount.fsname = opts.fsname;
    se->mount.subtype = opts.subtype;
    se->mount.readonly = opts.readonly;
    se->mount.allow_other = opts.allow_other;
    se->mount.allow_root = opts.allow_root;
    se->mount.default_permissions = opts.default_permissions;
    se->mount.max_read = opts.max_read;
    return 0;
}
