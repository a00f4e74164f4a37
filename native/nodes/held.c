/*
 * held.c - waiting for the lock of a node, unless it is this thread's own.
 */
#include "nodes/held.h"

#include <errno.h>

static const struct df_node_held *find(const struct df_node_lock *lock)
{
    const struct df_on_stack *record = df_locks_on_stack;

    while (record && ((const struct df_node_held *)record)->lock != lock)
        record = record->outer;
    return (const struct df_node_held *)record;
}

/* Who shares a lock shares it once more, past those who wait until it gives it back. */
int df_node_held_wait(struct df_nodes *nodes, struct df_node_lock *lock, bool shared)
{
    const struct df_node_held *own = find(lock);

    if (own)
        return shared && own->shared && df_node_trylock_shared(lock) ? 0 : -EDEADLK;
    if (nodes->source->delays && nodes->source->delays(nodes))
        return -EDEADLK;
    df_node_lock_as(lock, shared);
    return 0;
}
