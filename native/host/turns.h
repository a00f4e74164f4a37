/*
 * turns.h - turns of a program that has an event loop of its own, in which requests are one kind of
 * event among others. Such a program has one thread and no locks: between two requests it does as
 * it likes with what its operations use. So an operation, which runs on its caller's thread, waits
 * until the loop gives it a turn, and the loop waits until the turn is over.
 *
 *   caller: df_turns_await()  --- descriptor is readable --->  loop: receives, df_turns_give()
 *           ... operation ...                                        ... waits ...
 *           df_turns_over()   ------------------------------------>  goes on
 *
 * An operation that answers later gives its turn back when its function returns, as with libfuse.
 */
#ifndef DF_HOST_TURNS_H
#define DF_HOST_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

struct df_turns;

/* fd: an eventfd(2) with EFD_SEMAPHORE, which is theirs from now on; -1: they make one that can be
 * read once. NULL, with errno: no memory, no descriptors; fd stays the caller's. */
DF_PRIVATE_EXPORT struct df_turns *df_turns_new(int fd);
DF_PRIVATE_EXPORT void df_turns_free(struct df_turns *turns);

/* Readable while somebody waits, by one for each, and for ever once they have ended. */
DF_PRIVATE_EXPORT int df_turns_fd(const struct df_turns *turns);

/* ---- for callers ---- */

/* Waits for a turn. At once on the thread of the loop, which has them all, and at their end. */
void df_turns_await(struct df_turns *turns);

/* The caller's turn is over. */
void df_turns_over(struct df_turns *turns);

/* One who waits for an answer that comes later, on his own stack: until `word`, a futex, is no
 * longer `awaited`. */
struct df_turns_late {
    _Atomic uint32_t *word;
    uint32_t awaited, deserted;
    struct df_turns_late *next; /* under the lock of the turns */
};

/* From now on it may become `deserted`: at once, where the loop will handle no more events. */
void df_turns_late(struct df_turns *turns, struct df_turns_late *late);
void df_turns_late_over(struct df_turns *turns, struct df_turns_late *late);

/* ---- for the loop ---- */

/* This thread is the loop's. (Of several threads, the last that says so.) */
DF_PRIVATE_EXPORT void df_turns_take(struct df_turns *turns);

/* Gives a turn to one who waits, if anybody does, and returns when that is over. */
DF_PRIVATE_EXPORT void df_turns_give(struct df_turns *turns);

/* The loop is left, for good: it handles no event any more that would bring an answer. Turns are to
 * be given on. */
void df_turns_desert(struct df_turns *turns);

/* Gives turns until they have ended. */
void df_turns_give_all(struct df_turns *turns);

/* Nobody waits for a turn from now on: nothing is served any more. Any thread. */
DF_PRIVATE_EXPORT void df_turns_end(struct df_turns *turns);
DF_PRIVATE_EXPORT bool df_turns_ended(struct df_turns *turns);

#endif
