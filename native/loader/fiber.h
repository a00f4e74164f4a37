/*
 * fiber.h - a function on a stack of its own that one thread can leave in the middle and another
 * enter again. What is on the stack must not depend on the thread: addresses of thread-local
 * variables (errno!), locks that know their owner.
 */
#ifndef DF_LOADER_FIBER_H
#define DF_LOADER_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct df_fiber {
    void (*function)(void *argument);
    void *argument;
    char *stack; /* its lowest byte; the maker's, until the fiber has ended */
    size_t size; /* bytes */
    bool ended;
    ucontext_t inside;  /* where the fiber goes on */
    ucontext_t outside; /* where the thread goes on that runs it */
    void *state[2];     /* for sanitizers: the fiber's, and that of the thread that runs it */
    const void *thread_stack;
    size_t thread_stack_size;
};

/* function(argument) will run on stack with the signal mask of the calling thread, whoever runs
 * it. The fiber must not be copied. */
void df_fiber_init(struct df_fiber *fiber, char *stack, size_t size, void (*function)(void *),
                   void *argument);

/* Runs it on this thread until it leaves (false) or its function returns (true: not again). */
bool df_fiber_run(struct df_fiber *fiber);

/* For the function: back to whoever runs it. Returns when the fiber is run again, perhaps on
 * another thread. */
void df_fiber_leave(struct df_fiber *fiber);

#endif
