/*
 * wake.h - who waits for a file to become ready: what a file system is given to say that it may be
 * (ops.h, poll). Each wake serves once.
 */
#ifndef DF_CORE_WAKE_H
#define DF_CORE_WAKE_H

#include <stdbool.h>

struct df_wake;

struct df_wake_kind {
    void (*wake)(struct df_wake *wake);          /* any thread; consumes it */
    void (*drop)(struct df_wake *wake);          /* consumes it without a word */
    bool (*is_over)(const struct df_wake *wake); /* nobody waits for it any more, nor will */
};

/* The start of whatever a waiter has. */
struct df_wake {
    const struct df_wake_kind *kind;
    bool always; /* it waits for the next notification, also where something is ready already */
};

#endif
