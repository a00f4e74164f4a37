/*
 * cmdline.c - the options that every FUSE program understands (-f, -s, -d, --help, mountpoint ...),
 * and fuse_main_real(), which runs a high-level file system from its command line.
 */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "libfuse/abi.h"

#include "libfuse/cmdline_words.h"

enum { DEFAULT_MAX_THREADS = 10 };

#define FLAG(template, member)   {template, offsetof(struct fuse_cmdline_opts, member), 1}
#define NUMBER(template, member) {template, offsetof(struct fuse_cmdline_opts, member), 0}

/* What fuse_new() and fuse_session_new() also want to see is kept. */
static const struct fuse_opt cmdline_opts[] = {
    FLAG("-h", show_help),
    FLAG("--help", show_help),
    FLAG("-V", show_version),
    FLAG("--version", show_version),
    FLAG("-d", debug),
    FLAG("debug", debug),
    FLAG("-d", foreground),
    FLAG("debug", foreground),
    FUSE_OPT_KEY("-d", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("debug", FUSE_OPT_KEY_KEEP),
    FLAG("-f", foreground),
    FLAG("-s", singlethread),
    FLAG("fsname=", nodefault_subtype),
    FUSE_OPT_KEY("fsname=", FUSE_OPT_KEY_KEEP),
    FLAG("subtype=", nodefault_subtype),
    FUSE_OPT_KEY("subtype=", FUSE_OPT_KEY_KEEP),
    FLAG("clone_fd", clone_fd),
    NUMBER("max_idle_threads=%u", max_idle_threads),
    NUMBER("max_threads=%u", max_threads),
    FUSE_OPT_END,
};

static int cmdline_proc(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    struct fuse_cmdline_opts *opts = data;
    (void)outargs;
    return key == FUSE_OPT_KEY_NONOPT ? df_cmdline_mountpoint(&opts->mountpoint, arg) : 1;
}

int df_abi_parse_cmdline(struct fuse_args *args, struct fuse_cmdline_opts *opts)
{
    *opts = (struct fuse_cmdline_opts){
        .max_idle_threads = UINT_MAX, /* -1: idle threads stay */
        .max_threads = DEFAULT_MAX_THREADS,
    };
    if (fuse_opt_parse(args, opts, cmdline_opts, cmdline_proc) == -1)
        return -1;
    return opts->nodefault_subtype || args->argc == 0 ? 0 : df_cmdline_subtype(args);
}

/* ---- fuse_main -------------------------------------------------------------------------- */

/* What fuse_main() returns; in <fuse.h> and, for LOOP, in libfuse's practice. */
enum main_status {
    MAIN_OK,
    MAIN_BAD_OPTIONS,
    MAIN_NO_MOUNTPOINT,
    MAIN_SETUP,
    MAIN_MOUNT,
    MAIN_DAEMONIZE,
    MAIN_SIGNALS,
    MAIN_LOOP_CONFIG,
    MAIN_LOOP,
};

static void print_version(void)
{
    df_abi_print("FUSE library version %s\n", fuse_pkgversion());
    fuse_lowlevel_version();
}

static void print_help(struct fuse_args *args)
{
    if (args->argv[0][0] != '\0')
        df_abi_print("usage: %s [options] <mountpoint>\n\n", args->argv[0]);
    df_abi_print("FUSE options:\n");
    fuse_cmdline_help();
    fuse_lib_help(args);
}

static int run_loop(struct fuse *f, const struct fuse_cmdline_opts *opts)
{
    if (opts->singlethread)
        return fuse_loop(f) == 0 ? MAIN_OK : MAIN_LOOP;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return MAIN_LOOP_CONFIG;
    fuse_loop_cfg_set_clone_fd(config, (unsigned)opts->clone_fd);
    fuse_loop_cfg_set_idle_threads(config, opts->max_idle_threads);
    fuse_loop_cfg_set_max_threads(config, opts->max_threads);
    int result = df_abi_loop_mt(fuse_get_session(f), config);
    fuse_loop_cfg_destroy(config);
    return result == 0 ? MAIN_OK : MAIN_LOOP;
}

static int serve(struct fuse *f, const struct fuse_cmdline_opts *opts)
{
    struct fuse_session *se = fuse_get_session(f);
    if (fuse_daemonize(opts->foreground) != 0)
        return MAIN_DAEMONIZE;
    if (fuse_set_signal_handlers(se) != 0)
        return MAIN_SIGNALS;
    int status = run_loop(f, opts);
    fuse_remove_signal_handlers(se);
    return status;
}

static int mount_and_serve(struct fuse_args *args, const struct fuse_cmdline_opts *opts,
                           const struct fuse_operations *op, size_t op_size, void *user_data,
                           struct df_plugin *plugin)
{
    struct fuse *f = df_abi_fuse_new(args, op, op_size, user_data, plugin);
    if (!f)
        return MAIN_SETUP;
    int status = MAIN_MOUNT;
    if (fuse_mount(f, opts->mountpoint) == 0) {
        status = serve(f, opts);
        fuse_unmount(f);
    }
    fuse_destroy(f);
    return status;
}

int df_abi_main(int argc, char *argv[], const struct fuse_operations *op, size_t op_size,
                void *user_data, struct df_plugin *plugin)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    int status = MAIN_OK;

    if (df_abi_parse_cmdline(&args, &opts) != 0) {
        free(opts.mountpoint);
        fuse_opt_free_args(&args);
        return MAIN_BAD_OPTIONS;
    }
    if (opts.show_version) {
        print_version();
    } else if (opts.show_help) {
        print_help(&args);
    } else if (!opts.mountpoint) {
        fuse_log(FUSE_LOG_ERR, "error: no mountpoint specified\n");
        status = MAIN_NO_MOUNTPOINT;
    } else {
        status = mount_and_serve(&args, &opts, op, op_size, user_data, plugin);
    }
    free(opts.mountpoint);
    fuse_opt_free_args(&args);
    return status;
}

int fuse_main_real(int argc, char *argv[], const struct fuse_operations *op, size_t op_size,
                   void *user_data)
{
    return df_abi_main(argc, argv, op, op_size, user_data,
                       df_abi_plugin(__builtin_return_address(0)));
}
