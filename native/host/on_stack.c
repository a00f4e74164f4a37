/*
 * on_stack.c - the records of what is under way on this thread; see on_stack.h.
 */
#include "host/on_stack.h"

_Thread_local struct df_on_stack *df_ops_on_stack, *df_locks_on_stack;

static void cut(struct df_on_stack **list, const char *here, const char *landing)
{
    while ((const char *)*list > here && (const char *)*list < landing)
        *list = (*list)->outer;
}

/* An operation further out may be on another stack (a main that moves): only what is between. */
void df_on_stack_cut(const void *landing)
{
    const char here = 0;

    cut(&df_ops_on_stack, &here, landing);
    cut(&df_locks_on_stack, &here, landing);
}
