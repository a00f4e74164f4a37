/*
 * watch.c - which objects of mounts are watched.
 */
#include "watch/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "watch/private.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* Half of what the process may have open: connections, and files of plugins, come first. */
static unsigned room(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 2 * (rlim_t)DF_OFD_COUNT)
        return DF_OFD_COUNT;
    return (unsigned)limit.rlim_cur / 2;
}

void df_watch_init(struct df_watcher *watcher, const char *shadow)
{
    memset(watcher, 0, sizeof(*watcher));
    watcher->shadow = shadow;
    watcher->at = -1;
    watcher->room = room();
    watcher->last = (uint64_t)df_clock(); /* no serial of an earlier server */
    pthread_mutex_init(&watcher->lock, NULL);
    for (unsigned i = 0; i < DF_WATCH_STRIPES; i++)
        pthread_mutex_init(&watcher->names[i], NULL);
    if (shadow)
        df_stand_leave_all(shadow);
}

/* Nobody else is left. Stand-ins go with the directory of the runs. */
void df_watch_free(struct df_watcher *watcher)
{
    for (unsigned i = 0; i < DF_WATCH_CHAINS; i++) {
        for (struct df_watch *one = watcher->watches[i], *next; one; one = next) {
            next = one->next;
            free(one);
        }
        while (watcher->files[i])
            df_watch_closed(watcher, watcher->files[i]->handle);
    }
    if (watcher->at >= 0)
        close(watcher->at);
    pthread_mutex_destroy(&watcher->lock);
    for (unsigned i = 0; i < DF_WATCH_STRIPES; i++)
        pthread_mutex_destroy(&watcher->names[i]);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct df_watch **place_of(struct df_watcher *watcher, int mount, uint64_t ino)
{
    struct df_watch **place = &watcher->watches[df_watch_hash(mount, ino) % DF_WATCH_CHAINS];

    while (*place && ((*place)->mount != mount || (*place)->ino != ino))
        place = &(*place)->next;
    return place;
}

struct df_watch *df_watch_find(struct df_watcher *watcher, int mount, uint64_t ino)
{
    return ino ? *place_of(watcher, mount, ino) : NULL;
}

struct df_watch *df_watch_find_directory(struct df_watcher *watcher, int mount, uint64_t ino)
{
    struct df_watch *watch = df_watch_find(watcher, mount, ino);

    return watch && watch->directory ? watch : NULL;
}

bool df_watch_change(struct df_watcher *watcher, int mount, const struct df_watch_spot *spot,
                     char path[])
{
    const struct df_watch *in = df_watch_find_directory(watcher, mount, spot->directory);

    watcher->changes++;
    if (in)
        df_stand_path(path, in->serial, spot->name);
    return in;
}

static int begin(struct df_watcher *watcher)
{
    if (watcher->at < 0)
        watcher->at = df_stand_begin(watcher->shadow);
    return watcher->at < 0 ? watcher->at : 0;
}

struct df_watch *df_watch_make(struct df_watcher *watcher, int mount, uint64_t ino, bool directory,
                               int *error)
{
    struct df_watch *watch = malloc(sizeof(*watch));
    struct df_watch **place = place_of(watcher, mount, ino);

    *error = watch ? begin(watcher) : -ENOMEM;
    if (*error == 0)
        *error = df_stand_make(watcher->at, ++watcher->last, directory);
    if (*error < 0) {
        free(watch);
        return NULL;
    }
    *watch = (struct df_watch){mount, ino, directory, watcher->last, 0, NULL};
    *place = watch;
    atomic_store(&watcher->used, 1);
    return watch;
}

void df_watch_drop(struct df_watcher *watcher, struct df_watch *watch)
{
    struct df_watch **place = place_of(watcher, watch->mount, watch->ino);

    *place = watch->next;
    df_stand_remove(watcher->at, watch->serial, watch->directory, ++watcher->last);
    free(watch);
}

static void drop_of(struct df_watcher *watcher, struct df_watch *watch, int mount)
{
    while (watch) {
        struct df_watch *next = watch->next;

        if (watch->mount == mount)
            df_watch_drop(watcher, watch);
        watch = next;
    }
}

void df_watch_unmounted(struct df_watcher *watcher, int mount)
{
    pthread_mutex_lock(&watcher->lock);
    for (unsigned i = 0; i < DF_WATCH_CHAINS; i++)
        drop_of(watcher, watcher->watches[i], mount);
    pthread_mutex_unlock(&watcher->lock);
}
