/*
 * plugin_mount.c - the one mount of a plugin: attached by its loop, ended by its owner, by itself,
 * or by the last file.
 *
 * While the mount lives, the file system's table of ops is a copy of the host's whose destroy is
 * ours: when the core is done, the loop returns, and the program ends its file system itself
 * (docs/decisions/005).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/mount.h"
#include "host/turns.h"
#include "loader/guarded.h"
#include "loader/plugin_private.h"
#include "loader/program.h"

static _Atomic(void (*)(int mount, const char *words)) listener;

static void wake_up(struct df_plugin *plugin, uint32_t why)
{
    if (atomic_fetch_or(&plugin->wake, why) & DF_WAKE_PARKED)
        df_plugin_unpark(plugin);
    else
        syscall(SYS_futex, &plugin->wake, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* In the place of the host's destroy: the core is done with fs, its owner not yet. */
static void mount_gone(struct df_fs *fs)
{
    struct df_plugin *plugin =
        (struct df_plugin *)((char *)fs->ops - offsetof(struct df_plugin, ops));
    fs->ops = plugin->given_ops;
    wake_up(plugin, DF_WAKE_GONE);
    pthread_mutex_lock(&plugin->lock); /* who has not seen that yet names the mount: has_died() */
    pthread_mutex_unlock(&plugin->lock);
}

/* Claims the plugin's one mount for fs. */
static int begin_serving(struct df_plugin *plugin, struct df_fs *fs)
{
    pthread_mutex_lock(&plugin->lock);
    int error = plugin->abandoned ? -ETIMEDOUT : plugin->given_ops ? -EBUSY : 0;
    if (!error)
        plugin->given_ops = fs->ops;
    pthread_mutex_unlock(&plugin->lock);
    if (error == -EBUSY)
        df_plugin_log(plugin, "a program can have one mount at a time");
    if (error)
        return error;
    plugin->ops = *fs->ops;
    plugin->ops.destroy = mount_gone;
    fs->ops = &plugin->ops;
    return 0;
}

static void end_serving(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    plugin->mount = NULL;
    plugin->mount_id = 0;
    plugin->given_ops = NULL;
    pthread_mutex_unlock(&plugin->lock);
    atomic_store(&plugin->wake, 0);
}

static int attach(struct df_plugin *plugin, const struct df_session *session, struct df_fs *fs)
{
    char reason[DF_PLUGIN_REASON_SIZE];
    struct df_mount *mount;
    const struct df_mount_spec spec = {
        .point = session->mountpoint,
        .fsname = session->fsname,
        .subtype = session->subtype,
        .flags = (session->readonly ? DF_ATTACH_READONLY : 0) |
                 (session->default_permissions || fs->acls ? DF_ATTACH_PERMITS : 0) |
                 (fs->acls ? DF_ATTACH_ACLS : 0) | (fs->writes_back ? DF_ATTACH_WRITEBACK : 0),
    };
    int error = df_mount_attach(&spec, fs, &mount);
    if (error) {
        snprintf(reason, sizeof(reason), "%s cannot be mounted on: %s", session->mountpoint,
                 error == -EBUSY ? "something is mounted there: unmount it first, or name another "
                                   "mountpoint"
                                 : strerror(-error));
        df_plugin_log(plugin, reason);
    }
    pthread_mutex_lock(&plugin->lock);
    plugin->mount_error = error;
    plugin->mount = error ? NULL : mount;
    plugin->mount_id = error ? 0 : mount->id;
    pthread_mutex_unlock(&plugin->lock);
    return error;
}

/* A directory cannot cover a file, as in mount(2). The kernel takes the type of a FUSE root from
 * the mountpoint and answers EIO later; here the root is asked, once. */
static int check_root(struct df_plugin *plugin, const struct df_mount *mount)
{
    char reason[DF_PLUGIN_REASON_SIZE];
    struct stat st;
    if (mount->covers == 0 || S_ISDIR(mount->covers) ||
        df_call_fstatat(AT_FDCWD, mount->point, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode))
        return 0;
    snprintf(reason, sizeof(reason), "%s is no directory, and the root of the file system is one",
             mount->point);
    df_plugin_log(plugin, reason);
    plugin->mount_error = -ENOTDIR;
    return -ENOTDIR;
}

/* Somebody else may be about to end it, or have done so; who waits to may yet do so in vain. */
static void end_lazily(int id)
{
    while (df_mount_detach(id, DF_DETACH_LAZY) == -EBUSY)
        df_mount_await_verdict(id);
}

/* Sleeps until the mount has ended; ends it when the plugin wishes so. */
static void wait_gone(struct df_plugin *plugin, int id)
{
    uint32_t wake;
    bool detached = false;
    while (!((wake = atomic_load(&plugin->wake)) & DF_WAKE_GONE)) {
        if (wake & DF_WAKE_EXIT && !detached) {
            end_lazily(id);
            detached = true;
            continue;
        }
        syscall(SYS_futex, &plugin->wake, FUTEX_WAIT_PRIVATE, wake, NULL, NULL, 0);
    }
    df_mount_wait(id); /* mount_gone() has returned */
}

int df_plugin_serve(struct df_plugin *plugin, const struct df_session *session, struct df_fs *fs)
{
    if (plugin->pid != getpid())
        return -ENOTSUP; /* a child that it forked: a mount there would be nobody's */
    int error = begin_serving(plugin, fs);
    if (error)
        return error;
    struct df_fs *front = fs;
    if (plugin->object.kind == DF_ELF_PROGRAM)
        front = df_guarded_new(fs, &plugin->guest);
    error = front ? attach(plugin, session, front) : -ENOMEM;
    if (error) {
        if (front != fs)
            free(front);
        fs->ops = plugin->given_ops;
    } else {
        int id = plugin->mount_id;
        error = check_root(plugin, plugin->mount);
        if (!error)
            error = df_plugin_mounted(plugin);
        if (error)
            df_plugin_exit(plugin);
        else
            df_plugin_park(plugin);
        wait_gone(plugin, id);
    }
    end_serving(plugin);
    if (df_plugin_is_over(plugin)) /* in a process of its own main would never have come back */
        df_program_leave(atomic_load(&plugin->over_by));
    return error;
}

/* ---- for a loop of the program's own --------------------------------------------------------- */

struct df_aside {
    struct df_plugin *plugin;
    const struct df_session *session;
    struct df_fs *fs;
    pthread_t thread; /* sleeps until the mount has ended */
};

static void *aside_thread(void *argument)
{
    struct df_aside *aside = argument;
    df_plugin_serve(aside->plugin, aside->session, aside->fs);
    df_turns_end(aside->session->turns);
    return NULL;
}

int df_plugin_serve_aside(struct df_plugin *plugin, const struct df_session *session,
                          struct df_fs *fs)
{
    struct df_aside *aside = malloc(sizeof(*aside));
    if (!aside)
        return -ENOMEM;
    *aside = (struct df_aside){.plugin = plugin, .session = session, .fs = fs};
    df_plugin_serve_out(plugin);       /* of an earlier session */
    plugin->object.main_moves = false; /* its thread runs its loop */
    int error = df_plugin_main_thread(&aside->thread, NULL, aside_thread, aside);
    if (error)
        free(aside);
    else
        atomic_store(&plugin->aside, aside);
    return error;
}

void df_plugin_serve_out(struct df_plugin *plugin)
{
    if (plugin->pid != getpid())
        return;
    struct df_aside *aside = atomic_exchange(&plugin->aside, NULL);
    if (!aside)
        return;
    struct df_turns *turns = aside->session->turns;
    df_turns_take(turns);
    if (!df_turns_ended(turns))
        df_plugin_exit(plugin);
    df_turns_desert(turns);
    df_turns_give_all(turns);
    pthread_join(aside->thread, NULL);
    df_plugin_stay(plugin); /* what was said to a mount that had just ended is not for the next */
    free(aside);
}

void df_plugin_exit(struct df_plugin *plugin)
{
    wake_up(plugin, DF_WAKE_EXIT);
}

/* ---- its death ------------------------------------------------------------------------------- */

void df_plugin_listen(void (*function)(int mount, const char *words))
{
    atomic_store(&listener, function);
}

/* True for who is to tell it, once: then *id and `words`. The lock keeps the mount's name there. */
static bool has_died(struct df_plugin *plugin, const char *how, int *id, char *words, size_t size)
{
    bool first;

    pthread_mutex_lock(&plugin->lock);
    first = plugin->mount && !plugin->died && !(atomic_load(&plugin->wake) & DF_WAKE_GONE);
    if (first) {
        plugin->died = true;
        *id = plugin->mount_id;
        snprintf(words, size, "%s: %s", plugin->mount->point, how);
    }
    pthread_mutex_unlock(&plugin->lock);
    return first;
}

void df_plugin_died(struct df_plugin *plugin, const char *how)
{
    void (*heard)(int, const char *) = atomic_load(&listener);
    char words[PATH_MAX + DF_PLUGIN_REASON_SIZE];
    int id;

    if (!heard || !has_died(plugin, how, &id, words, sizeof(words))) {
        df_plugin_log(plugin, how);
        return;
    }
    df_log_add(&plugin->log, how); /* it is not said twice: the listener says it */
    words[strcspn(words, "\n")] = '\0';
    struct df_guest *guest = df_guest_enter(NULL); /* the listener is the host's */
    heard(id, words);
    df_guest_enter(guest);
}

bool df_plugin_is_over(const struct df_plugin *plugin)
{
    return atomic_load(&plugin->over);
}

void df_plugin_ended_itself(struct df_plugin *plugin, int status, const char *where)
{
    atomic_store(&plugin->over_by, status);
    atomic_store(&plugin->over, true);
    int number = status - DF_PROGRAM_KILLED;
    const char *name = number > 0 ? sigdescr_np(number) : NULL;
    char how[160], cause[32];

    if (number > 0)
        snprintf(cause, sizeof(cause), "%s", name ? name : "unknown signal");
    else
        snprintf(cause, sizeof(cause), "exit, status %d", status);
    snprintf(how, sizeof(how), "its file system has ended itself %s (%s): calls fail", where,
             cause);
    df_plugin_died(plugin, how);
}

void df_plugin_stay(struct df_plugin *plugin)
{
    atomic_fetch_and(&plugin->wake, ~(uint32_t)DF_WAKE_EXIT);
}

struct df_mount *df_plugin_mount_of(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    struct df_mount *mount = plugin->mount;
    pthread_mutex_unlock(&plugin->lock);
    return mount;
}

/* ---- for df_plugin_stop() ---------------------------------------------------------------- */

int df_plugin_detach(struct df_plugin *plugin, unsigned flags)
{
    pthread_mutex_lock(&plugin->lock);
    int id = plugin->mount_id;
    pthread_mutex_unlock(&plugin->lock);
    if (id == 0)
        return 0;
    int error = df_mount_detach(id, flags);
    if (error != -EINVAL)
        return error;
    /* The plugin has ended it, but main stays until the last file is closed, perhaps by our caller.
     */
    return !(flags & DF_DETACH_LAZY) && df_mount_has_files(id) ? -EBUSY : 0;
}

bool df_plugin_is_kept(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    bool serving = plugin->mount_id != 0;
    pthread_mutex_unlock(&plugin->lock);
    return serving && !(atomic_load(&plugin->wake) & DF_WAKE_GONE);
}
