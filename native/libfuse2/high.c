/*
 * high.c - FUSE 2's struct fuse: new, loop, end; fuse_main and its parts.
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
    struct fuse_operations ops = df2_translate(&f->layer);
    static char *const nothing[] = {(char *)"fuse", NULL};
    struct fuse_args empty = FUSE_ARGS_INIT(1, (char **)nothing);
    struct fuse *real = NULL;
    if (df2_join(&all, &chan->options, args ? args : &empty) == 0)
        real = df3_new(&all, &ops, sizeof(ops), &f->layer);
    fuse_opt_free_args(&all);
    if (real)
        df3_adopt(real, f, df2_layer_bears_null(&f->layer));
    return real;
}

static int mount_real(struct fuse2 *f, struct fuse2_chan *chan, struct fuse_args *args)
{
    f->real = make_real(f, chan, args);
    if (!f->real)
        return -1;
    f->session.high = f;
    f->session.real = fuse_get_session(f->real);
    f->session.chan = chan;
    chan->session = &f->session;
    if (fuse_mount(f->real, chan->mountpoint) == 0)
        return 0;
    chan->session = NULL;
    fuse_destroy(f->real);
    return -1;
}

/* A mount that is served is needed: a channel of the program's own brings nothing. */
static bool has_mountpoint(const struct fuse2_chan *chan)
{
    if (chan && chan->mountpoint)
        return true;
    fuse_log(FUSE_LOG_ERR, "fuse: a file system needs a channel that fuse_mount() has made\n");
    return false;
}

struct fuse2 *df2_new(struct fuse2_chan *chan, struct fuse_args *args, const void *op,
                      size_t op_size, void *user_data, enum fuse2_generation generation)
{
    struct fuse2 *f = has_mountpoint(chan) ? calloc(1, sizeof(*f)) : NULL;
    if (!f)
        return NULL;
    if (op_size > sizeof(f->layer.ops))
        op_size = sizeof(f->layer.ops);
    memcpy(&f->layer.ops, op, op_size);
    f->layer.private_data = user_data;
    f->layer.generation = generation;
    f->layer.fuse = f;
    if ((!args || df2_take_high_options(args, f) == 0) && mount_real(f, chan, args) == 0)
        return f;
    free(f);
    return NULL;
}

struct fuse2 *fuse2_new(struct fuse2_chan *chan, struct fuse_args *args, const void *op,
                        size_t op_size, void *user_data)
{
    return df2_new(chan, args, op, op_size, user_data, FUSE_26);
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
EXPORT_ALSO(fuse2_loop_mt_proc, fuse2_loop_mt_21, "__fuse_loop_mt@");

void *fuse2_read_cmd(struct fuse2 *f)
{
    fuse2_loop(f);
    return NULL;
}
EXPORT(fuse2_read_cmd, "fuse_read_cmd@@FUSE_2.2");
EXPORT_ALSO(fuse2_read_cmd, fuse2_read_cmd_21, "__fuse_read_cmd@");

void fuse2_process_cmd(struct fuse2 *f, void *command)
{
    (void)f;
    (void)command;
}
EXPORT(fuse2_process_cmd, "fuse_process_cmd@@FUSE_2.2");
EXPORT_ALSO(fuse2_process_cmd, fuse2_process_cmd_21, "__fuse_process_cmd@");

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
EXPORT_ALSO(fuse2_exited, fuse2_exited_21, "__fuse_exited@");

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
EXPORT_ALSO(fuse2_set_getcontext_func, fuse2_set_getcontext_func_21, "__fuse_set_getcontext_func@");

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

/* The context shows the program its own objects. Outside of an operation it is all zero. */
struct fuse_context *fuse2_get_context(void)
{
    static _Thread_local struct fuse_context shown;
    const struct fuse_context *real = fuse_get_context();
    if (!real) {
        memset(&shown, 0, sizeof(shown));
        return &shown;
    }
    const struct fuse2_layer *layer = real->private_data;
    shown = *real;
    shown.fuse = df3_adopter(real->fuse);
    shown.private_data = layer->private_data;
    return &shown;
}
EXPORT(fuse2_get_context, "fuse_get_context@@FUSE_2.8");
EXPORT_ALSO(fuse2_get_context, fuse2_get_context_22, "fuse_get_context@FUSE_2.2");

/* ---- fuse_main and its parts ------------------------------------------------------------ */

struct fuse2 *df2_setup(int argc, char *argv[], const void *op, size_t op_size, char **mountpoint,
                        int *multithreaded, struct fuse2_chan **chan, void *user_data,
                        enum fuse2_generation generation)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse2 *f = NULL;
    int foreground;
    *mountpoint = NULL;
    *chan = NULL;
    if (fuse2_parse_cmdline(&args, mountpoint, multithreaded, &foreground) == 0)
        *chan = df2_chan_new(*mountpoint, &args);
    if (*chan)
        f = df2_new(*chan, &args, op, op_size, user_data, generation);
    if (!f && *chan)
        df2_chan_free(*chan);
    if (f)
        fuse_daemonize(foreground);
    else
        free(*mountpoint);
    fuse_opt_free_args(&args);
    return f;
}

struct fuse2 *fuse2_setup(int argc, char *argv[], const void *op, size_t op_size, char **mountpoint,
                          int *multithreaded, void *user_data)
{
    struct fuse2_chan *chan;
    return df2_setup(argc, argv, op, op_size, mountpoint, multithreaded, &chan, user_data, FUSE_26);
}
EXPORT(fuse2_setup, "fuse_setup@@FUSE_2.6");

void fuse2_teardown(struct fuse2 *f, char *mountpoint)
{
    fuse2_unmount(mountpoint, f->session.chan);
    fuse2_destroy(f);
    free(mountpoint);
}
EXPORT(fuse2_teardown, "fuse_teardown@@FUSE_2.6");
EXPORT_ALSO(fuse2_teardown, fuse2_teardown_21, "__fuse_teardown@");

int df2_main(int argc, char *argv[], const void *op, size_t op_size, void *user_data,
             enum fuse2_generation generation)
{
    char *mountpoint;
    int multithreaded;
    struct fuse2_chan *chan;
    struct fuse2 *f = df2_setup(argc, argv, op, op_size, &mountpoint, &multithreaded, &chan,
                                user_data, generation);
    if (!f)
        return 1;
    int result = multithreaded ? fuse2_loop_mt(f) : fuse2_loop(f);
    fuse2_teardown(f, mountpoint);
    return result == -1 ? 1 : 0;
}

int fuse2_main_real(int argc, char *argv[], const void *op, size_t op_size, void *user_data)
{
    return df2_main(argc, argv, op, op_size, user_data, FUSE_26);
}
EXPORT(fuse2_main_real, "fuse_main_real@@FUSE_2.6");
