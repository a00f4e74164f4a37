/*
 * highlevel.c - struct fuse, the handle of the high-level API: from options and operations to a
 * file system of the path lane.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "highlevel/highlevel.h"
#include "host/pollhandle.h"
#include "libfuse/abi.h"

#define SET(template, member, value) {template, offsetof(struct fuse_config, member), value}

static const struct fuse_opt config_opts[] = {
    FUSE_OPT_KEY("debug", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("-d", FUSE_OPT_KEY_KEEP),
    SET("debug", debug, 1),
    SET("-d", debug, 1),
    SET("kernel_cache", kernel_cache, 1),
    SET("auto_cache", auto_cache, 1),
    SET("noauto_cache", auto_cache, 0),
    SET("no_rofd_flush", no_rofd_flush, 1),
    SET("umask=", set_mode, 1),
    SET("umask=%o", umask, 0),
    SET("uid=", set_uid, 1),
    SET("uid=%d", uid, 0),
    SET("gid=", set_gid, 1),
    SET("gid=%d", gid, 0),
    SET("entry_timeout=%lf", entry_timeout, 0),
    SET("attr_timeout=%lf", attr_timeout, 0),
    SET("ac_attr_timeout=%lf", ac_attr_timeout, 0),
    SET("ac_attr_timeout=", ac_attr_timeout_set, 1),
    SET("negative_timeout=%lf", negative_timeout, 0),
    SET("noforget", remember, -1),
    SET("remember=%u", remember, 0),
    SET("modules=%s", modules, 0),
    FUSE_OPT_END,
};

/* Cuts `names` (a:b:c) apart and pushes each. */
static int push_modules(struct fuse *f, struct fuse_args *args)
{
    char *rest = f->config.modules;
    for (char *name = strsep(&rest, ":"); name; name = strsep(&rest, ":"))
        if (name[0] && df_abi_push_module(&f->top, name, args) != 0)
            return -1;
    return 0;
}

static int parse_config(struct fuse *f, struct fuse_args *args)
{
    f->config = (struct fuse_config){
        .entry_timeout = 1.0,
        .attr_timeout = 1.0,
        .intr_signal = SIGUSR1,
    };
    if (fuse_opt_parse(args, &f->config, config_opts, NULL) == -1)
        return -1;
    if (!f->config.ac_attr_timeout_set)
        f->config.ac_attr_timeout = f->config.attr_timeout;
    return 0;
}

static int make_host(struct fuse *f, struct df_plugin *plugin)
{
    struct fuse_session *se = f->session;
    se->fuse = f;
    se->fs =
        df_highlevel_new(&f->top->ops, sizeof(f->top->ops), f->top->user_data, &se->mount, plugin);
    if (!se->fs)
        return df_abi_no_memory();
    *df_highlevel_config(se->fs) = f->config;
    df_highlevel_set_statx(se->fs, f->top->statx);
    df_highlevel_set_masks(se->fs, f->fmask, f->dmask);
    return 0;
}

struct fuse *df_abi_fuse_new(struct fuse_args *args, const struct fuse_operations *op,
                             size_t op_size, void *user_data, struct df_plugin *plugin)
{
    struct fuse *f = calloc(1, sizeof(*f));
    if (!f) {
        df_abi_no_memory();
        return NULL;
    }
    if (parse_config(f, args) != 0 || df_abi_take_later_options(args, f) != 0)
        goto fail;
    f->top = df_abi_layer_new(op, op_size, user_data);
    if (!f->top || push_modules(f, args) != 0)
        goto fail;
    f->session = df_abi_session_new(args, plugin);
    if (!f->session || make_host(f, plugin) != 0)
        goto fail;
    return f;
fail:
    fuse_destroy(f);
    return NULL;
}

/* The layers below the top one are destroyed by the module above them. */
static void free_stack(struct fuse *f, bool initialised)
{
    if (initialised)
        free(f->top);
    else
        df_abi_stack_discard(f->top);
}

void fuse_destroy(struct fuse *f)
{
    if (!f)
        return;
    struct fuse_session *se = f->session;
    if (se)
        df_abi_own_loop_end(se);
    bool initialised = se && se->initialised;
    struct df_fs *fs = se ? df_abi_session_take(se) : NULL;
    if (fs)
        df_highlevel_free(fs); /* calls the file system's destroy */
    free_stack(f, initialised);
    free(f->config.modules);
    f->config.modules = NULL;
    if (!se || df_abi_session_free(se))
        free(f);
}

struct fuse_session *fuse_get_session(struct fuse *f)
{
    return f->session;
}

int fuse_mount(struct fuse *f, const char *mountpoint)
{
    return fuse_session_mount(f->session, mountpoint);
}

void fuse_unmount(struct fuse *f)
{
    fuse_session_unmount(f->session);
}

void fuse_exit(struct fuse *f)
{
    fuse_session_exit(f->session);
}

/* ---- inside an operation ----------------------------------------------------------------- */

int fuse_getgroups(int size, gid_t list[])
{
    const struct df_caller *caller = df_highlevel_caller();
    if (!caller)
        return -EINVAL;
    for (uint32_t i = 0; i < caller->group_count && (int)i < size; i++)
        list[i] = caller->groups[i];
    return (int)caller->group_count;
}

int fuse_interrupted(void)
{
    return df_highlevel_interrupted();
}

int fuse_invalidate_path(struct fuse *f, const char *path)
{
    struct fuse_session *se = f->session;
    struct df_fs *fs = df_abi_session_enter(se);
    if (!fs)
        return -ENOENT;
    int result = df_highlevel_invalidate(fs, path);
    df_abi_session_leave(se);
    return result;
}

int fuse_notify_poll(struct fuse_pollhandle *ph)
{
    return df_pollhandle_notify(ph);
}

void fuse_pollhandle_destroy(struct fuse_pollhandle *ph)
{
    df_pollhandle_destroy(ph);
}

/* ---- nodes that are remembered ------------------------------------------------------------ */

/* The path lane keeps no nodes that would have to be forgotten: its caches are of fixed size. */

int fuse_start_cleanup_thread(struct fuse *fuse)
{
    (void)fuse;
    return 0;
}

void fuse_stop_cleanup_thread(struct fuse *fuse)
{
    (void)fuse;
}

enum { LONGEST_PAUSE = 3600 }; /* seconds */

int fuse_clean_cache(struct fuse *fuse)
{
    int pause = fuse->config.remember / 10;
    if (pause < 1)
        pause = fuse->config.remember > 0 ? 1 : LONGEST_PAUSE;
    return pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
}
