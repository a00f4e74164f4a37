/*
 * aside.h - a worker makes way for the client that it would spin for.
 *
 * The scheduler likes to wake a worker on the processor of the client that rang, and leaves it
 * there: the one runs when the other sleeps, so there is never too much to run in one place. But
 * then nobody can spin, and every trip is two switches (8 us in place of 1). So a worker that finds
 * itself there goes to another processor, as long as that paid in hindsight: it did not when the
 * client had nothing more to ask, or the other processor was busy.
 *
 * Where other programs want all processors it is the other way round: who wakes up on a processor
 * that another one has begun to use waits for milliseconds, and a worker and a client that take
 * turns on one processor leave nobody a moment to begin. So a worker that is about to sleep goes to
 * its client's.
 */
#ifndef DF_SERVER_ASIDE_H
#define DF_SERVER_ASIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a pool. All zero at first. Lost updates do no harm. */
struct df_aside {
    _Atomic uint32_t rest;  /* waits for which nobody moves any more */
    _Atomic uint32_t pause; /* what `rest` becomes when the next move does not pay */
    _Atomic uint32_t
        crowded; /* waits for which the processors are believed to be wanted by others */
};

/* The calling thread leaves that processor, if it may run on another and it is time to try. True:
 * it runs elsewhere. */
bool df_aside_step(struct df_aside *aside, uint32_t cpu);

/* What a move has led to. */
void df_aside_learn(struct df_aside *aside, bool paid);

/* A wait. wanted: somebody else had the processor, while the thread spun or was to wake up. */
void df_aside_notice(struct df_aside *aside, bool wanted);

/* Before the calling thread, which runs on `cpu`, sleeps: it goes to the processor of the client
 * that it has served last if the processors are wanted by others and it may run there. True: it
 * has gone. */
bool df_aside_return(struct df_aside *aside, uint32_t cpu, uint32_t client_cpu);

#endif
