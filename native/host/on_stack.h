/*
 * on_stack.h - records that a lane keeps on its thread's stack, the innermost first: the path lane
 * of each operation under way, the node lane of each lock under which it asks the plugin. A program
 * that ends itself inside an operation never returns from it: the loader jumps out, and what lay on
 * the stack in between has to be forgotten, by whichever lane it is.
 */
#ifndef DF_HOST_ON_STACK_H
#define DF_HOST_ON_STACK_H

struct df_on_stack {
    struct df_on_stack *outer; /* of this or another mount: its plugin may have called us */
};

/* The innermost of this thread, of either kind. */
extern _Thread_local struct df_on_stack *df_ops_on_stack, *df_locks_on_stack;

static inline void df_on_stack_push(struct df_on_stack **list, struct df_on_stack *record)
{
    record->outer = *list;
    __asm__("" : "+r"(record)); /* gcc would warn where a function that pushes may return early */
    *list = record;
}

static inline void df_on_stack_pop(struct df_on_stack **list, const struct df_on_stack *record)
{
    *list = record->outer;
}

/* An address that only this thread has. */
static inline const void *df_on_stack_here(void)
{
    return &df_ops_on_stack;
}

/* Whoever jumps out of operations on this thread, over the stack from here to the object `landing`,
 * says so first: they have ended. */
void df_on_stack_cut(const void *landing);

#endif
