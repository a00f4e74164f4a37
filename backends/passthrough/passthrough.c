/*
 * passthrough.c - a directory served through: command line and life.
 *
 *   passthrough SOURCE MOUNTPOINT [-o options]
 *
 * An ordinary FUSE program. Nothing here is global, so that main() may run several times in one
 * process, each time for another mount.
 */
#include "passthrough.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char usage[] =
    "usage: %s SOURCE MOUNTPOINT [options]\n"
    "\n"
    "Shows the directory SOURCE at MOUNTPOINT.\n"
    "\n"
    "general options:\n"
    "    -h   --help            print help\n"
    "    -V   --version         print version\n"
    "    -f                     stay in the foreground\n"
    "    -d                     debug output (implies -f)\n"
    "    -s                     serve with one thread\n"
    "    -o attr_timeout=T      believe attributes for T seconds (default: 0, they are asked for\n"
    "                           each time; hard links and changes in SOURCE are seen at once)\n"
    "    -o entry_timeout=T     believe names for T seconds (default: 1)\n"
    "    -o allow_other         let all users in; run by root, mode bits are then checked and\n"
    "                           what a user makes is given to him\n"
    "\n";

enum { KEY_HELP, KEY_VERSION, KEY_ALLOW_OTHER };

static const struct fuse_opt option_table[] = {
    FUSE_OPT_KEY("-h", KEY_HELP),
    FUSE_OPT_KEY("--help", KEY_HELP),
    FUSE_OPT_KEY("-V", KEY_VERSION),
    FUSE_OPT_KEY("--version", KEY_VERSION),
    FUSE_OPT_KEY("allow_other", KEY_ALLOW_OTHER),
    FUSE_OPT_END,
};

/* The command line, as far as it is ours. */
struct options {
    char *source; /* the first word that is no option; owned */
    bool help, version, allow_other;
};

/* Keeps (1) what libfuse is to see, too. */
static int take_option(void *data, const char *arg, int key, struct fuse_args *rest)
{
    struct options *options = data;

    (void)rest;
    switch (key) {
    case KEY_HELP:
        options->help = true;
        return 1;
    case KEY_VERSION:
        options->version = true;
        return 1;
    case KEY_ALLOW_OTHER:
        options->allow_other = true;
        return 1;
    case FUSE_OPT_KEY_NONOPT:
        if (options->source)
            return 1;
        options->source = strdup(arg);
        return options->source ? 0 : -1;
    default:
        return 1;
    }
}

/* ---- the source ---- */

/* The mask cannot be read without being set, but in /proc. */
static mode_t read_umask(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    unsigned mask = 0;

    while (status && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    }
    if (status)
        fclose(status);
    return (mode_t)mask;
}

/* File systems whose close(2) has something to say. */
static bool flushes(int root)
{
    struct statfs st;

    if (fstatfs(root, &st) < 0)
        return true;
    switch ((unsigned long)st.f_type) {
    case NFS_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

/* Opens the source once for all; later calls go by this descriptor, wherever the directory moves
 * and whatever is mounted over its name. */
static bool open_source(struct passthrough *fs)
{
    fs->root = open(fs->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fs->root < 0) {
        fuse_log(FUSE_LOG_ERR, "passthrough: cannot serve '%s': %s\n", fs->source, strerror(errno));
        return false;
    }
    snprintf(fs->proc, sizeof(fs->proc), "/proc/self/fd/%d", fs->root);
    fs->uid = geteuid();
    fs->gid = getegid();
    fs->umask = read_umask();
    fs->flushes = flushes(fs->root);
    return true;
}

/* ---- life ---- */

static void *passthrough_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    config->use_ino = 1;     /* the backing numbers */
    config->nullpath_ok = 1; /* open files have descriptors */
    /* passthrough_mode() and passthrough_strip() see to these. */
    conn->want |= conn->capable & (FUSE_CAP_DONT_MASK | FUSE_CAP_HANDLE_KILLPRIV);
    return fuse_get_context()->private_data;
}

/*
 * For directfuse, which finds this (and directfuse_getattr_at) by its name; a constant like any
 * other for everybody else. What makes, moves and removes names here are the calls of a POSIX
 * system, which check by themselves what the kernel would look up for them (docs/decisions/014).
 */
const unsigned directfuse_posix_names = 1;

/* The same: what is asked to copy more than the source has copies what it has. */
const unsigned directfuse_posix_copies = 1;

/* The same: main() may come back from its loop on another thread (docs/decisions/015). */
const unsigned directfuse_main_moves = 1;

static const struct fuse_operations operations = {
    .init = passthrough_init,
    .getattr = passthrough_getattr,
    .readlink = passthrough_readlink,
    .mknod = passthrough_mknod,
    .mkdir = passthrough_mkdir,
    .unlink = passthrough_unlink,
    .rmdir = passthrough_rmdir,
    .symlink = passthrough_symlink,
    .rename = passthrough_rename,
    .link = passthrough_link,
    .chmod = passthrough_chmod,
    .chown = passthrough_chown,
    .truncate = passthrough_truncate,
    .open = passthrough_open,
    .read = passthrough_read,
    .write = passthrough_write,
    .statfs = passthrough_statfs,
    .flush = passthrough_flush,
    .release = passthrough_release,
    .fsync = passthrough_fsync,
    .setxattr = passthrough_setxattr,
    .getxattr = passthrough_getxattr,
    .listxattr = passthrough_listxattr,
    .removexattr = passthrough_removexattr,
    .opendir = passthrough_opendir,
    .readdir = passthrough_readdir,
    .releasedir = passthrough_releasedir,
    .fsyncdir = passthrough_fsyncdir,
    .access = passthrough_access,
    .create = passthrough_create,
    .utimens = passthrough_utimens,
    .write_buf = passthrough_write_buf,
    .read_buf = passthrough_read_buf,
    .flock = passthrough_flock,
    .fallocate = passthrough_fallocate,
    .copy_file_range = passthrough_copy_file_range,
    .lseek = passthrough_lseek,
};

/* Our defaults go in front, so that the command line overrides them. */
static int add_defaults(struct fuse_args *args, const struct passthrough *fs)
{
    char *name = NULL;
    int result = -1;

    if (asprintf(&name, "fsname=%s", fs->source) >= 0) {
        char *options = NULL;
        result = fuse_opt_add_opt_escaped(&options, name);
        if (result == 0)
            result = fuse_opt_add_opt(&options, "subtype=passthrough,attr_timeout=0");
        if (result == 0 && fs->for_others)
            result = fuse_opt_add_opt(&options, "default_permissions");
        if (result == 0)
            result = fuse_opt_insert_arg(args, 1, options);
        if (result == 0)
            result = fuse_opt_insert_arg(args, 1, "-o");
        free(options);
        free(name);
    }
    return result;
}

static int serve(struct fuse_args *args, struct passthrough *fs)
{
    if (!open_source(fs))
        return 1;
    fs->for_others = fs->for_others && fs->uid == 0;
    int status = 1;
    if (add_defaults(args, fs) == 0)
        status = fuse_main(args->argc, args->argv, &operations, fs);
    close(fs->root);
    return status;
}

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct options options = {0};
    const char *program = argc > 0 ? argv[0] : "passthrough";
    int status = 1;

    if (fuse_opt_parse(&args, &options, option_table, take_option) == 0) {
        struct passthrough fs = {.source = options.source, .for_others = options.allow_other};
        if (options.help) {
            printf(usage, program);
            args.argv[0][0] = '\0'; /* libfuse then leaves its own usage line out */
        }
        if (options.help || options.version) /* libfuse adds its own words */
            status = fuse_main(args.argc, args.argv, &operations, NULL);
        else if (!options.source)
            fuse_log(FUSE_LOG_ERR, "passthrough: no source directory given\n"
                                   "usage: passthrough SOURCE MOUNTPOINT [options]; try --help\n");
        else
            status = serve(&args, &fs);
    }
    free(options.source);
    fuse_opt_free_args(&args);
    return status;
}
