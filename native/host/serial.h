/*
 * serial.h - the lock of a file system that answers one operation at a time. A thread whose
 * operation calls into its own mount goes on under the lock that it has (decision 143). Where the
 * program has an event loop of its own, an operation waits for a turn first (turns.h).
 */
#ifndef DF_HOST_SERIAL_H
#define DF_HOST_SERIAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/on_stack.h"
#include "host/turns.h"

struct df_serial {
    pthread_mutex_t lock;
    _Atomic(const void *) owner; /* df_on_stack_here() of who has it, or NULL */
    unsigned depth;              /* the owner's: how many operations it is in */
    struct df_turns *turns;      /* of the program's own loop, not ours; NULL: it has none */
};

static inline void df_serial_init(struct df_serial *serial)
{
    pthread_mutex_init(&serial->lock, NULL);
    atomic_init(&serial->owner, NULL);
    serial->depth = 0;
    serial->turns = NULL;
}

static inline void df_serial_destroy(struct df_serial *serial)
{
    pthread_mutex_destroy(&serial->lock);
}

static inline bool df_serial_is_mine(const struct df_serial *serial)
{
    return atomic_load_explicit(&serial->owner, memory_order_relaxed) == df_on_stack_here();
}

static inline void df_serial_enter(struct df_serial *serial)
{
    if (!df_serial_is_mine(serial)) {
        if (serial->turns)
            df_turns_await(serial->turns);
        pthread_mutex_lock(&serial->lock);
        atomic_store_explicit(&serial->owner, df_on_stack_here(), memory_order_relaxed);
    }
    serial->depth++;
}

static inline void df_serial_leave(struct df_serial *serial)
{
    if (--serial->depth > 0)
        return;
    atomic_store_explicit(&serial->owner, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&serial->lock);
    if (serial->turns)
        df_turns_over(serial->turns);
}

#endif
