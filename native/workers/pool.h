/*
 * pool.h - the server's worker threads: who takes which slot, and when there are more of them.
 *
 * Each takes submitted slots and serves them one after the other. There is always one more than
 * are busy, up to one for each slot: an op that blocks blocks nobody else.
 */
#ifndef DF_WORKERS_POOL_H
#define DF_WORKERS_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "channel/layout.h"
#include "core/call.h"
#include "workers/aside.h"
#include "workers/distance.h"

/* Serves the slot's message: fills in result and what belongs to it. Any worker thread. */
typedef void df_pool_serve(void *arg, struct df_slot *slot, struct df_area *area);

/* Nobody waits for the answer that was given: its client has given up, or is gone. */
typedef void df_pool_unheard(void *arg, struct df_slot *slot);

struct df_pool;

struct df_worker {
    struct df_pool *pool;
    uint32_t index; /* of its doorbell; this and pool are fixed while it runs */
    bool used;      /* under pool->lock */
    void *landing;  /* df_pool_landing(); NULL: not asked for yet. Its own */
};

/* Who in a plugin is told of the client's signals (df_call_signals of core/call.h). */
struct df_hearer {
    df_call_tell *tell; /* NULL: nobody */
    void *data;
    bool listens; /* tell() runs, without the lock: it may wait for other ops */
};

struct df_pool {
    struct df_segment *segment; /* this to arg: fixed */
    df_pool_serve *serve;
    df_pool_unheard *unheard; /* may be NULL */
    void *arg;

    _Atomic uint32_t idle;  /* workers that look for something to do, or sleep */
    _Atomic uint32_t worth; /* ticks >> 6 that a worker's spin is worth at present (spin.h) */
    _Atomic uint64_t since; /* ticks at which the last wait of any worker began */
    struct df_aside aside;
    struct df_distance distance; /* to clients */
    _Atomic bool stopping;
    _Atomic bool signalled[DF_SLOT_COUNT]; /* a signal came for the op that runs in the slot */

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t ended; /* a worker has ended */
    pthread_cond_t told;  /* a hearer listens no more */
    uint32_t count;       /* workers there are */
    struct df_worker workers[DF_WORKER_COUNT];
    pthread_t sleepers[DF_SLOT_COUNT]; /* workers in an op that a signal shall interrupt */
    bool sleeping[DF_SLOT_COUNT];
    struct df_hearer hearers[DF_SLOT_COUNT];
};

/* 0 or -errno: not one thread could be made. */
int df_pool_start(struct df_pool *pool, struct df_segment *segment, df_pool_serve *serve,
                  df_pool_unheard *unheard, void *arg);

/* Ends the workers; waits for what they are at. */
void df_pool_stop(struct df_pool *pool);

/* Around an op that sleeps in the core: when the client has a signal in the meantime, or the pool
 * stops, the worker gets DF_POOL_SIGNAL, and the op ends with -EINTR. Both are false if the pool
 * stops: then there is no op to be made, or it has been ended. */
bool df_pool_sleep_begin(struct df_pool *pool, const struct df_slot *slot);
bool df_pool_sleep_end(struct df_pool *pool, const struct df_slot *slot);

/* The client has a signal, or waits for the slot's answer no more: its op is told. */
void df_pool_signal(struct df_pool *pool, uint32_t slot);

/* Whether signals of the process whose call the calling thread is in are told to hosts; they are
 * unless it is for everybody what is done now. Returns what was. */
bool df_pool_hear(bool hears);

/* Memory of the calling worker, of DF_PAYLOAD_SIZE bytes, for what is written to a payload in one
 * go afterwards (channel/past.h). NULL: this is no worker, or there is no memory. */
void *df_pool_landing(void);

/* Number of workers that are in such an op now. */
uint32_t df_pool_sleeping(struct df_pool *pool);

/* The signal's handler does nothing; it is set by df_pool_start. */
#define DF_POOL_SIGNAL SIGURG

#endif
