/*
 * held.h - the locks of nodes that a thread has while it asks the plugin. A plugin that calls into
 * its own mount inside of an operation would wait for its own thread for ever: such a call is
 * refused with EDEADLK (decision 143). The list lies on the thread's stack and is looked at only by
 * who would have to wait.
 */
#ifndef DF_NODES_HELD_H
#define DF_NODES_HELD_H

#include "host/on_stack.h"
#include "nodes/node.h"

/* One of them. Given back in the reverse order. */
struct df_node_held {
    struct df_on_stack stacked; /* first */
    struct df_node_lock *lock;
    bool shared;
};

/* The lock is somebody's: waits for it, without entering it in the list. 0 or -EDEADLK. */
int df_node_held_wait(struct df_nodes *nodes, struct df_node_lock *lock, bool shared);

/* Takes the lock until df_node_held_give(). 0; or -EDEADLK: it is this thread's, or that of one
 * that waits for it. */
static inline int df_node_held_take(struct df_node_held *held, struct df_nodes *nodes,
                                    struct df_node_lock *lock, bool shared)
{
    if (DF_UNLIKELY(!(shared ? df_node_trylock_politely(lock) : df_node_trylock(lock)))) {
        int result = df_node_held_wait(nodes, lock, shared);

        if (result < 0)
            return result;
    }
    held->lock = lock;
    held->shared = shared;
    df_on_stack_push(&df_locks_on_stack, &held->stacked);
    return 0;
}

static inline void df_node_held_give(struct df_node_held *held)
{
    df_on_stack_pop(&df_locks_on_stack, &held->stacked);
    df_node_unlock_as(held->lock, held->shared);
}

#endif
