/*
 * pollhandle.c - who waits for an open file's readiness, and the handles that plugins notify by.
 */
#include "host/pollhandle.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/ops.h"

struct df_pollnode {
    _Atomic unsigned refs; /* the file, and each handle */
    pthread_mutex_t lock;  /* protects what follows */
    unsigned seen;         /* notifications */
    unsigned count, room;
    struct df_wake **wakes;
};

struct fuse_pollhandle {
    struct df_pollnode *node;
};

static void put(struct df_pollnode *node)
{
    if (atomic_fetch_sub(&node->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&node->lock);
    free(node->wakes);
    free(node);
}

struct df_pollnode *df_pollnode_of(_Atomic(void *) *slot)
{
    void *found = atomic_load(slot);

    if (found)
        return found;
    struct df_pollnode *node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    atomic_init(&node->refs, 1);
    pthread_mutex_init(&node->lock, NULL);
    if (atomic_compare_exchange_strong(slot, &found, node))
        return node;
    put(node);
    return found;
}

/* Takes all wakes out under the lock and wakes them outside: a wake may lead back here. */
static void notify(struct df_pollnode *node)
{
    pthread_mutex_lock(&node->lock);
    struct df_wake **wakes = node->wakes;
    unsigned count = node->count;
    node->seen++;
    node->wakes = NULL;
    node->count = node->room = 0;
    pthread_mutex_unlock(&node->lock);
    for (unsigned i = 0; i < count; i++)
        df_wake(wakes[i]);
    free(wakes);
}

void df_pollnode_release(struct df_pollnode *node)
{
    if (!node)
        return;
    notify(node);
    put(node);
}

struct fuse_pollhandle *df_pollnode_handle(struct df_pollnode *node)
{
    struct fuse_pollhandle *handle = malloc(sizeof(*handle));

    if (!handle)
        return NULL;
    atomic_fetch_add(&node->refs, 1);
    handle->node = node;
    return handle;
}

unsigned df_pollnode_seen(struct df_pollnode *node)
{
    pthread_mutex_lock(&node->lock);
    unsigned seen = node->seen;
    pthread_mutex_unlock(&node->lock);
    return seen;
}

/* Under the lock. Those of polls whose time has run out are still there: without this, a file that
 * is never ready would collect them. */
static void drop_over(struct df_pollnode *node)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < node->count; i++)
        if (!df_wake_drop_over(node->wakes[i]))
            node->wakes[kept++] = node->wakes[i];
    node->count = kept;
}

/* Under the lock. */
static bool append(struct df_pollnode *node, struct df_wake *wake)
{
    if (node->count == node->room)
        drop_over(node);
    if (node->count == node->room) {
        unsigned room = node->room ? 2 * node->room : 4;
        void *wakes = realloc(node->wakes, room * sizeof(node->wakes[0]));
        if (!wakes)
            return false;
        node->wakes = wakes;
        node->room = room;
    }
    node->wakes[node->count++] = wake;
    return true;
}

void df_pollnode_wait(struct df_pollnode *node, struct df_wake *wake, unsigned seen)
{
    pthread_mutex_lock(&node->lock);
    bool waits = node->seen == seen && append(node, wake);
    pthread_mutex_unlock(&node->lock);
    if (!waits)
        df_wake(wake);
}

int df_pollhandle_notify(struct fuse_pollhandle *handle)
{
    notify(handle->node);
    return 0;
}

void df_pollhandle_destroy(struct fuse_pollhandle *handle)
{
    if (!handle)
        return;
    put(handle->node);
    free(handle);
}
