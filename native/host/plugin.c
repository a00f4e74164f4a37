/*
 * plugin.c - a FUSE program running inside this process: its thread, its mount, what it says; see
 * plugin.h for the picture.
 *
 * A plugin's main() believes that it owns its process. Containing what it does to the process
 * (exit, chdir, umask, signal handlers, getopt's globals, threads it leaves behind, thread-specific
 * keys whose destructors lie in its code) is the business of hooks around run_main(); what is here
 * is: it has a thread of its own, it gets no asynchronous signal there, and nothing of libfuse
 * touches the process.
 */
#include "host/plugin.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/mount.h"
#include "host/object.h"

enum {
    STACK_SIZE = 8 * 1024 * 1024, /* bytes; what a program's first thread has by default */
    REASON_SIZE = 1024,           /* bytes; one message of ours */
};

enum {                     /* df_plugin.wake */
       WAKE_EXIT = 1 << 0, /* the plugin wants its mount to end */
       WAKE_GONE = 1 << 1, /* the mount has ended */
};

enum phase { STARTING, MOUNTED, ENDED };

struct df_plugin {
    struct df_ops ops;              /* fs->ops while serving: the host's, with a destroy of ours */
    const struct df_ops *given_ops; /* the host's own table */
    struct df_plugin *next;         /* list of plugins; under list_lock */

    char *library; /* fixed from here to `slot` once main's thread runs */
    int argc;
    char **argv; /* main's to modify */
    pid_t pid;   /* the process that main's thread exists in */
    pthread_t thread;
    struct df_object object; /* `map` is written under list_lock */
    _Atomic(void *) slot;    /* the ABI library's */

    _Atomic uint32_t wake; /* futex; WAKE_* */

    pthread_mutex_t lock;   /* protects the next six */
    pthread_cond_t changed; /* phase */
    enum phase phase;
    bool was_mounted;       /* it has served once */
    int mount_error;        /* why df_plugin_serve() could not attach; 0 or -errno */
    int mount_id;           /* 0: not serving */
    struct df_mount *mount; /* NULL: not serving */

    int load_error; /* main's thread until ENDED, then the joiner: 0 or -errno */
    int status;     /* the same: what main returned */

    pthread_mutex_t log_lock; /* protects the next two */
    size_t log_size;          /* bytes */
    char *log;                /* DF_PLUGIN_LOG_SIZE bytes */
};

static _Thread_local struct df_plugin *self;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct df_plugin *list;      /* plugins whose main may run; under list_lock */
static struct df_plugin *lingering; /* plugins that have ended and linger; under list_lock */

/* ---- which plugin ------------------------------------------------------------------------- */

struct df_plugin *df_plugin_self(void)
{
    return self;
}

struct df_plugin *df_plugin_of_code(const void *address)
{
    const void *map = df_object_map_of(address);
    struct df_plugin *plugin;
    pthread_mutex_lock(&list_lock);
    for (plugin = list; plugin; plugin = plugin->next)
        if (map && plugin->object.map == map)
            break;
    pthread_mutex_unlock(&list_lock);
    return plugin;
}

bool df_plugin_lingers(const struct df_plugin *plugin)
{
    return plugin->object.lingers;
}

_Atomic(void *) *df_plugin_slot(struct df_plugin *plugin)
{
    return &plugin->slot;
}

static void enlist(struct df_plugin *plugin)
{
    pthread_mutex_lock(&list_lock);
    plugin->next = list;
    list = plugin;
    pthread_mutex_unlock(&list_lock);
}

static void delist(struct df_plugin *plugin)
{
    pthread_mutex_lock(&list_lock);
    for (struct df_plugin **at = &list; *at; at = &(*at)->next) {
        if (*at == plugin) {
            *at = plugin->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- fork(2): no lock may be held by a thread that the child does not have ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next) {
        pthread_mutex_lock(&plugin->lock);
        pthread_mutex_lock(&plugin->log_lock);
    }
}

static void after_fork(void)
{
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next) {
        pthread_mutex_unlock(&plugin->log_lock);
        pthread_mutex_unlock(&plugin->lock);
    }
    pthread_mutex_unlock(&list_lock);
}

static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- what it says -------------------------------------------------------------------------- */

/* Makes room for `size` bytes (at most the whole log) by dropping the oldest lines. */
static void drop_oldest(struct df_plugin *plugin, size_t size)
{
    size_t drop = plugin->log_size + size - DF_PLUGIN_LOG_SIZE;
    const char *end = memchr(plugin->log + drop - 1, '\n', plugin->log_size - (drop - 1));
    if (end)
        drop = (size_t)(end + 1 - plugin->log);
    plugin->log_size -= drop;
    memmove(plugin->log, plugin->log + drop, plugin->log_size);
}

void df_plugin_log(struct df_plugin *plugin, const char *line)
{
    size_t size = strlen(line);
    if (size > 0 && line[size - 1] == '\n')
        size--;
    if (size >= DF_PLUGIN_LOG_SIZE) { /* the end of it must do */
        line += size - (DF_PLUGIN_LOG_SIZE - 1);
        size = DF_PLUGIN_LOG_SIZE - 1;
    }
    pthread_mutex_lock(&plugin->log_lock);
    if (plugin->log_size + size + 1 > DF_PLUGIN_LOG_SIZE)
        drop_oldest(plugin, size + 1);
    memcpy(plugin->log + plugin->log_size, line, size);
    plugin->log[plugin->log_size + size] = '\n';
    plugin->log_size += size + 1;
    pthread_mutex_unlock(&plugin->log_lock);
}

bool df_plugin_log_all(const char *line)
{
    pthread_mutex_lock(&list_lock);
    bool any = list || lingering; /* what has ended has nobody to tell */
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next)
        df_plugin_log(plugin, line);
    pthread_mutex_unlock(&list_lock);
    return any;
}

void df_plugin_text(struct df_plugin *plugin, char *text, size_t size)
{
    if (size == 0)
        return;
    pthread_mutex_lock(&plugin->log_lock);
    const char *from = plugin->log;
    size_t used = plugin->log_size;
    if (used > 0)
        used--; /* the last newline */
    if (used >= size) {
        from += used - (size - 1);
        used = size - 1;
    }
    memcpy(text, from, used);
    text[used] = '\0';
    pthread_mutex_unlock(&plugin->log_lock);
}

/* ---- life --------------------------------------------------------------------------------- */

static char **copy_vector(int argc, char *const argv[])
{
    char **copy = calloc((size_t)argc + 1, sizeof(*copy));
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i]) {
            while (i-- > 0)
                free(copy[i]);
            free(copy);
            return NULL;
        }
    }
    return copy;
}

static void free_plugin(struct df_plugin *plugin)
{
    for (int i = 0; plugin->argv && i < plugin->argc; i++)
        free(plugin->argv[i]);
    free(plugin->argv);
    pthread_mutex_destroy(&plugin->lock);
    pthread_mutex_destroy(&plugin->log_lock);
    pthread_cond_destroy(&plugin->changed);
    free(plugin);
}

/* A program that lingers may still look at its arguments, or say that it wants to end. */
static void keep_plugin(struct df_plugin *plugin)
{
    pthread_mutex_lock(&list_lock);
    plugin->next = lingering;
    lingering = plugin;
    pthread_mutex_unlock(&list_lock);
}

static void dispose(struct df_plugin *plugin)
{
    struct df_plugin *before = self;
    bool lingers = plugin->object.handle && plugin->object.lingers;
    self = plugin; /* its destructors may have something to say */
    df_object_close(&plugin->object);
    self = before;
    delist(plugin);
    free(plugin->library);
    free(plugin->log);
    if (lingers)
        keep_plugin(plugin);
    else
        free_plugin(plugin);
}

static struct df_plugin *create(const char *library, int argc, char *const argv[])
{
    struct df_plugin *plugin = calloc(1, sizeof(*plugin));
    if (!plugin)
        return NULL;
    pthread_mutex_init(&plugin->lock, NULL);
    pthread_mutex_init(&plugin->log_lock, NULL);
    pthread_cond_init(&plugin->changed, NULL);
    plugin->object.fd = -1;
    plugin->pid = getpid();
    plugin->library = strdup(library);
    plugin->argc = argc;
    plugin->argv = copy_vector(argc, argv);
    plugin->log = malloc(DF_PLUGIN_LOG_SIZE);
    if (plugin->library && plugin->argv && plugin->log)
        return plugin;
    dispose(plugin);
    return NULL;
}

static void set_phase(struct df_plugin *plugin, enum phase phase)
{
    pthread_mutex_lock(&plugin->lock);
    plugin->phase = phase;
    if (phase == MOUNTED)
        plugin->was_mounted = true;
    pthread_cond_broadcast(&plugin->changed);
    pthread_mutex_unlock(&plugin->lock);
}

/* ---- main's thread ------------------------------------------------------------------------- */

static int load(struct df_plugin *plugin)
{
    char reason[REASON_SIZE] = "";
    struct df_object object = plugin->object;
    int error = df_object_open(&object, plugin->library, reason, sizeof(reason));
    pthread_mutex_lock(&list_lock);
    plugin->object = object;
    pthread_mutex_unlock(&list_lock);
    if (error)
        df_plugin_log(plugin, reason);
    return error;
}

/*
 * Hooks for exit(3) and abort(3) will return here with their status; today a plugin that calls them
 * ends the process. getopt(3) keeps its place in globals of libc, which the hooks will part, too:
 * today it starts anew for a plugin that calls it, and disturbs others that parse at that moment.
 */
static int run_main(struct df_plugin *plugin)
{
    if (plugin->object.uses_getopt)
        optind = 0;
    return plugin->object.main(plugin->argc, plugin->argv, environ);
}

static void *plugin_thread(void *argument)
{
    struct df_plugin *plugin = argument;
    self = plugin;
    plugin->load_error = load(plugin);
    if (!plugin->load_error)
        plugin->status = run_main(plugin);
    set_phase(plugin, ENDED);
    return NULL;
}

/*
 * Asynchronous signals go to the host's threads, as they did before; faults must stay deliverable,
 * or the kernel would kill the process past the host's handler. A thread inherits the mask of its
 * maker, who has it for the length of one call.
 */
static int create_thread(pthread_t *thread, size_t stack_size, void *(*run)(void *), void *argument)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all, before;
    pthread_attr_t attributes;

    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&all, faults[i]);
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    pthread_attr_setstacksize(&attributes, stack_size);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    error = pthread_create(thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}

/* ---- starting ------------------------------------------------------------------------------ */

/* True if it was mounted, though it may have ended by itself since then. */
static bool wait_mounted(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    while (plugin->phase == STARTING)
        pthread_cond_wait(&plugin->changed, &plugin->lock);
    bool mounted = plugin->was_mounted;
    pthread_mutex_unlock(&plugin->lock);
    return mounted;
}

/* After main's end: why there is no mount. */
static int start_error(struct df_plugin *plugin)
{
    char reason[REASON_SIZE];
    if (plugin->load_error)
        return plugin->load_error;
    if (plugin->mount_error)
        return plugin->mount_error;
    snprintf(reason, sizeof(reason), "%s: main() returned %d before it mounted anything",
             plugin->library, plugin->status);
    df_plugin_log(plugin, reason);
    return -EIO;
}

static int launch(struct df_plugin *plugin)
{
    enlist(plugin);
    int error = create_thread(&plugin->thread, STACK_SIZE, plugin_thread, plugin);
    if (error) {
        df_plugin_log(plugin, "no thread can be made for the plugin: too many, or no memory");
        return error;
    }
    if (wait_mounted(plugin))
        return 0;
    pthread_join(plugin->thread, NULL);
    return start_error(plugin);
}

int df_plugin_start(const char *library, int argc, char *const argv[], struct df_plugin **out,
                    char *message, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char reason[REASON_SIZE];
    pthread_once(&once, register_fork);
    struct df_plugin *plugin = create(library, argc, argv);
    if (!plugin) {
        snprintf(message, size, "%s: memory is short", library);
        return -ENOMEM;
    }
    int error = df_object_read(&plugin->object, library, reason, sizeof(reason));
    if (error)
        df_plugin_log(plugin, reason);
    else
        error = launch(plugin);
    df_plugin_text(plugin, message, size);
    if (error)
        dispose(plugin);
    else
        *out = plugin;
    return error;
}

/* ---- the mount ------------------------------------------------------------------------------ */

static void wake_up(struct df_plugin *plugin, uint32_t why)
{
    atomic_fetch_or(&plugin->wake, why);
    syscall(SYS_futex, &plugin->wake, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* In the place of the host's destroy: the core is done with fs, its owner not yet. */
static void mount_gone(struct df_fs *fs)
{
    struct df_plugin *plugin =
        (struct df_plugin *)((char *)fs->ops - offsetof(struct df_plugin, ops));
    fs->ops = plugin->given_ops;
    wake_up(plugin, WAKE_GONE);
}

/* Claims the plugin's one mount for fs. */
static int begin_serving(struct df_plugin *plugin, struct df_fs *fs)
{
    pthread_mutex_lock(&plugin->lock);
    bool busy = plugin->given_ops;
    if (!busy)
        plugin->given_ops = fs->ops;
    pthread_mutex_unlock(&plugin->lock);
    if (busy) {
        df_plugin_log(plugin, "a program can have one mount at a time");
        return -EBUSY;
    }
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
    char reason[REASON_SIZE];
    struct df_mount *mount;
    const struct df_mount_spec spec = {
        .point = session->mountpoint,
        .fsname = session->fsname,
        .subtype = session->subtype,
        .flags = session->readonly ? DF_ATTACH_READONLY : 0,
    };
    int error = df_mount_attach(&spec, fs, &mount);
    if (error) {
        snprintf(reason, sizeof(reason), "%s cannot be mounted on: %s", session->mountpoint,
                 error == -EBUSY ? "something is mounted there, unmount it first"
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

/* Sleeps until the mount has ended; ends it when the plugin wishes so. */
static void wait_gone(struct df_plugin *plugin, int id)
{
    uint32_t wake;
    bool detached = false;
    while (!((wake = atomic_load(&plugin->wake)) & WAKE_GONE)) {
        if (wake & WAKE_EXIT && !detached) {
            df_mount_detach(id, DF_DETACH_LAZY); /* or somebody else has just done it */
            detached = true;
            continue;
        }
        syscall(SYS_futex, &plugin->wake, FUTEX_WAIT_PRIVATE, wake, NULL, NULL, 0);
    }
    df_mount_wait(id); /* mount_gone() has returned */
}

int df_plugin_serve(struct df_plugin *plugin, const struct df_session *session, struct df_fs *fs)
{
    int error = begin_serving(plugin, fs);
    if (error)
        return error;
    error = attach(plugin, session, fs);
    if (error) {
        fs->ops = plugin->given_ops;
    } else {
        int id = plugin->mount_id;
        set_phase(plugin, MOUNTED);
        wait_gone(plugin, id);
    }
    end_serving(plugin);
    return error;
}

void df_plugin_exit(struct df_plugin *plugin)
{
    wake_up(plugin, WAKE_EXIT);
}

void df_plugin_stay(struct df_plugin *plugin)
{
    atomic_fetch_and(&plugin->wake, ~(uint32_t)WAKE_EXIT);
}

struct df_mount *df_plugin_mount_of(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    struct df_mount *mount = plugin->mount;
    pthread_mutex_unlock(&plugin->lock);
    return mount;
}

/* ---- stopping ------------------------------------------------------------------------------- */

static int detach(struct df_plugin *plugin, bool lazy)
{
    pthread_mutex_lock(&plugin->lock);
    int id = plugin->mount_id;
    pthread_mutex_unlock(&plugin->lock);
    if (id == 0)
        return 0;
    int error = df_mount_detach(id, lazy ? DF_DETACH_LAZY : 0);
    return error == -EINVAL ? 0 : error; /* the plugin has ended it */
}

/* True while files or calls keep a lazily detached mount: main returns only after them. */
static bool is_kept(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    bool serving = plugin->mount_id != 0;
    pthread_mutex_unlock(&plugin->lock);
    return serving && !(atomic_load(&plugin->wake) & WAKE_GONE);
}

static void *reaper_thread(void *argument)
{
    struct df_plugin *plugin = argument;
    pthread_join(plugin->thread, NULL);
    dispose(plugin);
    return NULL;
}

/* Somebody must unload the plugin when its last file is closed. Without a thread for that it stays
 * loaded. */
static void leave_to_reaper(struct df_plugin *plugin)
{
    pthread_t reaper;
    if (create_thread(&reaper, STACK_SIZE, reaper_thread, plugin) == 0)
        pthread_detach(reaper);
}

int df_plugin_stop(struct df_plugin *plugin, bool lazy, int *status)
{
    bool forked = plugin->pid != getpid();
    if (!forked && pthread_equal(pthread_self(), plugin->thread))
        return -EDEADLK;
    int error = detach(plugin, lazy);
    if (error)
        return error;
    if (forked) {
        *status = 0;
        return 0;
    }
    if (lazy && is_kept(plugin)) {
        *status = -1;
        leave_to_reaper(plugin);
        return 0;
    }
    pthread_join(plugin->thread, NULL);
    *status = plugin->status;
    dispose(plugin);
    return 0;
}
