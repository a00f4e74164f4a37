/*
 * on_stack.c - the records of operations under way on this thread; see on_stack.h.
 */
#include "host/on_stack.h"

#include <stdint.h>

_Thread_local struct df_on_stack *df_on_stack;

/* An operation further out may be on another stack (a main that moves): only what is between. */
void df_on_stack_cut(const void *landing)
{
    const char here = 0;

    while ((uintptr_t)df_on_stack > (uintptr_t)&here && (uintptr_t)df_on_stack < (uintptr_t)landing)
        df_on_stack = df_on_stack->outer;
}
