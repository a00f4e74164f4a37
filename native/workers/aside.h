/*
 * aside.h - a worker makes way for the client that it would spin for.
 *
 * A worker sleeps where its client runs: the one runs when the other sleeps, so waking it is a
 * switch (3 us) and needs nobody else. Another processor may be asleep, and waking that is 5 us, or
 * 100 where a host has to; or another program has begun with it, which keeps it for milliseconds.
 *
 * But there nobody can spin, and every trip is two switches. So a worker goes to another processor
 * when they have cost half as much, since the client asked for nothing for a while, as going there
 * does: whatever comes, it is a few times what knowing that would have cost. A move that did not
 * pay, for the client had nothing more to ask, makes the next dearer; a row of trips for which one
 * would have paid, cheaper (docs/decisions/144).
 */
#ifndef DF_WORKERS_ASIDE_H
#define DF_WORKERS_ASIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a pool. All zero at first. Lost updates do no harm. */
struct df_aside {
    _Atomic uint32_t spent;  /* ticks that switches have cost since the last pause of the client */
    _Atomic uint32_t price;  /* ticks that a move costs, as the last few have */
    _Atomic uint32_t failed; /* times that the price doubles: moves in vain, less rows without one
                                that would have paid */
};

/* A wait at the client's processor is over, which was short: the thread runs `late` ticks after it
 * was wanted, and the client will as late. Or it was a pause. */
void df_aside_spend(struct df_aside *aside, uint64_t late);
void df_aside_pause(struct df_aside *aside);

/* The calling thread leaves that processor, if it may run on another and it is time to. True: it
 * runs elsewhere. */
bool df_aside_step(struct df_aside *aside, uint32_t cpu);

/* What a move has led to. */
void df_aside_learn(struct df_aside *aside, bool paid);

/* Before the calling thread, which runs on `cpu`, sleeps: it goes to the processor of the client
 * that it has served last, if it may run there. True: it has gone. */
bool df_aside_return(uint32_t cpu, uint32_t client_cpu);

#endif
