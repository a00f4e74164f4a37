/*
 * plugin_main.c - the thread of a plugin's main, and its stack: from loading the program to the
 * value that main returns; and a main that gives its thread up meanwhile.
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/masked_thread.h"
#include "loader/plugin_private.h"
#include "loader/program.h"

enum { STACK_SIZE = 8 * 1024 * 1024 }; /* bytes; what a program's first thread has by default */

/* ---- main's thread ------------------------------------------------------------------------- */

static int load(struct df_plugin *plugin)
{
    char reason[DF_PLUGIN_REASON_SIZE] = "";
    struct df_object object = plugin->object;
    int error = df_object_open(&object, &plugin->guest, plugin->library, reason, sizeof(reason));
    df_plugin_set_object(plugin, &object);
    if (!error && (error = df_host_fds_find(&plugin->guest.host_fds)) < 0)
        snprintf(reason, sizeof(reason), "%s: which descriptors are open cannot be found: %s",
                 plugin->library, strerror(-error));
    if (error)
        df_plugin_log(plugin, reason);
    return error;
}

void df_plugin_main_free_stack(struct df_plugin *plugin)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    munmap(plugin->stack - guard, guard + STACK_SIZE);
    plugin->stack = NULL;
}

static int run_main(struct df_plugin *plugin)
{
    if (plugin->run)
        return plugin->run(plugin->argc, plugin->argv, plugin->run_data);
    const struct df_object *object = &plugin->object;
    struct df_program_start start = {object->constructors,
                                     ((const struct link_map *)object->map)->l_addr, object->main,
                                     object->start};
    return df_program_run(&start, &plugin->guest, plugin->argc, plugin->argv);
}

static void begin_fiber(struct df_plugin *plugin);

static void set_ended(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock);
    plugin->phase = DF_PLUGIN_ENDED;
    pthread_cond_broadcast(&plugin->changed);
    pthread_mutex_unlock(&plugin->lock);
}

static void end_main(struct df_plugin *plugin)
{
    set_ended(plugin);
    if (plugin->abandoned) /* no longer written to: it has ended */
        df_plugin_dispose(plugin);
}

static void *plugin_thread(void *argument)
{
    struct df_plugin *plugin = argument;
    df_plugin_become(plugin);
    plugin->load_error = plugin->run ? 0 : load(plugin);
    if (!plugin->load_error && plugin->object.main_moves) {
        begin_fiber(plugin);
        return NULL;
    }
    if (!plugin->load_error)
        plugin->status = run_main(plugin);
    end_main(plugin);
    return NULL;
}

/*
 * main's stack is ours and not libc's: after fork(2) the child's libc gives the stacks of threads
 * that are no more to new ones, and what main keeps in its frame for the file system's functions,
 * their userdata often, has to outlive it.
 */
static int make_stack(struct df_plugin *plugin)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, guard + STACK_SIZE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    plugin->stack = memory + guard;
    if (mprotect(plugin->stack, STACK_SIZE, PROT_READ | PROT_WRITE) == 0)
        return 0;
    int error = -errno;
    df_plugin_main_free_stack(plugin);
    return error;
}

int df_plugin_main_thread(pthread_t *thread, void *stack, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    if (stack)
        pthread_attr_setstack(&attributes, stack, STACK_SIZE);
    else
        pthread_attr_setstacksize(&attributes, STACK_SIZE);
    error = df_masked_thread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    return -error;
}

/* ---- a main that moves (docs/decisions/015) -------------------------------------------------- */

/* Main runs on this thread until it parks (false) or has returned (true). */
static bool run_fiber(struct df_plugin *plugin)
{
    struct df_program_place place = df_program_lift();
    struct df_plugin *before = df_plugin_become(plugin);
    bool ended = df_fiber_run(&plugin->fiber);
    df_plugin_become(before);
    df_program_land(place);
    return ended;
}

static void fiber_main(void *argument)
{
    struct df_plugin *plugin = argument;
    plugin->status = run_main(plugin);
}

void df_plugin_main_set_parked(struct df_plugin *plugin)
{
    if (atomic_fetch_or(&plugin->wake, DF_WAKE_PARKED) != 0)
        df_plugin_unpark(plugin); /* something was said meanwhile */
}

static void begin_fiber(struct df_plugin *plugin)
{
    df_fiber_init(&plugin->fiber, plugin->stack, STACK_SIZE, fiber_main, plugin);
    if (run_fiber(plugin))
        end_main(plugin);
    else
        df_plugin_main_set_parked(plugin);
}

/* From where it was parked to its end; the caller has taken it. */
static void continue_main(struct df_plugin *plugin)
{
    run_fiber(plugin);
    end_main(plugin);
}

static void *continuing_thread(void *argument)
{
    continue_main(argument);
    return NULL;
}

/* Under its lock. True: it was parked, and is the caller's to run. */
static bool take_parked(struct df_plugin *plugin)
{
    return atomic_fetch_and(&plugin->wake, ~(uint32_t)DF_WAKE_PARKED) & DF_WAKE_PARKED;
}

bool df_plugin_main_take(struct df_plugin *plugin)
{
    pthread_mutex_lock(&plugin->lock); /* or who unparks it has not noted the thread yet */
    bool taken = take_parked(plugin);
    pthread_mutex_unlock(&plugin->lock);
    return taken;
}

void df_plugin_park(struct df_plugin *plugin)
{
    if (!plugin->object.main_moves || plugin->has_parked)
        return;
    plugin->has_parked = true;
    struct df_program_place place = df_program_lift();
    df_fiber_leave(&plugin->fiber);
    df_program_land(place);
}

void df_plugin_unpark(struct df_plugin *plugin)
{
    if (plugin->pid != getpid())
        return; /* a child of fork(2): its main is the parent's */
    pthread_mutex_lock(&plugin->lock);
    bool taken = take_parked(plugin);
    int error = taken ? df_plugin_main_thread(&plugin->thread, NULL, continuing_thread, plugin) : 0;
    if (error)
        atomic_fetch_or(&plugin->wake, DF_WAKE_PARKED);
    pthread_mutex_unlock(&plugin->lock);
    if (error)
        df_plugin_log(plugin, "no thread can be made for the end of main(): it ends when it is "
                              "unmounted");
}

/* ---- for its owner ------------------------------------------------------------------------- */

/* A filter that refuses clone3(2) by an errno of its own stands in the way of any thread; with
 * ENOSYS libc would do without it. */
static void say_no_thread(struct df_plugin *plugin, int error)
{
    const bool none_left = error == -EAGAIN || error == -ENOMEM;
    char reason[DF_PLUGIN_REASON_SIZE];

    snprintf(reason, sizeof(reason), "%s: no thread can be made for it: %s%s", plugin->library,
             strerror(-error),
             none_left ? " (too many, or no memory)" : " (a seccomp filter forbids it, perhaps)");
    df_plugin_log(plugin, reason);
}

int df_plugin_main_start(struct df_plugin *plugin, pthread_t *thread)
{
    int error = make_stack(plugin);
    if (!error) /* a main that moves is a fiber on that stack */
        error = df_plugin_main_thread(thread, plugin->object.main_moves ? NULL : plugin->stack,
                                      plugin_thread, plugin);
    if (!error)
        return 0;
    if (plugin->stack)
        df_plugin_main_free_stack(plugin);
    say_no_thread(plugin, error);
    return error;
}

void df_plugin_main_finish(struct df_plugin *plugin, bool taken)
{
    if (taken)
        continue_main(plugin);
    else
        pthread_join(plugin->thread, NULL);
    df_plugin_main_free_stack(plugin);
}
