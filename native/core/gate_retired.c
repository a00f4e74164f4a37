/*
 * gate_retired.c - memory that readers may still see: freed when all that were inside have left.
 */
#include <assert.h>
#include <pthread.h>

#include "core/gate_private.h"

#define RETIRE_BATCH 32 /* objects retired between two looks at who is inside */

/* Objects go from `fresh` to `waiting` to free(), first in, first out; one batch at a time. */
static pthread_mutex_t retire_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct df_retired *fresh;
static struct df_retired *waiting; /* free when every passage in df_thread.seen has ended */
static bool freeing;               /* a thread runs free() on the former `waiting` */
static uint64_t retired_count;     /* ever */
static uint64_t waiting_until;     /* value of retired_count when `waiting` was fresh */
static uint64_t freed_until;       /* all objects up to this count have been freed */

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
    waiting_until = retired_count;
    fresh = NULL;
    df_gate_barrier();
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        t->seen = atomic_load(&t->passage);
}

/* Under retire_lock, which is released while objects are freed. */
static void free_waiting(void)
{
    struct df_retired *list = waiting;

    waiting = NULL;
    freeing = true;
    pthread_mutex_unlock(&retire_lock);
    while (list) {
        struct df_retired *next = list->next;

        list->free(list);
        list = next;
    }
    pthread_mutex_lock(&retire_lock);
    freeing = false;
    freed_until = waiting_until;
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

void df_gate_drain(void)
{
    uint64_t until;

    assert(!df_gate_self || df_gate_self->depth == 0);
    pthread_mutex_lock(&retire_lock);
    until = retired_count;
    for (advance(); freed_until < until; advance()) {
        pthread_mutex_unlock(&retire_lock);
        df_gate_pause();
        pthread_mutex_lock(&retire_lock);
    }
    pthread_mutex_unlock(&retire_lock);
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* A thread that was freeing does not exist in the child: what it had in hand stays. */
void df_gate_forget_freeing(void)
{
    if (freeing)
        freed_until = waiting_until;
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
