/*
 * mount.c - df_mount() and df_unmount(): a program starts as a plugin here, or in a mount server,
 * and ends.
 */
#include "directfuse.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/find.h"
#include "api/mounted.h"
#include "api/result.h"
#include "api/served.h"
#include "core/mount.h"

/* What is to be mounted. */
struct order {
    struct df_plugin_program program;
    bool served; /* not the program: what the server at `socket` has */
    int socket;
    unsigned flags; /* DF_MOUNT_* */
    char *message;  /* of `size` bytes, for the user; or NULL */
    size_t size;
};

static void say(const struct order *order, const char *words)
{
    if (order->message && order->size > 0)
        snprintf(order->message, order->size, "%s", words);
}

/* ---- mounting ------------------------------------------------------------------------------ */

static struct df_fs *make_counting(struct df_fs *below, void *counters)
{
    return df_count_wrap(below, counters);
}

/* Puts the counters around the mount, if they are wanted. */
static int count_calls(struct df_mounted *mounted, unsigned flags)
{
    if (flags & DF_MOUNT_NOSTATS)
        return 0;
    mounted->counters = df_count_new(flags & DF_MOUNT_TIMING);
    if (!mounted->counters)
        return -ENOMEM;
    return df_mount_wrap(mounted->id, make_counting, mounted->counters);
}

static int start_inline(struct df_mounted *mounted, const struct order *order)
{
    struct df_mount *mount;
    int ret = df_plugin_start(&order->program, &mounted->plugin, order->message, order->size);

    if (ret < 0)
        return ret;
    mount = df_plugin_mount_of(mounted->plugin);
    mounted->id = mount ? mount->id : 0;
    if (mounted->id != 0)
        return 0;
    say(order, "the program ended as soon as it had mounted");
    df_plugin_stop(mounted->plugin, DF_DETACH_LAZY, &ret);
    return -EIO;
}

/* The words are the server's name and, where it has several file systems, the mountpoint of one. */
static int join_named(struct df_mounted *mounted, const struct order *order)
{
    const struct df_plugin_program *program = &order->program;
    const char *point = program->argc > 1 ? program->argv[1] : NULL;

    if (program->argc > 2) {
        say(order, "behind the name of a mount server stands a mountpoint of its, at most");
        return -EINVAL;
    }
    return df_joined_find(program->argv[0] + 1, point, program->seconds, &mounted->joined,
                          &mounted->id, order->message, order->size);
}

static int start(struct df_mounted *mounted, const struct order *order)
{
    const struct df_plugin_program *program = &order->program;
    struct df_joined **joined = &mounted->joined;
    int *id = &mounted->id;

    if (order->served)
        return df_joined_meet(order->socket, joined, id, order->message, order->size);
    if (!program->run && program->argv[0][0] == DF_NAME_OF_SERVER)
        return join_named(mounted, order);
    if (order->flags & DF_MOUNT_SERVER)
        return df_joined_start(program, order->flags & DF_MOUNT_RESTART, joined, id, order->message,
                               order->size);
    return start_inline(mounted, order);
}

static unsigned detach_flags(unsigned flags)
{
    return flags & DF_UNMOUNT_LAZY ? DF_DETACH_LAZY : 0;
}

/* Ends what start() has begun. *hung: without the file system, whose calls do not end. */
static int stop(struct df_mounted *mounted, unsigned flags, bool *hung)
{
    int status;

    *hung = false;
    if (mounted->joined)
        return df_joined_leave(mounted->joined, flags & DF_UNMOUNT_LAZY, flags & DF_UNMOUNT_LEAVE,
                               hung);
    return df_plugin_stop(mounted->plugin, detach_flags(flags), &status);
}

static void unmount_all(void);

static void register_end(void)
{
    atexit(unmount_all);
}

static int mount_it(struct df_mounted *mounted, const struct order *order)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int ret = start(mounted, order);
    bool hung;

    if (ret < 0)
        return ret;
    ret = count_calls(mounted, order->flags);
    if (ret < 0 &&
        ret != -EINVAL) { /* EINVAL: it has ended by itself; df_unmount() takes the rest */
        say(order, "no memory for the statistics");
        stop(mounted, DF_UNMOUNT_LAZY, &hung);
        return ret;
    }
    pthread_once(&once, register_end);
    df_mounted_add(mounted);
    return mounted->id;
}

static int carry_out(const struct order *order)
{
    struct df_mounted *mounted = calloc(1, sizeof(*mounted));
    int ret;

    if (!mounted)
        return -ENOMEM;
    ret = mount_it(mounted, order);
    if (ret < 0)
        df_mounted_free(mounted);
    return ret;
}

static bool flags_known(unsigned flags)
{
    const unsigned known = DF_MOUNT_TIMING | DF_MOUNT_NOSTATS | DF_MOUNT_SERVER | DF_MOUNT_RESTART;

    if (flags & DF_MOUNT_RESTART && !(flags & DF_MOUNT_SERVER))
        return false;
    return !(flags & (DF_MOUNT_SECONDS(1) - 1) & ~known);
}

static unsigned seconds_of(unsigned flags)
{
    return flags / DF_MOUNT_SECONDS(1);
}

/* Finds the program of a command line, and does that to it. */
static int with_program(const char *library, int argc, char *const argv[], unsigned flags,
                        char *message, size_t size, int (*act)(const struct order *))
{
    char path[PATH_MAX];
    const struct df_plugin_program program = {
        .library = path, .argc = argc, .argv = argv, .seconds = seconds_of(flags)};
    const struct order order = {
        .program = program, .flags = flags, .message = message, .size = size};
    int ret;

    say(&order, "");
    if (!flags_known(flags)) {
        say(&order, "unknown flags: see DF_MOUNT_* in directfuse.h");
        return df_result(-EINVAL);
    }
    ret = df_find_library(library, argc, argv, path, message, size);
    return df_result(ret < 0 ? ret : act(&order));
}

int df_mount(const char *library, int argc, char *const argv[], unsigned flags, char *message,
             size_t size)
{
    return with_program(library, argc, argv, flags, message, size, carry_out);
}

static int launch(const struct order *order)
{
    return df_joined_launch(&order->program, order->flags & DF_MOUNT_RESTART, order->message,
                            order->size);
}

int df_mount_launch(const char *library, int argc, char *const argv[], unsigned flags,
                    char *message, size_t size)
{
    return with_program(library, argc, argv, flags, message, size, launch);
}

int df_mount_function(int (*run)(int argc, char *argv[], void *data), void *data, int argc,
                      char *const argv[], unsigned flags, char *message, size_t size)
{
    const struct df_plugin_program program = {
        .run = run, .data = data, .argc = argc, .argv = argv, .seconds = seconds_of(flags)};
    const struct order order = {
        .program = program, .flags = flags, .message = message, .size = size};

    say(&order, "");
    if (!flags_known(flags) || flags & DF_MOUNT_SERVER || !run || argc < 1 || !argv || !argv[0])
        return df_result(-EINVAL);
    return df_result(carry_out(&order));
}

int df_mount_served(int socket, unsigned flags, char *message, size_t size)
{
    const struct order order = {
        .served = true, .socket = socket, .flags = flags, .message = message, .size = size};

    say(&order, "");
    if (!flags_known(flags))
        return df_result(-EINVAL);
    return df_result(carry_out(&order));
}

/* ---- unmounting ---------------------------------------------------------------------------- */

int df_unmount(int mount, unsigned flags)
{
    struct df_mounted *mounted;
    bool hung;
    int ret;

    if (flags & ~(unsigned)(DF_UNMOUNT_LAZY | DF_UNMOUNT_LEAVE))
        return df_result(-EINVAL);
    mounted = df_mounted_claim(mount, &ret);
    if (ret < 0)
        return df_result(ret);
    if (!mounted) /* it was not made by df_mount() */
        return df_result(df_mount_detach(mount, detach_flags(flags)));
    ret = stop(mounted, flags, &hung);
    if (ret < 0)
        df_mounted_give_up(mounted);
    else
        df_mounted_remove(mounted);
    return df_result(ret == 0 && hung ? -ETIMEDOUT : ret);
}

/* ---- the end of the process ---------------------------------------------------------------- */

/* Programs write at their end what they hold (docs/decisions/021). A mount whose files are open is
 * detached; its program ends with them if the process lives that long, and it does not. */
static void unmount_all(void)
{
    int id;

    while ((id = df_mounted_newest()) != 0) {
        if (df_unmount(id, DF_UNMOUNT_LEAVE) == 0 || df_mounted_newest() != id)
            continue;
        if (errno != EBUSY && errno != ETIMEDOUT)
            break;
        if (df_unmount(id, DF_UNMOUNT_LEAVE | DF_UNMOUNT_LAZY) != 0 && df_mounted_newest() == id)
            break;
    }
}
