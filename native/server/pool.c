/*
 * pool.c - worker threads: taking slots, spinning, sleeping, growing.
 *
 * A slot is never left lying: who submits it sets its bit, then looks whether anybody spins or
 * sleeps; a worker says that it does neither any more before it takes a slot, and looks for further
 * ones after that. See channel/link.c for the other half.
 */
#include "server/pool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "channel/link.h"
#include "channel/sys.h"

#define STACK_SIZE   (1 << 20) /* bytes; a plugin's functions run on it */
#define IDLE_MAX     4         /* workers that may sleep; more of them end after a while */
#define IDLE_NS      INT64_C(5000000000)
#define BUDGET_START 512 /* ticks >> 6: about 13 us */
#define BUDGET_MIN   32
#define BUDGET_MAX   2048

/* ---- taking ---------------------------------------------------------------------------------- */

static bool any_pending(struct df_segment *segment)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++)
        if (atomic_load(&segment->pending[i]) != 0 || atomic_load(&segment->signals[i]) != 0)
            return true;
    return false;
}

/* Clears the lowest bit that is set in word i; -1: none. */
static int take_bit(_Atomic uint64_t *words, unsigned i)
{
    uint64_t bits = atomic_load_explicit(&words[i], memory_order_relaxed);

    while (bits != 0) {
        uint64_t lowest = bits & -bits;

        if (atomic_fetch_and(&words[i], ~lowest) & lowest)
            return (int)(i * 64) + __builtin_ctzll(lowest);
        bits = atomic_load(&words[i]);
    }
    return -1;
}

/* Interrupts the worker that sleeps for the slot's client. */
static void pass_signal(struct df_pool *pool, int index)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->sleeping[index])
        pthread_kill(pool->sleepers[index], DF_POOL_SIGNAL);
    pthread_mutex_unlock(&pool->lock);
}

/* A submitted slot, now running; NULL: there is none. */
static struct df_slot *take(struct df_pool *pool)
{
    struct df_segment *segment = pool->segment;
    int index;

    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++) {
        while ((index = take_bit(segment->signals, i)) >= 0)
            pass_signal(pool, index);
        while ((index = take_bit(segment->pending, i)) >= 0) {
            struct df_slot *slot = &df_segment_slots(segment)[index];
            uint32_t word = atomic_load(&slot->word);
            uint32_t running = df_slot_word(df_slot_client(word), DF_SLOT_RUNNING);

            if (df_slot_state(word) == DF_SLOT_SUBMITTED &&
                atomic_compare_exchange_strong(&slot->word, &word, running))
                return slot;
        }
    }
    return NULL;
}

/* The reply is complete. Nobody waits for it any more: then the slot is free again. */
static void give_back(struct df_pool *pool, struct df_slot *slot)
{
    uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint32_t done = df_slot_word(df_slot_client(word), DF_SLOT_DONE);

    if (df_slot_state(word) != DF_SLOT_RUNNING ||
        !atomic_compare_exchange_strong(&slot->word, &word, done)) {
        if (pool->unheard)
            pool->unheard(pool->arg, slot);
        df_link_release(pool->segment, slot);
        return;
    }
    if (atomic_load(&slot->waiting))
        df_sys_wake(&slot->word, 1);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void learn(struct df_pool *pool, uint32_t budget, bool success)
{
    budget = success ? budget + budget / 8 : budget - budget / 4;
    if (budget < BUDGET_MIN)
        budget = BUDGET_MIN;
    if (budget > BUDGET_MAX)
        budget = BUDGET_MAX;
    atomic_store_explicit(&pool->budget, budget, memory_order_relaxed);
}

/* One worker spins at a time. True: there is something. */
static bool spin(struct df_pool *pool)
{
    struct df_segment *segment = pool->segment;
    uint32_t nobody = 0;
    uint32_t budget = atomic_load_explicit(&pool->budget, memory_order_relaxed);
    uint64_t begin = df_sys_ticks();
    bool success = false;

    if (segment->cpus < 2 || !atomic_compare_exchange_strong(&segment->spinning, &nobody, 1))
        return false;
    do {
        success = any_pending(segment);
        df_sys_relax();
    } while (!success && df_sys_ticks() - begin < (uint64_t)budget << 6);
    atomic_store(&segment->spinning, 0);
    learn(pool, budget, success);
    return success || any_pending(segment);
}

static bool may_end(struct df_pool *pool)
{
    return atomic_load(&pool->idle) > IDLE_MAX;
}

/* Until there is something, or the pool stops. False: this worker is one too many. */
static bool await(struct df_pool *pool)
{
    struct df_segment *segment = pool->segment;
    bool stay = true;

    if (spin(pool))
        return true;
    atomic_fetch_add(&segment->asleep, 1);
    for (;;) {
        uint32_t rings = atomic_load(&segment->doorbell);

        if (any_pending(segment) || atomic_load(&pool->stopping))
            break;
        if (df_sys_wait(&segment->doorbell, rings, IDLE_NS) == -ETIMEDOUT && may_end(pool)) {
            stay = false;
            break;
        }
    }
    atomic_fetch_sub(&segment->asleep, 1);
    return stay || any_pending(segment);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void *work(void *argument);

static bool add_worker(struct df_pool *pool)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool made = false;

    pthread_mutex_lock(&pool->lock);
    if (pool->count < DF_POOL_MAX && !atomic_load(&pool->stopping) &&
        pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK_SIZE);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        atomic_fetch_add(&pool->idle, 1);
        made = pthread_create(&thread, &attributes, work, pool) == 0;
        pthread_attr_destroy(&attributes);
        pool->count += made;
        if (!made)
            atomic_fetch_sub(&pool->idle, 1);
    }
    pthread_mutex_unlock(&pool->lock);
    return made;
}

/* Before this worker is busy: somebody else must see what comes. */
static void delegate(struct df_pool *pool)
{
    struct df_segment *segment = pool->segment;

    if (atomic_load(&pool->idle) == 0)
        add_worker(pool);
    else if (any_pending(segment) && atomic_load(&segment->asleep) > 0) {
        atomic_fetch_add(&segment->doorbell, 1);
        df_sys_wake(&segment->doorbell, 1);
    }
}

static void serve(struct df_pool *pool, struct df_slot *slot)
{
    struct df_segment *segment = pool->segment;

    atomic_fetch_sub(&pool->idle, 1);
    delegate(pool);
    pool->serve(pool->arg, slot, &df_segment_areas(segment)[slot - df_segment_slots(segment)]);
    atomic_fetch_add(&pool->idle, 1);
    give_back(pool, slot);
}

static void end_worker(struct df_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_sub(&pool->idle, 1);
    pool->count--;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument)
{
    struct df_pool *pool = argument;
    struct df_slot *slot;
    bool stay = true;

    while (stay) {
        while ((slot = take(pool)))
            serve(pool, slot);
        stay = !atomic_load(&pool->stopping) && await(pool);
    }
    end_worker(pool);
    return NULL;
}

/* ---- sleeping ops ---------------------------------------------------------------------------- */

static void do_nothing(int signal)
{
    (void)signal;
}

void df_pool_sleep_begin(struct df_pool *pool, const struct df_slot *slot)
{
    size_t index = (size_t)(slot - df_segment_slots(pool->segment));

    pthread_mutex_lock(&pool->lock);
    pool->sleepers[index] = pthread_self();
    pool->sleeping[index] = true;
    pthread_mutex_unlock(&pool->lock);
}

void df_pool_sleep_end(struct df_pool *pool, const struct df_slot *slot)
{
    size_t index = (size_t)(slot - df_segment_slots(pool->segment));

    pthread_mutex_lock(&pool->lock);
    pool->sleeping[index] = false;
    pthread_mutex_unlock(&pool->lock);
}

uint32_t df_pool_sleeping(struct df_pool *pool)
{
    uint32_t count = 0;

    pthread_mutex_lock(&pool->lock);
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        count += pool->sleeping[i];
    pthread_mutex_unlock(&pool->lock);
    return count;
}

/* ---- life ------------------------------------------------------------------------------------ */

int df_pool_start(struct df_pool *pool, struct df_segment *segment, df_pool_serve *serve_slot,
                  df_pool_unheard *unheard, void *arg)
{
    struct sigaction action = {.sa_handler = do_nothing}; /* no SA_RESTART: sleeps shall end */

    memset(pool, 0, sizeof(*pool));
    pool->segment = segment;
    pool->serve = serve_slot;
    pool->unheard = unheard;
    pool->arg = arg;
    atomic_init(&pool->budget, BUDGET_START);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->ended, NULL);
    sigaction(DF_POOL_SIGNAL, &action, NULL);
    if (!add_worker(pool))
        return -EAGAIN;
    add_worker(pool);
    return 0;
}

void df_pool_stop(struct df_pool *pool)
{
    atomic_store(&pool->stopping, true);
    pthread_mutex_lock(&pool->lock);
    while (pool->count > 0) {
        for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
            if (pool->sleeping[i])
                pthread_kill(pool->sleepers[i], DF_POOL_SIGNAL);
        atomic_fetch_add(&pool->segment->doorbell, 1);
        df_sys_wake(&pool->segment->doorbell, INT_MAX);
        pthread_cond_wait(&pool->ended, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
}
