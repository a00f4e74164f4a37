/*
 * plugin.c - a FUSE program running inside this process: how it starts, what it says, how it ends;
 * see plugin.h for the picture. Its main's thread is in plugin_main.c, its mount in plugin_mount.c,
 * the list of all in plugin_list.c.
 *
 * A plugin's main() believes that it owns its process. What it does to the process (exit, chdir,
 * umask, signal handlers, getopt's globals) is contained by hooks for its guest (guest.h, hooks.h);
 * what is here is: it has a thread of its own, it gets no asynchronous signal there, and nothing of
 * libfuse touches the process.
 */
#include "loader/plugin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/call.h"
#include "core/mount.h"
#include "loader/hooks.h"
#include "loader/library.h"
#include "loader/plugin_private.h"
#include "loader/program.h"

static _Thread_local struct df_plugin *self;

/* ---- which plugin ------------------------------------------------------------------------- */

struct df_plugin *df_plugin_self(void)
{
    return self;
}

struct df_plugin *df_plugin_become(struct df_plugin *plugin)
{
    struct df_plugin *before = self;
    self = plugin;
    return before;
}

bool df_plugin_checks_names(const struct df_plugin *plugin)
{
    return plugin->object.checks_names;
}

bool df_plugin_shortens(const struct df_plugin *plugin)
{
    return plugin->object.shortens;
}

void *df_plugin_getattr_at(const struct df_plugin *plugin)
{
    return plugin->object.getattr_at;
}

bool df_plugin_lingers(const struct df_plugin *plugin)
{
    return plugin->object.lingers || atomic_load(&plugin->guest.users) > 1;
}

_Atomic(void *) *df_plugin_word(struct df_plugin *plugin, enum df_plugin_word word)
{
    return &plugin->words[word];
}

/* ---- what it says -------------------------------------------------------------------------- */

static void say(const char *line)
{
    size_t size = strlen(line);

    if (size > 0)
        dprintf(STDERR_FILENO, line[size - 1] == '\n' ? "%s" : "%s\n", line);
}

void df_plugin_log(struct df_plugin *plugin, const char *line)
{
    enum df_heard heard = atomic_load(&df_heard);

    df_log_add(&plugin->log, line);
    if (heard == DF_HEARD_ALL || (heard == DF_HEARD_FOREGROUND && atomic_load(&plugin->heard)))
        say(line);
}

/* The latest lines, as many as fit into size bytes, NUL-terminated. */
static void copy_log(struct df_plugin *plugin, char *text, size_t size)
{
    if (plugin->guest.output)
        df_guest_drain(&plugin->guest);
    df_log_copy(&plugin->log, text, size);
}

void df_plugin_daemonize(struct df_plugin *plugin, bool foreground)
{
    const bool stays = foreground && plugin->object.abi == DF_ELF_ABI_FUSE2;

    if (foreground)
        plugin->foreground = true;
    if (!stays && df_guest_current())
        (void)df_hooks_chdir("/"); /* libfuse looks as little at what comes of it */
}

/* What it has said by now would be in the error, had it not been mounted. */
static void begin_to_hear(struct df_plugin *plugin)
{
    char *said = plugin->foreground ? malloc(DF_PLUGIN_LOG_SIZE) : NULL;

    if (!said)
        return;
    copy_log(plugin, said, DF_PLUGIN_LOG_SIZE);
    if (atomic_load(&df_heard) == DF_HEARD_FOREGROUND)
        say(said);
    free(said);
    atomic_store(&plugin->heard, true);
}

/* ---- life --------------------------------------------------------------------------------- */

/* One block: main may do with the pointers what it likes (fusefat moves them). */
static char **copy_vector(int argc, char *const argv[])
{
    size_t size = ((size_t)argc + 1) * sizeof(char *);
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char **copy = malloc(size);
    if (!copy)
        return NULL;
    char *text = (char *)(copy + argc + 1);
    for (int i = 0; i < argc; i++) {
        copy[i] = text;
        text = stpcpy(text, argv[i]) + 1;
    }
    copy[argc] = NULL;
    return copy;
}

static void free_plugin(struct df_plugin *plugin)
{
    free(plugin->library);
    free(plugin->argv);
    df_log_destroy(&plugin->log);
    pthread_mutex_destroy(&plugin->lock);
    pthread_cond_destroy(&plugin->changed);
    df_guest_destroy(&plugin->guest);
    free(plugin);
}

static void unload(struct df_plugin *plugin)
{
    struct df_object object = plugin->object;
    struct df_object none = object;

    none.map = NULL;
    none.handle = NULL;
    none.fd = -1;
    df_plugin_set_object(plugin, &none);
    /* its destructors may have something to say */
    struct df_plugin *before = df_plugin_become(plugin);
    struct df_guest *guest_before = df_guest_enter(plugin->guest.output ? &plugin->guest : NULL);
    df_object_close(&object);
    df_guest_enter(guest_before);
    df_plugin_become(before);
}

void df_plugin_dispose(struct df_plugin *plugin)
{
    bool threads = atomic_load(&plugin->guest.users) > 1;
    bool lingers = plugin->object.handle && plugin->object.lingers;
    if (lingers || !threads)
        unload(plugin); /* while its connections are open: destructors may write */
    df_guest_retire(&plugin->guest, threads || lingers);
    df_plugin_delist(plugin);
    if (threads || lingers)
        df_plugin_keep(plugin);
    if (!lingers)
        df_plugin_put(plugin);
}

void df_plugin_put(struct df_plugin *plugin)
{
    if (atomic_fetch_sub(&plugin->guest.users, 1) > 1)
        return;
    unload(plugin); /* if that has not been done yet */
    df_guest_retire(&plugin->guest, false);
    df_plugin_delist(plugin);
    free_plugin(plugin);
}

static int create(const char *library, int argc, char *const argv[], struct df_plugin **out)
{
    struct df_plugin *plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return -ENOMEM;
    pthread_mutex_init(&plugin->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&plugin->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    plugin->object.fd = -1;
    plugin->guest.cwd_fd = -1;
    plugin->guest.users = 1;
    plugin->pid = getpid();
    plugin->library = strdup(library);
    plugin->argc = argc;
    plugin->argv = copy_vector(argc, argv);
    int error = df_log_init(&plugin->log, DF_PLUGIN_LOG_SIZE);
    if (!plugin->library || !plugin->argv)
        error = -ENOMEM;
    if (error == 0)
        error = df_guest_init(&plugin->guest, plugin);
    if (error)
        df_plugin_dispose(plugin);
    else
        *out = plugin;
    return error;
}

int df_plugin_mounted(struct df_plugin *plugin)
{
    begin_to_hear(plugin);
    pthread_mutex_lock(&plugin->lock);
    int error = plugin->abandoned ? -ETIMEDOUT : 0;
    if (!error) {
        plugin->phase = DF_PLUGIN_MOUNTED;
        plugin->was_mounted = true;
        atomic_store(&plugin->guest.mounted, true);
        pthread_cond_broadcast(&plugin->changed);
    }
    pthread_mutex_unlock(&plugin->lock);
    return error;
}

/* ---- starting ------------------------------------------------------------------------------ */

/* Waits for its mount, or its end. Returns false when the time is over: it is abandoned then. */
static bool wait_started(struct df_plugin *plugin, unsigned seconds)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&plugin->lock);
    while (plugin->phase == DF_PLUGIN_STARTING && error != ETIMEDOUT)
        error = seconds ? pthread_cond_timedwait(&plugin->changed, &plugin->lock, &until)
                        : pthread_cond_wait(&plugin->changed, &plugin->lock);
    bool started = plugin->phase != DF_PLUGIN_STARTING;
    if (!started) /* else its thread may be past looking, and holds no lock for that */
        plugin->abandoned = true;
    pthread_mutex_unlock(&plugin->lock);
    return started;
}

static bool was_mounted(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    bool mounted = plugin->was_mounted; /* though it may have ended by itself since then */
    pthread_mutex_unlock(&plugin->lock);
    return mounted;
}

/* After main's end: why there is no mount. */
static int start_error(struct df_plugin *plugin)
{
    char reason[DF_PLUGIN_REASON_SIZE];
    if (plugin->load_error)
        return plugin->load_error;
    if (plugin->mount_error)
        return plugin->mount_error;
    if (plugin->status >= DF_PROGRAM_KILLED)
        snprintf(reason, sizeof(reason), "%s was ended by signal %d before it mounted anything",
                 plugin->library, plugin->status - DF_PROGRAM_KILLED);
    else
        snprintf(
            reason, sizeof(reason), "%s: main() returned %d before it mounted anything%s",
            plugin->library, plugin->status,
            plugin->status == 0 && df_belongings_any_child(&plugin->guest.belongings)
                ? "; it has started a child, perhaps to live on in the background: give it its "
                  "option to stay in the foreground (often -f)"
                : "");
    df_plugin_log(plugin, reason);
    return -EIO;
}

enum { ABANDONED = 0x10000 }; /* no errno: those may come from the mount */

static int launch(struct df_plugin *plugin, unsigned seconds)
{
    df_plugin_enlist(plugin);
    pthread_t thread;
    int error = df_plugin_main_start(plugin, &thread);
    if (error)
        return error;
    if (!wait_started(plugin, seconds)) {
        pthread_detach(thread); /* the plugin may be gone by now; its stack stays */
        return -ABANDONED;
    }
    bool mounted = was_mounted(plugin);
    if (mounted && !plugin->object.main_moves) {
        plugin->thread = thread;
        return 0;
    }
    pthread_join(thread, NULL); /* parked, or ended */
    if (mounted)
        return 0;
    df_plugin_main_free_stack(plugin);
    return start_error(plugin);
}

static const char *name_of(const struct df_plugin_program *program)
{
    return program->library ? program->library : program->argv[0];
}

/* 0, or -errno: why, its log says. */
static int take_code(struct df_plugin *plugin, const struct df_plugin_program *program)
{
    char reason[DF_PLUGIN_REASON_SIZE];
    if (!program->library) {
        plugin->run = program->run;
        plugin->run_data = program->data;
        plugin->object.kind = DF_ELF_OBJECT; /* nothing of it is patched */
        return 0;
    }
    int error = df_object_read(&plugin->object, program->library, reason, sizeof(reason));
    if (error)
        df_plugin_log(plugin, reason);
    return error;
}

int df_plugin_start(const struct df_plugin_program *program, struct df_plugin **out, char *message,
                    size_t size)
{
    const char *name = name_of(program);
    struct df_plugin *plugin;
    int error = create(name, program->argc, program->argv, &plugin);
    if (error) {
        snprintf(message, size, "%s: %s", name, strerror(-error));
        return error;
    }
    error = take_code(plugin, program);
    if (!error)
        error = launch(plugin, program->seconds);
    if (error == -ABANDONED) { /* the plugin is its own thread's, or gone */
        snprintf(message, size,
                 "%s has not mounted anything within %u seconds; it is left behind, and what it "
                 "would mount later is refused",
                 name, program->seconds);
        return -ETIMEDOUT;
    }
    copy_log(plugin, message, size);
    if (error)
        df_plugin_dispose(plugin);
    else
        *out = plugin;
    return error;
}

/* ---- stopping ------------------------------------------------------------------------------- */

static void *reaper_thread(void *argument)
{
    struct df_plugin *plugin = argument;
    df_plugin_main_finish(plugin, false);
    df_plugin_dispose(plugin);
    return NULL;
}

/* The same for a main that was parked, and sleeps here until the last file is closed. */
static void *heir_thread(void *argument)
{
    struct df_plugin *plugin = argument;
    df_plugin_main_finish(plugin, true);
    df_plugin_dispose(plugin);
    return NULL;
}

/* Somebody must unload the plugin when its last file is closed. Without a thread for that it stays
 * loaded. */
static void leave_to_reaper(struct df_plugin *plugin, bool taken)
{
    pthread_t reaper;
    if (df_plugin_main_thread(&reaper, NULL, taken ? heir_thread : reaper_thread, plugin) == 0)
        pthread_detach(reaper);
    else if (taken)
        df_plugin_main_set_parked(plugin);
}

int df_plugin_stop(struct df_plugin *plugin, unsigned flags, int *status)
{
    bool forked = plugin->pid != getpid();
    if (!forked && self == plugin)
        return -EDEADLK;
    bool taken = !forked && df_plugin_main_take(plugin);
    int error = df_plugin_detach(plugin, flags);
    if (error && taken)
        df_plugin_main_set_parked(plugin);
    if (error)
        return error;
    if (forked) {
        *status = 0;
        return 0;
    }
    if (flags & DF_DETACH_LAZY && df_plugin_is_kept(plugin)) {
        *status = -1;
        leave_to_reaper(plugin, taken);
        return 0;
    }
    df_plugin_main_finish(plugin, taken);
    *status = plugin->status;
    df_plugin_dispose(plugin);
    return 0;
}
