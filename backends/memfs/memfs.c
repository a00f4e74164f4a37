/*
 * memfs.c - an in-memory file system on libfuse's low-level API: command line and session.
 *
 * An ordinary FUSE program. Nothing here is global, so that main() may run several times in one
 * process, each time for another mount.
 */
#include "door.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static const double FOREVER = 1e9; /* seconds */

struct options {
    char *size;
    char *inodes;
    unsigned mode, uid, gid;
    double timeout;
    int direct_io, writeback, keep_cache, noatime, huge;
    struct fuse_cmdline_opts cmdline;
};

enum { KEY_NOATIME };

#define OPTION(text, member, value) {text, offsetof(struct options, member), value}

static const struct fuse_opt option_table[] = {
    OPTION("size=%s", size, 0),
    OPTION("inodes=%s", inodes, 0),
    OPTION("mode=%o", mode, 0),
    OPTION("uid=%u", uid, 0),
    OPTION("gid=%u", gid, 0),
    OPTION("timeout=%lf", timeout, 0),
    OPTION("direct_io", direct_io, 1),
    OPTION("kernel_cache", keep_cache, 1),
    OPTION("no_kernel_cache", keep_cache, 0),
    OPTION("writeback_cache", writeback, 1),
    OPTION("huge", huge, 1),
    FUSE_OPT_KEY("noatime", KEY_NOATIME),
    FUSE_OPT_END,
};

static const char usage[] =
    "usage: %s [options] <mountpoint>\n"
    "\n"
    "A file system in memory: what is in it is gone when it is unmounted.\n"
    "\n"
    "memfs options:\n"
    "    -o size=SIZE           limit of data, bytes or with k, m, g, t, or %% of RAM\n"
    "                           (default: 50%%; 0: no limit)\n"
    "    -o inodes=N            limit of files, directories and further links, with k, m, g\n"
    "                           (default: one for every 8 KiB of RAM; 0: no limit)\n"
    "    -o mode=MODE           permissions of the root directory, octal (default: 0755)\n"
    "    -o uid=N, -o gid=N     owner and group of the root directory (default: the caller's)\n"
    "    -o timeout=SECONDS     how long the kernel may keep names and attributes (default: for\n"
    "                           ever, as it sees all changes itself; 0: ask each time)\n"
    "    -o no_kernel_cache     drop a file's pages from the kernel's cache at every open\n"
    "    -o direct_io           no page cache at all\n"
    "    -o writeback_cache     let the kernel collect small writes\n"
    "    -o noatime             never change access times (default: relatime)\n"
    "    -o huge                ask for huge pages for files from 8 MiB on\n"
    "\n"
    "Always set: default_permissions. Further options:\n";

static int show_help(const char *program)
{
    printf(usage, program);
    fuse_cmdline_help();
    fuse_lowlevel_help();
    return 0;
}

static int show_version(void)
{
    printf("memfs: an in-memory file system, part of directfuse\n");
    printf("FUSE library version %s\n", fuse_pkgversion());
    fuse_lowlevel_version();
    return 0;
}

/* fuse_opt_parse()'s callback: notes what the session must hear of as well. */
static int see_option(void *data, const char *arg, int key, struct fuse_args *args)
{
    (void)arg;
    (void)args;
    if (key == KEY_NOATIME)
        ((struct options *)data)->noatime = 1;
    return 1;
}

static int64_t ram(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/* A number with a suffix; percents are of `whole`. False, and a message: it is none. */
static bool parse_amount(const char *option, const char *text, int64_t whole, int64_t *out)
{
    static const char suffixes[] = "kmgt";
    char *end;
    double factor = 1;
    long long number = strtoll(text, &end, 10);

    if (*end == '%' && whole) {
        factor = (double)whole / 100;
        end++;
    } else {
        for (int i = 0; *end && suffixes[i] && factor == 1; i++) {
            if (strncasecmp(end, &suffixes[i], 1) == 0)
                factor = (double)(INT64_C(1) << 10 * (i + 1));
        }
        end += factor != 1;
    }
    if (end == text || *end || number < 0 || (double)number * factor > (double)(INT64_MAX / 4)) {
        fprintf(stderr, "memfs: %s=%s: not an amount; try %s=100m\n", option, text, option);
        return false;
    }
    *out = (int64_t)((double)number * factor);
    return true;
}

/* The file system the options ask for. NULL, and a message: it cannot be made. */
static struct store *make_store(const struct options *options)
{
    struct store_options store_options = {
        .size = ram() / 2,
        .inodes = ram() / 8192,
        .mode = options->mode,
        .uid = options->uid,
        .gid = options->gid,
        .noatime = options->noatime,
        .huge = options->huge,
    };

    if (options->size && !parse_amount("size", options->size, ram(), &store_options.size))
        return NULL;
    if (options->inodes && !parse_amount("inodes", options->inodes, 0, &store_options.inodes))
        return NULL;
    struct store *store = store_new(&store_options);
    if (!store)
        fprintf(stderr, "memfs: no memory, or a limit too small for the root directory\n");
    return store;
}

static int loop(struct fuse_session *session, const struct fuse_cmdline_opts *cmdline)
{
    if (cmdline->singlethread)
        return fuse_session_loop(session);

    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -1;
    fuse_loop_cfg_set_clone_fd(config, (unsigned)cmdline->clone_fd);
    fuse_loop_cfg_set_max_threads(config, cmdline->max_threads);
    if (cmdline->max_idle_threads != UINT_MAX) /* not given: libfuse 3.14 would complain */
        fuse_loop_cfg_set_idle_threads(config, cmdline->max_idle_threads);
    int result = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

/* Mounts, serves until unmounted; 0 or -1. */
static int serve(struct fuse_args *args, const struct fuse_cmdline_opts *cmdline, struct door *door)
{
    int result = -1;
    struct fuse_session *session = fuse_session_new(args, &door_ops.ops, later_ops_size(), door);
    if (!session)
        return -1;
    if (fuse_set_signal_handlers(session) == 0) {
        if (fuse_session_mount(session, cmdline->mountpoint) == 0) {
            if (fuse_daemonize(cmdline->foreground) == 0)
                result = loop(session, cmdline);
            fuse_session_unmount(session);
        }
        fuse_remove_signal_handlers(session);
    }
    fuse_session_destroy(session);
    return result < 0 ? -1 : 0; /* a signal that ended the loop is no failure */
}

static int run(struct fuse_args *args, const struct options *options)
{
    struct door door = {
        .timeout = options->timeout,
        .direct_io = options->direct_io,
        .keep_cache = options->keep_cache,
        .writeback = options->writeback,
        .absent = {.entry_timeout = options->timeout}, /* node 0: to be remembered as absent */
    };

    if (options->cmdline.show_help)
        return show_help(args->argv[0]);
    if (options->cmdline.show_version)
        return show_version();
    if (!options->cmdline.mountpoint) {
        fprintf(stderr, "memfs: no mountpoint given: memfs MOUNTPOINT [options]\n");
        return -1;
    }
    if (options->timeout < 0) {
        fprintf(stderr, "memfs: timeout=%g: must not be negative\n", options->timeout);
        return -1;
    }
    /* In front, so that the user's own fsname, which comes later, wins. */
    if (fuse_opt_insert_arg(args, 1, "-ofsname=memfs,default_permissions") != 0)
        return -1;
    door.store = make_store(options);
    if (!door.store)
        return -1;
    int result = serve(args, &options->cmdline, &door);
    store_free(door.store);
    return result;
}

/* For directfuse, which finds it by its name: main() may come back from its loop on another thread
 * (its docs/decisions/015). Exported even where everything else is hidden, as main() is. */
__attribute__((visibility("default"))) extern const unsigned directfuse_main_moves;
const unsigned directfuse_main_moves = 1;

/* Exported even where everything else is hidden: whoever loads memfs as a plugin looks for it. */
__attribute__((visibility("default"))) int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct options options = {
        .mode = 0755,
        .uid = getuid(),
        .gid = getgid(),
        .timeout = FOREVER,
        .keep_cache = 1,
    };
    int result = -1;

    if (fuse_opt_parse(&args, &options, option_table, see_option) == 0 &&
        fuse_parse_cmdline(&args, &options.cmdline) == 0)
        result = run(&args, &options);
    free(options.cmdline.mountpoint);
    free(options.size);
    free(options.inodes);
    fuse_opt_free_args(&args);
    return result ? 1 : 0;
}
