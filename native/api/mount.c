/*
 * mount.c - df_mount() and what can be asked of mounts: a plugin, its mount and its counters under
 * one number.
 */
#include "directfuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/joined.h"
#include "api/served.h"
#include "core/gate.h"
#include "core/mount.h"
#include "loader/plugin.h"
#include "wrap/count.h"

/* A mount made by df_mount(), until df_unmount(), also when its program has ended by itself. */
struct mounted {
    struct mounted *next;
    int id;
    struct df_plugin *plugin;     /* inline, or */
    struct df_joined *joined;     /* in a mount server */
    struct df_counters *counters; /* with a reference; NULL: DF_MOUNT_NOSTATS */
    pid_t pid;                    /* the process that mounted it */
    bool unmounting;              /* a thread is in stop() */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and its items */
static struct mounted *list;

/* ---- fork ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* Who was unmounting does not exist in the child. */
static void in_child(void)
{
    for (struct mounted *m = list; m; m = m->next)
        m->unmounting = false;
    after_fork();
}

static void unmount_all(void);

static void register_once(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
    atexit(unmount_all);
}

static int result(int ret)
{
    if (ret >= 0)
        return ret;
    errno = -ret;
    return -1;
}

/* ---- mounting ------------------------------------------------------------------------------ */

static void say(char *message, size_t size, const char *words)
{
    if (message && size > 0)
        snprintf(message, size, "%s", words);
}

/* <directory of this library>/backends/<name>.so */
static int find_backend(const char *name, char out[PATH_MAX])
{
    Dl_info info;
    const char *slash;
    int len;

    if (!dladdr((void *)find_backend, &info) || !(slash = strrchr(info.dli_fname, '/')))
        return -ENOENT;
    len = snprintf(out, PATH_MAX, "%.*s/backends/%s.so", (int)(slash - info.dli_fname),
                   info.dli_fname, name);
    if (len >= PATH_MAX)
        return -ENAMETOOLONG;
    return access(out, F_OK) == 0 ? 0 : -ENOENT;
}

static int find_library(const char *library, int argc, char *const argv[], char out[PATH_MAX])
{
    if (argc < 1 || !argv || !argv[0] || !argv[0][0])
        return -EINVAL;
    out[0] = '\0';
    if (argv[0][0] == '@') /* a server that is there */
        return 0;
    if (!library && !strchr(argv[0], '/'))
        return find_backend(argv[0], out);
    if (!library)
        library = argv[0];
    if (strlen(library) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(out, library);
    return 0;
}

/* Why find_library() has found none, and what would help. Returns its errno. */
static int refuse(int error, char *const argv[], char *message, size_t size)
{
    char words[PATH_MAX];

    if (error == -ENOENT) {
        snprintf(words, sizeof(words),
                 "%s is no built-in file system; a program or plugin of your own is named by its "
                 "path, with a slash",
                 argv[0]);
        say(message, size, words);
    } else if (error == -EINVAL) {
        say(message, size, "argv has no first word: it names the file system, as in a shell");
    } else {
        say(message, size, "the library's path is too long");
    }
    return error;
}

static struct df_fs *make_counting(struct df_fs *below, void *counters)
{
    return df_count_wrap(below, counters);
}

/* Puts the counters around the mount, if they are wanted. */
static int count_calls(struct mounted *mounted, unsigned flags)
{
    if (flags & DF_MOUNT_NOSTATS)
        return 0;
    mounted->counters = df_count_new(flags & DF_MOUNT_TIMING);
    if (!mounted->counters)
        return -ENOMEM;
    return df_mount_wrap(mounted->id, make_counting, mounted->counters);
}

static void free_mounted(struct mounted *mounted)
{
    if (mounted->counters)
        df_count_drop(mounted->counters);
    free(mounted);
}

/* What is to be started: a library's main, or `run`; or what was started: a server at `socket`. */
struct program {
    const char *library;
    df_plugin_function run;
    void *data;
    bool served;
    int socket;
};

static int start_inline(struct mounted *mounted, const struct program *program, int argc,
                        char *const argv[], unsigned flags, char *message, size_t size)
{
    unsigned seconds = flags / DF_MOUNT_SECONDS(1);
    struct df_mount *mount;
    int ret = program->run ? df_plugin_start_function(seconds, program->run, program->data, argc,
                                                      argv, &mounted->plugin, message, size)
                           : df_plugin_start(seconds, program->library, argc, argv,
                                             &mounted->plugin, message, size);

    if (ret < 0)
        return ret;
    mount = df_plugin_mount_of(mounted->plugin);
    mounted->id = mount ? mount->id : 0;
    if (mounted->id != 0)
        return 0;
    say(message, size, "the program ended as soon as it had mounted");
    df_plugin_stop(mounted->plugin, true, &ret);
    return -EIO;
}

static int start(struct mounted *mounted, const struct program *program, int argc,
                 char *const argv[], unsigned flags, char *message, size_t size)
{
    if (program->served)
        return df_joined_meet(program->socket, &mounted->joined, &mounted->id, message, size);
    if (!program->run && argv[0][0] == '@')
        return df_joined_find(argv[0] + 1, &mounted->joined, &mounted->id, message, size);
    if (flags & DF_MOUNT_SERVER)
        return df_joined_start(program->library, argc, argv, flags & DF_MOUNT_RESTART,
                               &mounted->joined, &mounted->id, message, size);
    return start_inline(mounted, program, argc, argv, flags, message, size);
}

/* Ends what start() has begun. *hung: without the file system, whose calls do not end. */
static int stop(struct mounted *mounted, unsigned flags, bool *hung)
{
    bool lazy = flags & DF_UNMOUNT_LAZY;
    int status;

    *hung = false;
    if (mounted->joined)
        return df_joined_leave(mounted->joined, lazy, flags & DF_UNMOUNT_LEAVE, hung);
    return df_plugin_stop(mounted->plugin, lazy, &status);
}

static int mount_it(struct mounted *mounted, const struct program *program, int argc,
                    char *const argv[], unsigned flags, char *message, size_t size)
{
    int ret = start(mounted, program, argc, argv, flags, message, size);
    bool hung;

    if (ret < 0)
        return ret;
    ret = count_calls(mounted, flags);
    if (ret < 0 &&
        ret != -EINVAL) { /* EINVAL: it has ended by itself; df_unmount() takes the rest */
        say(message, size, "no memory for the statistics");
        stop(mounted, DF_UNMOUNT_LAZY, &hung);
        return ret;
    }
    pthread_once(&once, register_once);
    pthread_mutex_lock(&list_lock);
    mounted->pid = getpid();
    mounted->next = list;
    list = mounted;
    pthread_mutex_unlock(&list_lock);
    return mounted->id;
}

static int mount_program(const struct program *program, int argc, char *const argv[],
                         unsigned flags, char *message, size_t size)
{
    struct mounted *mounted = calloc(1, sizeof(*mounted));
    int ret;

    if (!mounted)
        return -ENOMEM;
    ret = mount_it(mounted, program, argc, argv, flags, message, size);
    if (ret < 0)
        free_mounted(mounted);
    return ret;
}

static bool flags_known(unsigned flags)
{
    const unsigned known = DF_MOUNT_TIMING | DF_MOUNT_NOSTATS | DF_MOUNT_SERVER | DF_MOUNT_RESTART;

    if (flags & DF_MOUNT_RESTART && !(flags & DF_MOUNT_SERVER))
        return false;

    return !(flags & (DF_MOUNT_SECONDS(1) - 1) & ~known);
}

int df_mount(const char *library, int argc, char *const argv[], unsigned flags, char *message,
             size_t size)
{
    char path[PATH_MAX];
    const struct program program = {.library = path};
    int ret;

    say(message, size, "");
    if (!flags_known(flags)) {
        say(message, size, "unknown flags: see DF_MOUNT_* in directfuse.h");
        return result(-EINVAL);
    }
    if ((ret = find_library(library, argc, argv, path)) < 0)
        return result(refuse(ret, argv, message, size));
    return result(mount_program(&program, argc, argv, flags, message, size));
}

int df_mount_function(int (*run)(int argc, char *argv[], void *data), void *data, int argc,
                      char *const argv[], unsigned flags, char *message, size_t size)
{
    const struct program program = {.run = run, .data = data};

    say(message, size, "");
    if (!flags_known(flags) || flags & DF_MOUNT_SERVER || !run || argc < 1 || !argv || !argv[0])
        return result(-EINVAL);
    return result(mount_program(&program, argc, argv, flags, message, size));
}

int df_mount_served(int socket, unsigned flags, char *message, size_t size)
{
    const struct program program = {.served = true, .socket = socket};

    say(message, size, "");
    if (!flags_known(flags))
        return result(-EINVAL);
    return result(mount_program(&program, 0, NULL, flags, message, size));
}

/* ---- unmounting ---------------------------------------------------------------------------- */

/* Under list_lock. */
static struct mounted *find(int id)
{
    for (struct mounted *m = list; m; m = m->next)
        if (m->id == id)
            return m;
    return NULL;
}

/* Marks it as ours to unmount. NULL and *error = 0: it was not made by df_mount(). */
static struct mounted *claim(int id, int *error)
{
    struct mounted *mounted;

    pthread_mutex_lock(&list_lock);
    mounted = find(id);
    *error = mounted && mounted->unmounting ? -EBUSY : 0;
    if (*error < 0)
        mounted = NULL;
    if (mounted)
        mounted->unmounting = true;
    pthread_mutex_unlock(&list_lock);
    return mounted;
}

static void remove_mounted(struct mounted *mounted)
{
    struct mounted **at = &list;

    pthread_mutex_lock(&list_lock);
    while (*at != mounted)
        at = &(*at)->next;
    *at = mounted->next;
    pthread_mutex_unlock(&list_lock);
    free_mounted(mounted);
}

static void give_up(struct mounted *mounted)
{
    pthread_mutex_lock(&list_lock);
    mounted->unmounting = false;
    pthread_mutex_unlock(&list_lock);
}

int df_unmount(int mount, unsigned flags)
{
    struct mounted *mounted;
    bool lazy = flags & DF_UNMOUNT_LAZY, hung;
    int ret;

    if (flags & ~(unsigned)(DF_UNMOUNT_LAZY | DF_UNMOUNT_LEAVE))
        return result(-EINVAL);
    mounted = claim(mount, &ret);
    if (ret < 0)
        return result(ret);
    if (!mounted)
        return result(df_mount_detach(mount, lazy ? DF_DETACH_LAZY : 0));
    ret = stop(mounted, flags, &hung);
    if (ret < 0)
        give_up(mounted);
    else
        remove_mounted(mounted);
    return result(ret == 0 && hung ? -ETIMEDOUT : ret);
}

/* ---- the end of the process ---------------------------------------------------------------- */

/* The newest mount of this process that nobody is unmounting; 0: there is none. */
static int newest(void)
{
    int id = 0;

    pthread_mutex_lock(&list_lock);
    for (struct mounted *m = list; m && id == 0; m = m->next)
        if (!m->unmounting && m->pid == getpid())
            id = m->id;
    pthread_mutex_unlock(&list_lock);
    return id;
}

/* Programs write at their end what they hold (docs/decisions/013). A mount whose files are open is
 * detached; its program ends with them if the process lives that long, and it does not. */
static void unmount_all(void)
{
    int id;

    while ((id = newest()) != 0) {
        if (df_unmount(id, DF_UNMOUNT_LEAVE) == 0 || newest() != id)
            continue;
        if (errno != EBUSY && errno != ETIMEDOUT)
            break;
        if (df_unmount(id, DF_UNMOUNT_LEAVE | DF_UNMOUNT_LAZY) != 0 && newest() == id)
            break;
    }
}

/* ---- asking -------------------------------------------------------------------------------- */

struct listing {
    struct df_mount_info *list;
    size_t count;
    int found;
};

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static bool list_mount(const struct df_mount *mount, void *arg)
{
    struct listing *l = arg;
    struct df_mount_info *info = &l->list[l->found];

    if ((size_t)l->found++ >= l->count)
        return true;
    info->id = mount->id;
    info->read_only = (mount->flags & DF_ATTACH_READONLY) != 0;
    info->dev = mount->dev;
    copy_text(info->fsname, sizeof(info->fsname), mount->fsname);
    copy_text(info->subtype, sizeof(info->subtype), mount->subtype);
    copy_text(info->mountpoint, sizeof(info->mountpoint), mount->point[0] ? mount->point : "/");
    return true;
}

int df_mounts(struct df_mount_info *infos, size_t count)
{
    struct listing l = {infos, infos ? count : 0, 0};

    df_mount_each(list_mount, &l);
    return l.found;
}

int df_stats(int mount, struct df_op_stats *stats, size_t count)
{
    struct df_op_total totals[DF_OP_COUNT];
    struct mounted *mounted;
    bool counted = false;

    pthread_mutex_lock(&list_lock);
    mounted = find(mount);
    if (mounted && mounted->counters) {
        df_count_sum(mounted->counters, totals);
        counted = true;
    }
    pthread_mutex_unlock(&list_lock);
    if (!counted)
        return result(-EINVAL);
    for (unsigned i = 0; stats && i < count && i < DF_OP_COUNT; i++)
        stats[i] = (struct df_op_stats){df_count_op_name(i), totals[i].calls, totals[i].errors,
                                        totals[i].bytes, totals[i].nanoseconds};
    return DF_OP_COUNT;
}

/* Under list_lock. The server of a mount that lives in one; NULL: it does not, or not any more. */
static struct df_joined *find_joined(int id)
{
    const struct mounted *mounted = find(id);

    return mounted && !mounted->unmounting ? mounted->joined : NULL;
}

int df_trip_stats(int mount, struct df_trip_stats *stats)
{
    struct df_joined_stats sums;
    struct df_joined *joined;

    pthread_mutex_lock(&list_lock);
    joined = find_joined(mount);
    if (joined)
        df_joined_stats(joined, &sums);
    pthread_mutex_unlock(&list_lock);
    if (!joined)
        return result(-EINVAL);
    *stats = (struct df_trip_stats){sums.trips, sums.spun, sums.slept, sums.hits};
    return 0;
}

int df_set_call_timeout(int mount, unsigned milliseconds)
{
    struct df_joined *joined;

    pthread_mutex_lock(&list_lock);
    joined = find_joined(mount);
    if (joined)
        df_joined_set_patience(joined, milliseconds ? (int64_t)milliseconds * 1000000 : -1);
    pthread_mutex_unlock(&list_lock);
    return result(joined ? 0 : -EINVAL);
}

void df_set_listener(void (*listener)(int mount, const char *words))
{
    df_joined_listen(listener);
    df_plugin_listen(listener);
}

struct call_sums {
    uint64_t passed[DF_NR_COUNT];
    uint64_t refused[DF_NR_COUNT];
};

static void add_thread(struct df_thread *thread, void *arg)
{
    struct call_sums *sums = arg;

    for (unsigned i = 0; i < DF_NR_COUNT; i++) {
        sums->passed[i] += atomic_load_explicit(&thread->passed[i], memory_order_relaxed);
        sums->refused[i] += atomic_load_explicit(&thread->refused[i], memory_order_relaxed);
    }
}

int df_call_stats(struct df_call_stats *stats, size_t count)
{
    static const char *const names[] = {
#define DF_CALL(type, name, parameters, arguments, level, note) #name,
#include "core/calls.def"
#undef DF_CALL
    };
    struct call_sums sums = {0};

    df_gate_each_thread(add_thread, &sums);
    for (unsigned i = 0; stats && i < count && i < DF_NR_COUNT; i++)
        stats[i] = (struct df_call_stats){names[i], sums.passed[i], sums.refused[i]};
    return DF_NR_COUNT;
}
