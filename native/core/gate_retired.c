/*
 * gate_retired.c - memory that readers may still see: freed when all that were inside have left.
 */
#include <pthread.h>

#include "core/gate_private.h"

#define RETIRE_BATCH 32 /* objects retired between two looks at who is inside */

/* Objects go from `fresh` to `waiting` to free(), first in, first out; one batch at a time. */
static pthread_mutex_t retire_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct df_retired *fresh;
static struct df_retired *waiting; /* free when every passage in df_thread.seen has ended */
static bool freeing;               /* a thread runs free() on the former `waiting` */
static uint64_t retired_count;     /* ever */

static bool all_have_left(void)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        if ((t->seen & 1) && atomic_load_explicit(&t->passage, memory_order_acquire) == t->seen)
            return false;
    return true;
}

/* Under retire_lock. */
static void fresh_to_waiting(void)
{
    waiting = fresh;
    fresh = NULL;
    df_gate_barrier();
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        t->seen = atomic_load(&t->passage);
}

static void free_list(struct df_retired *list)
{
    while (list) {
        struct df_retired *next = list->next;

        list->free(list);
        list = next;
    }
}

/* Under retire_lock, which is released while objects are freed. */
static void free_waiting(void)
{
    struct df_retired *list = waiting;

    waiting = NULL;
    freeing = true;
    pthread_mutex_unlock(&retire_lock);
    free_list(list);
    pthread_mutex_lock(&retire_lock);
    freeing = false;
}

/* Under retire_lock: frees what can be freed. */
static void advance(void)
{
    if (freeing)
        return;
    if (!waiting && fresh)
        fresh_to_waiting();
    if (waiting && all_have_left())
        free_waiting();
}

void df_gate_retire_nodes(struct df_retired *node, void (*free_fn)(struct df_retired *self),
                          unsigned count)
{
    uint64_t before;

    node->free = free_fn;
    pthread_mutex_lock(&retire_lock);
    node->next = fresh;
    fresh = node;
    before = retired_count;
    retired_count += count;
    if (before / RETIRE_BATCH != retired_count / RETIRE_BATCH)
        advance();
    pthread_mutex_unlock(&retire_lock);
}

void df_gate_retire_node(struct df_retired *node, void (*free_fn)(struct df_retired *self))
{
    df_gate_retire_nodes(node, free_fn, 1);
}

/* Under retire_lock: what is the owner's goes from *list to the front of `found`, its new value. */
static struct df_retired *take_owned(struct df_retired **list, df_gate_owns *owns,
                                     const void *owner, struct df_retired *found)
{
    while (*list) {
        struct df_retired *object = *list;

        if (!owns(object, owner)) {
            list = &object->next;
            continue;
        }
        *list = object->next;
        object->next = found;
        found = object;
    }
    return found;
}

void df_gate_reclaim(df_gate_owns *owns, const void *owner)
{
    pthread_mutex_lock(&retire_lock);
    while (freeing) { /* the owner's, perhaps */
        pthread_mutex_unlock(&retire_lock);
        df_gate_pause();
        pthread_mutex_lock(&retire_lock);
    }
    struct df_retired *found = take_owned(&waiting, owns, owner, NULL);
    found = take_owned(&fresh, owns, owner, found);
    pthread_mutex_unlock(&retire_lock);
    free_list(found);
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* A thread that was freeing does not exist in the child: what it had in hand stays. */
void df_gate_forget_freeing(void)
{
    freeing = false;
}

void df_gate_lock(void)
{
    pthread_mutex_lock(&retire_lock);
}

void df_gate_unlock(void)
{
    pthread_mutex_unlock(&retire_lock);
}
