/*
 * versions.c - names that mean different things in different versions of the ABI. A program says
 * with its symbol's version (name@FUSE_3.0) which one it was built against. What differs between
 * the two libraries, libfuse3.so.3 and libfuse3.so.4, is in versions3.c and versions4.c.
 *
 *   name                  @FUSE_3.0   @FUSE_3.1  @FUSE_3.2  @@FUSE_3.12   differs in
 *   fuse_new              _30         @@ _31                              --help is handled inside
 *   fuse_loop_mt          _31                    _32        _312          int clone_fd, public
 *   fuse_session_loop_mt  _31                    _32        _312          struct, opaque struct
 *   fuse_parse_cmdline    _30                               _312          size of the result
 *
 * Later headers bind the suffixed names directly, so those are exported too (versions.map).
 */
#include <stddef.h>
#include <string.h>

#include "libfuse/abi.h"

#define VERSION(function, name) __asm__(".symver " #function "," name)

/* ---- fuse_new ---------------------------------------------------------------------------- */

static const struct fuse_opt help_opts[] = {
    {"-h", 0, 1},
    {"--help", 0, 1},
    FUSE_OPT_END,
};

/* Before 3.1 it was fuse_new() that printed the help, and failed. */
struct fuse *df_abi_fuse_new_30(struct fuse_args *args, const struct fuse_operations *op,
                                size_t op_size, void *user_data, struct df_plugin *plugin)
{
    int help = 0;
    if (fuse_opt_parse(args, &help, help_opts, NULL) == -1)
        return NULL;
    if (!help)
        return df_abi_fuse_new(args, op, op_size, user_data, plugin);
    fuse_lib_help(args);
    return NULL;
}

/* ---- fuse_session_loop_mt, fuse_loop_mt --------------------------------------------------- */

VERSION(fuse_session_loop_mt_31, "fuse_session_loop_mt@FUSE_3.0");
VERSION(fuse_session_loop_mt_32, "fuse_session_loop_mt@FUSE_3.2");
VERSION(fuse_session_loop_mt_312, "fuse_session_loop_mt@@FUSE_3.12");
VERSION(fuse_loop_mt_31, "fuse_loop_mt@FUSE_3.0");
VERSION(fuse_loop_mt_32, "fuse_loop_mt@FUSE_3.2");
VERSION(fuse_loop_mt_312, "fuse_loop_mt@@FUSE_3.12");

/* A device descriptor for each thread, the number of idle threads: there are neither. */
int fuse_session_loop_mt_31(struct fuse_session *se, int clone_fd)
{
    (void)clone_fd;
    return df_abi_loop(se, false);
}

int fuse_session_loop_mt_32(struct fuse_session *se, struct fuse_loop_config_v1 *config)
{
    (void)config;
    return df_abi_loop(se, false);
}

int fuse_session_loop_mt_312(struct fuse_session *se, struct fuse_loop_config *config)
{
    return df_abi_loop_mt(se, config);
}

int fuse_loop_mt_31(struct fuse *f, int clone_fd)
{
    return f ? fuse_session_loop_mt_31(f->session, clone_fd) : -1;
}

int fuse_loop_mt_32(struct fuse *f, struct fuse_loop_config_v1 *config)
{
    return f ? fuse_session_loop_mt_32(f->session, config) : -1;
}

int fuse_loop_mt_312(struct fuse *f, struct fuse_loop_config *config)
{
    return f ? df_abi_loop_mt(f->session, config) : -1;
}

/* ---- fuse_parse_cmdline ------------------------------------------------------------------- */

VERSION(fuse_parse_cmdline_30, "fuse_parse_cmdline@FUSE_3.0");
VERSION(fuse_parse_cmdline_312, "fuse_parse_cmdline@@FUSE_3.12");

/* The struct ended with max_idle_threads. */
int fuse_parse_cmdline_30(struct fuse_args *args, struct fuse_cmdline_opts *out)
{
    struct fuse_cmdline_opts opts;
    int result = df_abi_parse_cmdline(args, &opts);
    if (result == 0)
        memcpy(out, &opts, offsetof(struct fuse_cmdline_opts, max_threads));
    return result;
}

int fuse_parse_cmdline_312(struct fuse_args *args, struct fuse_cmdline_opts *opts)
{
    return df_abi_parse_cmdline(args, opts);
}
