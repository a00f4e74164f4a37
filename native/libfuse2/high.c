/*
 * high.c - FUSE 2's struct fuse: new, loop, end; fuse_main and its parts; the versions of 2.2 and
 * 2.5, which know a mount by its descriptor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse2/abi2.h"

/* ---- making one ------------------------------------------------------------------------- */

/* The options of the mount (taken by fuse_mount) and those of the file system, for df3_new(). */
static struct fuse *make_real(struct fuse2 *f, struct fuse2_chan *chan, struct fuse_args *args)
{
    struct fuse_args all;
    static char *const nothing[] = {(char *)"fuse", NULL};
    struct fuse_args empty = FUSE_ARGS_INIT(1, (char **)nothing);
    struct fuse *real = NULL;
    if (df2_join(&all, &chan->options, args ? args : &empty) == 0)
        real = df3_new(&all, &f->translated, sizeof(f->translated), f);
    fuse_opt_free_args(&all);
    return real;
}

static struct fuse2 *make(struct fuse2_chan *chan, struct fuse_args *args, const void *op,
                          size_t op_size, void *user_data, bool old_handles)
{
    struct fuse2 *f = chan ? calloc(1, sizeof(*f)) : NULL;
    if (!f)
        return NULL;
    if (op_size > sizeof(f->ops))
        op_size = sizeof(f->ops);
    memcpy(&f->ops, op, op_size);
    f->private_data = user_data;
    f->old_handles = old_handles;
    if (args && df2_take_high_options(args, f) == -1)
        goto fail;
    df2_translate(f);
    f->real = make_real(f, chan, args);
    if (!f->real)
        goto fail;
    f->session.high = f;
    f->session.real = fuse_get_session(f->real);
    f->session.chan = chan;
    chan->session = &f->session;
    if (fuse_mount(f->real, chan->mountpoint) == 0)
        return f;
    chan->session = NULL;
    fuse_destroy(f->real);
fail:
    free(f);
    return NULL;
}

struct fuse2 *fuse2_new(struct fuse2_chan *chan, struct fuse_args *args, const void *op,
                        size_t op_size, void *user_data)
{
    return make(chan, args, op, op_size, user_data, false);
}
EXPORT(fuse2_new, "fuse_new@@FUSE_2.6");

void fuse2_destroy(struct fuse2 *f)
{
    if (f->session.chan)
        df2_chan_free(f->session.chan);
    fuse_destroy(f->real); /* calls the file system's destroy */
    free(f);
}
EXPORT(fuse2_destroy, "fuse_destroy@@FUSE_2.2");

/* ---- its loop and its end --------------------------------------------------------------- */

int fuse2_loop(struct fuse2 *f)
{
    return f ? fuse2_session_loop(&f->session) : -1;
}
EXPORT(fuse2_loop, "fuse_loop@@FUSE_2.2");

int fuse2_loop_mt(struct fuse2 *f)
{
    return f ? fuse2_session_loop_mt(&f->session) : -1;
}
EXPORT(fuse2_loop_mt, "fuse_loop_mt@@FUSE_2.2");

/* The processor is never called: there are no commands to process. */
int fuse2_loop_mt_proc(struct fuse2 *f, void *processor, void *data)
{
    (void)processor;
    (void)data;
    return fuse2_loop_mt(f);
}
EXPORT(fuse2_loop_mt_proc, "fuse_loop_mt_proc@@FUSE_2.2");

void *fuse2_read_cmd(struct fuse2 *f)
{
    fuse2_loop(f);
    return NULL;
}
EXPORT(fuse2_read_cmd, "fuse_read_cmd@@FUSE_2.2");

void fuse2_process_cmd(struct fuse2 *f, void *command)
{
    (void)f;
    (void)command;
}
EXPORT(fuse2_process_cmd, "fuse_process_cmd@@FUSE_2.2");

void fuse2_exit(struct fuse2 *f)
{
    fuse2_session_exit(&f->session);
}
EXPORT(fuse2_exit, "fuse_exit@@FUSE_2.2");

int fuse2_exited(struct fuse2 *f)
{
    return fuse2_session_exited(&f->session);
}
EXPORT(fuse2_exited, "fuse_exited@@FUSE_2.2");

struct fuse2_session *fuse2_get_session(struct fuse2 *f)
{
    return &f->session;
}
EXPORT(fuse2_get_session, "fuse_get_session@@FUSE_2.6");

/* Not implemented in libfuse 2.9 either. */
int fuse2_invalidate(struct fuse2 *f, const char *path)
{
    (void)f;
    (void)path;
    return -EINVAL;
}
EXPORT(fuse2_invalidate, "fuse_invalidate@@FUSE_2.2");

void fuse2_set_getcontext_func(void *function)
{
    (void)function;
}
EXPORT(fuse2_set_getcontext_func, "fuse_set_getcontext_func@@FUSE_2.2");

int fuse2_start_cleanup_thread(struct fuse2 *f)
{
    return fuse_start_cleanup_thread(f->real);
}
EXPORT(fuse2_start_cleanup_thread, "fuse_start_cleanup_thread@@FUSE_2.9");

void fuse2_stop_cleanup_thread(struct fuse2 *f)
{
    fuse_stop_cleanup_thread(f->real);
}
EXPORT(fuse2_stop_cleanup_thread, "fuse_stop_cleanup_thread@@FUSE_2.9");

int fuse2_clean_cache(struct fuse2 *f)
{
    return fuse_clean_cache(f->real);
}
EXPORT(fuse2_clean_cache, "fuse_clean_cache@@FUSE_2.9");

/* The context shows the plugin its own objects. Outside of an operation it is all zero. */
struct fuse_context *fuse2_get_context(void)
{
    static _Thread_local struct fuse_context shown;
    const struct fuse_context *real = fuse_get_context();
    if (!real) {
        memset(&shown, 0, sizeof(shown));
        return &shown;
    }
    struct fuse2 *f = real->private_data;
    shown = *real;
    shown.fuse = (struct fuse *)f;
    shown.private_data = f->private_data;
    return &shown;
}
EXPORT(fuse2_get_context, "fuse_get_context@@FUSE_2.8");

struct fuse_context *fuse2_get_context_22(void)
{
    return fuse2_get_context();
}
EXPORT(fuse2_get_context_22, "fuse_get_context@FUSE_2.2");

/* ---- fuse_main and its parts ------------------------------------------------------------ */

int fuse2_parse_cmdline(struct fuse_args *args, char **mountpoint, int *multithreaded,
                        int *foreground)
{
    struct fuse_cmdline_opts opts;
    if (df3_parse_cmdline(args, &opts) != 0)
        return -1;
    if (opts.show_help) {
        fuse_cmdline_help();
        fuse_lib_help(args);
    }
    if (opts.show_version)
        fuse_lowlevel_version();
    if (opts.show_help || opts.show_version || !mountpoint) {
        free(opts.mountpoint);
        opts.mountpoint = NULL;
    }
    if (mountpoint)
        *mountpoint = opts.mountpoint;
    if (multithreaded)
        *multithreaded = !opts.singlethread;
    if (foreground)
        *foreground = opts.foreground;
    return opts.show_help || opts.show_version ? -1 : 0;
}
EXPORT(fuse2_parse_cmdline, "fuse_parse_cmdline@@FUSE_2.5");

static struct fuse2 *setup(int argc, char *argv[], const void *op, size_t op_size,
                           char **mountpoint, int *multithreaded, struct fuse2_chan **chan,
                           void *user_data, bool old_handles)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse2 *f = NULL;
    *mountpoint = NULL;
    *chan = NULL;
    if (fuse2_parse_cmdline(&args, mountpoint, multithreaded, NULL) == 0 && *mountpoint)
        *chan = df2_chan_new(*mountpoint, &args);
    else if (!*mountpoint)
        fuse_log(FUSE_LOG_ERR, "fuse: no mountpoint was given\n");
    if (*chan)
        f = make(*chan, &args, op, op_size, user_data, old_handles);
    if (!f && *chan)
        df2_chan_free(*chan);
    if (!f)
        free(*mountpoint);
    fuse_opt_free_args(&args);
    return f;
}

struct fuse2 *fuse2_setup(int argc, char *argv[], const void *op, size_t op_size, char **mountpoint,
                          int *multithreaded, void *user_data)
{
    struct fuse2_chan *chan;
    return setup(argc, argv, op, op_size, mountpoint, multithreaded, &chan, user_data, false);
}
EXPORT(fuse2_setup, "fuse_setup@@FUSE_2.6");

void fuse2_teardown(struct fuse2 *f, char *mountpoint)
{
    fuse2_unmount(mountpoint, f->session.chan);
    fuse2_destroy(f);
    free(mountpoint);
}
EXPORT(fuse2_teardown, "fuse_teardown@@FUSE_2.6");

static int run_main(int argc, char *argv[], const void *op, size_t op_size, void *user_data,
                    bool old_handles)
{
    char *mountpoint;
    int multithreaded;
    struct fuse2_chan *chan;
    struct fuse2 *f =
        setup(argc, argv, op, op_size, &mountpoint, &multithreaded, &chan, user_data, old_handles);
    if (!f)
        return 1;
    int result = multithreaded ? fuse2_loop_mt(f) : fuse2_loop(f);
    fuse2_teardown(f, mountpoint);
    return result == -1 ? 1 : 0;
}

int fuse2_main_real(int argc, char *argv[], const void *op, size_t op_size, void *user_data)
{
    return run_main(argc, argv, op, op_size, user_data, false);
}
EXPORT(fuse2_main_real, "fuse_main_real@@FUSE_2.6");

/* ---- 2.5 and 2.2 ------------------------------------------------------------------------ */

int fuse2_main_real_25(int argc, char *argv[], const void *op, size_t op_size)
{
    return run_main(argc, argv, op, op_size, NULL, false);
}
EXPORT(fuse2_main_real_25, "fuse_main_real@FUSE_2.5");

int fuse2_main_real_compat25(int argc, char *argv[], const void *op, size_t op_size)
{
    return run_main(argc, argv, op, op_size, NULL, false);
}
EXPORT(fuse2_main_real_compat25, "fuse_main_real_compat25@@FUSE_2.6");

int fuse2_main_real_22(int argc, char *argv[], const void *op, size_t op_size)
{
    return run_main(argc, argv, op, op_size, NULL, true);
}
EXPORT(fuse2_main_real_22, "fuse_main_real@FUSE_2.2");

int fuse2_main_real_compat22(int argc, char *argv[], const void *op, size_t op_size)
{
    return run_main(argc, argv, op, op_size, NULL, true);
}
EXPORT(fuse2_main_real_compat22, "fuse_main_real_compat22@@FUSE_2.5");

int fuse2_mount_25(const char *mountpoint, struct fuse_args *args)
{
    struct fuse2_chan *chan = df2_chan_new(mountpoint, args);
    return chan ? chan->fd : -1;
}
EXPORT(fuse2_mount_25, "fuse_mount@FUSE_2.5");

int fuse2_mount_compat25(const char *mountpoint, struct fuse_args *args)
{
    return fuse2_mount_25(mountpoint, args);
}
EXPORT(fuse2_mount_compat25, "fuse_mount_compat25@@FUSE_2.6");

/* "allow_other,ro": a list of options instead of arguments. */
static int arguments_of(const char *options, struct fuse_args *args)
{
    *args = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    if (fuse_opt_add_arg(args, "fuse") == -1)
        return -1;
    if (!options || !options[0])
        return 0;
    return fuse_opt_add_arg(args, "-o") == -1 ? -1 : fuse_opt_add_arg(args, options);
}

int fuse2_mount_22(const char *mountpoint, const char *options)
{
    struct fuse_args args;
    int fd = arguments_of(options, &args) == 0 ? fuse2_mount_25(mountpoint, &args) : -1;
    fuse_opt_free_args(&args);
    return fd;
}
EXPORT(fuse2_mount_22, "fuse_mount@FUSE_2.2");

int fuse2_mount_compat22(const char *mountpoint, const char *options)
{
    return fuse2_mount_22(mountpoint, options);
}
EXPORT(fuse2_mount_compat22, "fuse_mount_compat22@@FUSE_2.5");

struct fuse2 *fuse2_new_25(int fd, struct fuse_args *args, const void *op, size_t op_size)
{
    return make(df2_chan_of_fd(fd), args, op, op_size, NULL, false);
}
EXPORT(fuse2_new_25, "fuse_new@FUSE_2.5");

struct fuse2 *fuse2_new_compat25(int fd, struct fuse_args *args, const void *op, size_t op_size)
{
    return fuse2_new_25(fd, args, op, op_size);
}
EXPORT(fuse2_new_compat25, "fuse_new_compat25@@FUSE_2.6");

struct fuse2 *fuse2_new_22(int fd, const char *options, const void *op, size_t op_size)
{
    struct fuse_args args;
    struct fuse2 *f = NULL;
    if (arguments_of(options, &args) == 0)
        f = make(df2_chan_of_fd(fd), &args, op, op_size, NULL, true);
    fuse_opt_free_args(&args);
    return f;
}
EXPORT(fuse2_new_22, "fuse_new@FUSE_2.2");

struct fuse2 *fuse2_new_compat22(int fd, const char *options, const void *op, size_t op_size)
{
    return fuse2_new_22(fd, options, op, op_size);
}
EXPORT(fuse2_new_compat22, "fuse_new_compat22@@FUSE_2.5");

static struct fuse2 *setup_fd(int argc, char *argv[], const void *op, size_t op_size,
                              char **mountpoint, int *multithreaded, int *fd, bool old_handles)
{
    struct fuse2_chan *chan;
    struct fuse2 *f =
        setup(argc, argv, op, op_size, mountpoint, multithreaded, &chan, NULL, old_handles);
    if (f)
        *fd = chan->fd;
    return f;
}

struct fuse2 *fuse2_setup_25(int argc, char *argv[], const void *op, size_t op_size,
                             char **mountpoint, int *multithreaded, int *fd)
{
    return setup_fd(argc, argv, op, op_size, mountpoint, multithreaded, fd, false);
}
EXPORT(fuse2_setup_25, "fuse_setup@FUSE_2.5");

struct fuse2 *fuse2_setup_compat25(int argc, char *argv[], const void *op, size_t op_size,
                                   char **mountpoint, int *multithreaded, int *fd)
{
    return setup_fd(argc, argv, op, op_size, mountpoint, multithreaded, fd, false);
}
EXPORT(fuse2_setup_compat25, "fuse_setup_compat25@@FUSE_2.6");

struct fuse2 *fuse2_setup_22(int argc, char *argv[], const void *op, size_t op_size,
                             char **mountpoint, int *multithreaded, int *fd)
{
    return setup_fd(argc, argv, op, op_size, mountpoint, multithreaded, fd, true);
}
EXPORT(fuse2_setup_22, "fuse_setup@FUSE_2.2");

struct fuse2 *fuse2_setup_compat22(int argc, char *argv[], const void *op, size_t op_size,
                                   char **mountpoint, int *multithreaded, int *fd)
{
    return setup_fd(argc, argv, op, op_size, mountpoint, multithreaded, fd, true);
}
EXPORT(fuse2_setup_compat22, "fuse_setup_compat22@@FUSE_2.5");

void fuse2_teardown_22(struct fuse2 *f, int fd, char *mountpoint)
{
    (void)fd;
    fuse2_teardown(f, mountpoint);
}
EXPORT(fuse2_teardown_22, "fuse_teardown@FUSE_2.2");

void fuse2_teardown_compat22(struct fuse2 *f, int fd, char *mountpoint)
{
    fuse2_teardown_22(f, fd, mountpoint);
}
EXPORT(fuse2_teardown_compat22, "fuse_teardown_compat22@@FUSE_2.6");

/* Knows the mount by its mountpoint alone, and is called after the loop, whose mount has ended. */
void fuse2_unmount_22(const char *mountpoint)
{
    (void)mountpoint;
}
EXPORT(fuse2_unmount_22, "fuse_unmount@FUSE_2.2");

void fuse2_unmount_compat22(const char *mountpoint)
{
    fuse2_unmount_22(mountpoint);
}
EXPORT(fuse2_unmount_compat22, "fuse_unmount_compat22@@FUSE_2.6");
