/*
 * gate_retired.c - memory that readers may still see: freed when all that were inside have left.
 */
#include <pthread.h>

#include "core/gate_private.h"

#define RETIRE_BATCH 32 /* objects retired between two looks at who is inside */

/* Objects go from `fresh` to `waiting` to free(), first in, first out; one batch at a time. */
struct queue {
    struct df_retired *fresh;
    struct df_retired *waiting; /* free when every passage in df_thread.seen[kind] has ended */
    bool freeing;               /* a thread runs free() on the former `waiting` */
    uint64_t count;             /* retired ever */
};

static pthread_mutex_t retire_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct queue queues[DF_RETIRED_KINDS];

static bool has_left(const struct df_thread *t, enum df_retired_kind kind)
{
    return !(t->seen[kind] & 1) ||
           atomic_load_explicit(&t->passage, memory_order_acquire) != t->seen[kind] ||
           (kind == DF_RETIRED_NODES && atomic_load_explicit(&t->rests, memory_order_acquire));
}

static bool all_have_left(enum df_retired_kind kind)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        if (!has_left(t, kind))
            return false;
    return true;
}

/* Under retire_lock. */
static void fresh_to_waiting(enum df_retired_kind kind)
{
    struct queue *q = &queues[kind];

    q->waiting = q->fresh;
    q->fresh = NULL;
    df_gate_barrier();
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        t->seen[kind] = atomic_load(&t->passage);
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
static void free_waiting(struct queue *q)
{
    struct df_retired *list = q->waiting;

    q->waiting = NULL;
    q->freeing = true;
    pthread_mutex_unlock(&retire_lock);
    free_list(list);
    pthread_mutex_lock(&retire_lock);
    q->freeing = false;
}

/* Under retire_lock: frees what can be freed. */
static void advance(enum df_retired_kind kind)
{
    struct queue *q = &queues[kind];

    if (q->freeing)
        return;
    if (!q->waiting && q->fresh)
        fresh_to_waiting(kind);
    if (q->waiting && all_have_left(kind))
        free_waiting(q);
}

static void retire(enum df_retired_kind kind, struct df_retired *object,
                   void (*free_fn)(struct df_retired *self), unsigned count)
{
    struct queue *q = &queues[kind];
    uint64_t before;

    object->free = free_fn;
    pthread_mutex_lock(&retire_lock);
    object->next = q->fresh;
    q->fresh = object;
    before = q->count;
    q->count += count;
    if (before / RETIRE_BATCH != q->count / RETIRE_BATCH)
        advance(kind);
    pthread_mutex_unlock(&retire_lock);
}

void df_gate_retire(struct df_retired *node, void (*free_fn)(struct df_retired *self))
{
    retire(DF_RETIRED_ANY, node, free_fn, 1);
}

void df_gate_retire_nodes(struct df_retired *node, void (*free_fn)(struct df_retired *self),
                          unsigned count)
{
    retire(DF_RETIRED_NODES, node, free_fn, count);
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

static void reclaim_from(struct queue *q, df_gate_owns *owns, const void *owner)
{
    pthread_mutex_lock(&retire_lock);
    while (q->freeing) { /* the owner's, perhaps */
        pthread_mutex_unlock(&retire_lock);
        df_gate_pause();
        pthread_mutex_lock(&retire_lock);
    }
    struct df_retired *found = take_owned(&q->waiting, owns, owner, NULL);
    found = take_owned(&q->fresh, owns, owner, found);
    pthread_mutex_unlock(&retire_lock);
    free_list(found);
}

void df_gate_reclaim(df_gate_owns *owns, const void *owner)
{
    for (enum df_retired_kind kind = DF_RETIRED_ANY; kind < DF_RETIRED_KINDS; kind++)
        reclaim_from(&queues[kind], owns, owner);
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* A thread that was freeing does not exist in the child: what it had in hand stays. */
void df_gate_forget_freeing(void)
{
    for (enum df_retired_kind kind = DF_RETIRED_ANY; kind < DF_RETIRED_KINDS; kind++)
        queues[kind].freeing = false;
}

void df_gate_lock(void)
{
    pthread_mutex_lock(&retire_lock);
}

void df_gate_unlock(void)
{
    pthread_mutex_unlock(&retire_lock);
}
