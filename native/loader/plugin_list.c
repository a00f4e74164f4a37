/*
 * plugin_list.c - the plugins of this process: whose code an address is, whom a line concerns, and
 * what a fork does to them all.
 */
#include <unistd.h>

#include "core/fork.h"
#include "loader/library.h"
#include "loader/plugin_private.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct df_plugin *list;      /* plugins whose main may run; under list_lock */
static struct df_plugin *lingering; /* plugins that have ended and linger; under list_lock */

/* ---- fork(2): no lock may be held by a thread that the child does not have, nor may an operation
 * that is about to log keep the fork waiting for its end ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next) {
        pthread_mutex_lock(&plugin->lock);
        pthread_mutex_lock(&plugin->log.lock);
    }
}

static void after_fork(void)
{
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next) {
        pthread_mutex_unlock(&plugin->log.lock);
        pthread_mutex_unlock(&plugin->lock);
    }
    pthread_mutex_unlock(&list_lock);
}

static void in_child(void)
{
    for (struct df_plugin *plugin = list; plugin; plugin = plugin->next)
        df_guest_after_fork(&plugin->guest);
    after_fork();
}

static void register_fork(void)
{
    static struct df_fork_listener listener = {before_fork, after_fork, in_child, NULL};

    df_fork_listen(&listener);
}

/* ---- the list ---- */

void df_plugin_enlist(struct df_plugin *plugin)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_fork);
    pthread_mutex_lock(&list_lock);
    plugin->next = list;
    list = plugin;
    pthread_mutex_unlock(&list_lock);
}

/* Under list_lock. */
static void remove_from(struct df_plugin **at, struct df_plugin *plugin)
{
    while (*at && *at != plugin)
        at = &(*at)->next;
    if (*at)
        *at = plugin->next;
}

void df_plugin_delist(struct df_plugin *plugin)
{
    pthread_mutex_lock(&list_lock);
    remove_from(&list, plugin);
    remove_from(&lingering, plugin);
    pthread_mutex_unlock(&list_lock);
}

void df_plugin_keep(struct df_plugin *plugin)
{
    pthread_mutex_lock(&list_lock);
    plugin->next = lingering;
    lingering = plugin;
    pthread_mutex_unlock(&list_lock);
}

void df_plugin_set_object(struct df_plugin *plugin, const struct df_object *object)
{
    pthread_mutex_lock(&list_lock);
    plugin->object = *object;
    pthread_mutex_unlock(&list_lock);
}

/* ---- all of them ---- */

struct df_plugin *df_plugin_of_code(const void *address)
{
    const void *map = df_library_map_of(address);
    struct df_plugin *plugin;
    pthread_mutex_lock(&list_lock);
    for (plugin = list; plugin; plugin = plugin->next)
        if (map && plugin->object.map == map)
            break;
    pthread_mutex_unlock(&list_lock);
    return plugin;
}

struct df_guest *df_plugin_guest_of_code(const void *address)
{
    struct df_plugin *plugin = df_plugin_of_code(address);
    return plugin ? &plugin->guest : NULL;
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
