/*
 * mounted.c - the list of the mounts that this process has made.
 */
#include "api/mounted.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and its items */
static struct df_mounted *list;                               /* newest first */

void df_mounted_lock(void)
{
    pthread_mutex_lock(&list_lock);
}

void df_mounted_unlock(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* ---- fork ---------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Who was unmounting does not exist in the child. */
static void in_child(void)
{
    for (struct df_mounted *m = list; m; m = m->next)
        m->unmounting = false;
    df_mounted_unlock();
}

static void register_fork(void)
{
    pthread_atfork(df_mounted_lock, df_mounted_unlock, in_child);
}

/* ---- the list ------------------------------------------------------------------------------ */

void df_mounted_add(struct df_mounted *mounted)
{
    pthread_once(&once, register_fork);
    df_mounted_lock();
    mounted->pid = getpid();
    mounted->next = list;
    list = mounted;
    df_mounted_unlock();
}

struct df_mounted *df_mounted_find(int id)
{
    for (struct df_mounted *m = list; m; m = m->next)
        if (m->id == id)
            return m;
    return NULL;
}

struct df_mounted *df_mounted_claim(int id, int *error)
{
    struct df_mounted *mounted;

    df_mounted_lock();
    mounted = df_mounted_find(id);
    *error = mounted && mounted->unmounting ? -EBUSY : 0;
    if (*error < 0)
        mounted = NULL;
    if (mounted)
        mounted->unmounting = true;
    df_mounted_unlock();
    return mounted;
}

void df_mounted_give_up(struct df_mounted *mounted)
{
    df_mounted_lock();
    mounted->unmounting = false;
    df_mounted_unlock();
}

void df_mounted_remove(struct df_mounted *mounted)
{
    struct df_mounted **at = &list;

    df_mounted_lock();
    while (*at != mounted)
        at = &(*at)->next;
    *at = mounted->next;
    df_mounted_unlock();
    df_mounted_free(mounted);
}

void df_mounted_free(struct df_mounted *mounted)
{
    if (mounted->counters)
        df_count_drop(mounted->counters);
    free(mounted);
}

int df_mounted_newest(void)
{
    int id = 0;

    df_mounted_lock();
    for (struct df_mounted *m = list; m && id == 0; m = m->next)
        if (!m->unmounting && m->pid == getpid())
            id = m->id;
    df_mounted_unlock();
    return id;
}
