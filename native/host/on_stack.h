/*
 * on_stack.h - records that a lane keeps on its thread's stack for each operation under way, the
 * innermost first. A program that ends itself inside an operation never returns from it: the loader
 * jumps out, and what lay on the stack in between has to be forgotten, by whichever lane it is.
 */
#ifndef DF_HOST_ON_STACK_H
#define DF_HOST_ON_STACK_H

struct df_on_stack {
    struct df_on_stack
        *outer; /* of the operation whose plugin called us, on this or another mount */
};

extern _Thread_local struct df_on_stack *df_on_stack; /* innermost of this thread */

static inline void df_on_stack_push(struct df_on_stack *record)
{
    record->outer = df_on_stack;
    df_on_stack = record;
}

static inline void df_on_stack_pop(const struct df_on_stack *record)
{
    df_on_stack = record->outer;
}

/* Whoever jumps out of operations on this thread, over the stack from here to the object `landing`,
 * says so first: they have ended. */
void df_on_stack_cut(const void *landing);

#endif
