/*
 * pool.c - worker threads: spinning, sleeping, growing.
 *
 * A slot is never left lying: who submits it sets its bit, then looks whether anybody spins or
 * sleeps; a worker says that it does neither any more before it takes a slot, and looks for further
 * ones after that. See channel/link.c for the other half.
 *
 * Each sleeps on a doorbell of its own and the lowest is rung, so that one thread's stack and
 * caches do what one can do.
 */
#include "workers/pool_private.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "channel/link.h"
#include "channel/spin.h"
#include "channel/sys.h"
#include "core/clock.h"
#include "core/pages.h"
#include "process/crash.h"

#define STACK_SIZE (8 << 20) /* bytes, as of libfuse's threads; a plugin's functions run on it */
#define NS         INT64_C(1000000000)
#define IDLE_MAX   4 /* workers that may sleep; more of them end after a while */
#define IDLE_NS    INT64_C(5000000000)
#define KICK_NS INT64_C(20000000) /* between two signals to those who sleep when the pool stops */

/* ---- signals ----------------------------------------------------------------------------------
 */

/* Under the lock, which is released meanwhile. */
static void tell(struct df_pool *pool, struct df_hearer *hearer)
{
    const struct df_hearer told = *hearer;

    hearer->listens = true;
    pthread_mutex_unlock(&pool->lock);
    told.tell(told.data);
    pthread_mutex_lock(&pool->lock);
    hearer->listens = false;
    pthread_cond_broadcast(&pool->told);
}

/* The plugin is told, once, if it wants to be; else the worker that sleeps for the client is woken.
 */
void df_pool_signal(struct df_pool *pool, uint32_t slot)
{
    struct df_hearer *hearer = &pool->hearers[slot];
    bool knows;

    pthread_mutex_lock(&pool->lock);
    knows = atomic_exchange_explicit(&pool->signalled[slot], true, memory_order_relaxed);
    if (hearer->tell && !knows)
        tell(pool, hearer);
    else if (!hearer->tell && pool->sleeping[slot])
        pthread_kill(pool->sleepers[slot], DF_POOL_SIGNAL);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The first question of the i-th word of slots that nobody has taken; NULL: there is none. */
static const struct df_slot *first_pending(const struct df_segment *segment, unsigned i)
{
    uint64_t bits = atomic_load_explicit(&segment->pending[i], memory_order_relaxed);

    return bits ? &df_segment_slots(segment)[i * 64 + (unsigned)__builtin_ctzll(bits)] : NULL;
}

/* `expected`: who sees a slot now had looked in vain just before. */
static void foresee_all(struct df_pool *pool, bool expected)
{
    bool measures = expected && df_distance_is_due(&pool->distance);
    uint64_t now = measures ? df_sys_ticks() : 0;

    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++) {
        const struct df_slot *slot = first_pending(pool->segment, i);

        if (!slot)
            continue;
        df_pool_foresee(pool->segment, slot);
        if (measures)
            df_distance_learn(&pool->distance, pool->segment,
                              (uint32_t)now -
                                  atomic_load_explicit(&slot->at, memory_order_relaxed));
    }
}

/* One worker spins at a time, and not where the client runs that it would spin for. True: there is
 * something. */
static bool spin(struct df_pool *pool, struct df_spin *s, uint32_t cpu, uint32_t client_cpu)
{
    struct df_segment *segment = pool->segment;
    uint32_t nobody = 0;
    bool found;

    if (segment->cpus < 2 || cpu == client_cpu ||
        !atomic_compare_exchange_strong(&segment->spinning, &nobody, DF_SPINNING_ON(cpu)))
        return false;
    while (!(found = df_pool_any_pending(segment)) && df_spin_on(s))
        if (df_spin_is_long(s))
            sched_yield(); /* whoever is ready to run does; the spin is then torn, and shorter */
    if (found)
        foresee_all(pool, s->last != s->begin);
    atomic_store(&segment->spinning, 0);
    return found || df_pool_any_pending(segment);
}

static bool may_end(struct df_pool *pool)
{
    return atomic_load(&pool->idle) > IDLE_MAX;
}

/* Until there is something, or the pool stops. False: this worker is one too many. */
static bool sleep_on(struct df_pool *pool, uint32_t index)
{
    struct df_segment *segment = pool->segment;
    _Atomic uint64_t *asleep = &segment->asleep[index / 64];
    uint64_t bit = UINT64_C(1) << index % 64;
    bool stay = true;

    atomic_fetch_or(asleep, bit);
    for (;;) {
        _Atomic uint32_t *doorbell = &segment->doorbells[index].rings;
        uint32_t rings = atomic_load(doorbell);

        if (df_pool_any_pending(segment) || atomic_load(&pool->stopping))
            break;
        if (df_sys_wait(doorbell, rings, IDLE_NS) == -ETIMEDOUT && may_end(pool)) {
            stay = false;
            break;
        }
    }
    atomic_fetch_and(asleep, ~bit);
    return stay || df_pool_any_pending(segment);
}

/* Nobody spins, and this worker could, were it not where its client is. */
static bool should_move(const struct df_segment *segment, uint32_t cpu, uint32_t client_cpu)
{
    return cpu == client_cpu && segment->cpus > 1 &&
           atomic_load_explicit(&segment->spinning, memory_order_relaxed) == 0;
}

/* Ticks at which the first question that nobody has taken was asked; `now`: there is none. */
static uint64_t asked_at(const struct df_segment *segment, uint64_t now)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++) {
        const struct df_slot *slot = first_pending(segment, i);

        if (slot)
            return df_spin_ticks(atomic_load_explicit(&slot->at, memory_order_relaxed), now);
    }
    return now;
}

/* Returns when what the thread was woken for was asked, in ticks. here: on this processor. How long
 * nothing was asked is known by who began to wait last: others have worked while this one slept. */
static uint64_t wake_up(struct df_pool *pool, struct df_spin *s, bool here)
{
    uint64_t now = df_sys_ticks(), asked = asked_at(pool->segment, now);

    s->begin = atomic_load_explicit(&pool->since, memory_order_relaxed);
    if (df_spin_was_long(s, asked, DF_SPIN_MAX_QUESTION))
        df_aside_pause(&pool->aside);
    else if (here)
        df_aside_spend(&pool->aside, now - asked);
    return asked;
}

static bool await(struct df_pool *pool, uint32_t index, uint32_t client_cpu)
{
    uint32_t cpu;
    uint64_t now = df_sys_clock(&cpu);
    bool moved = should_move(pool->segment, cpu, client_cpu) && df_aside_step(&pool->aside, cpu);
    struct df_spin s = df_spin_begin(&pool->worth, moved ? df_sys_clock(&cpu) : now);
    bool found, stay = true;

    atomic_store_explicit(&pool->since, s.begin, memory_order_relaxed);
    found = spin(pool, &s, cpu, client_cpu);
    if (!found) {
        df_aside_return(cpu, client_cpu);
        stay = sleep_on(pool, index);
    }
    if (moved)
        df_aside_learn(&pool->aside, found);
    df_spin_learn(&pool->worth, &s,
                  found ? df_sys_ticks() : wake_up(pool, &s, cpu == client_cpu && !moved), !found,
                  DF_SPIN_MAX_QUESTION);
    return stay;
}

/* ---- signals of clients ---------------------------------------------------------------------- */

/* What this worker serves. */
static _Thread_local struct serving {
    struct df_pool *pool; /* NULL, as worker: this thread is none */
    uint32_t slot;
    bool deaf;
    struct df_worker *worker;
} serving;

bool df_pool_hear(bool hears)
{
    bool before = !serving.deaf;

    serving.deaf = !hears;
    return before;
}

static void hear_signals(df_call_tell *tell, void *data)
{
    struct df_pool *pool = serving.pool;
    struct df_hearer *hearer;
    bool late;

    if (!pool || serving.deaf)
        return; /* a thread of the plugin's own: on nobody's behalf */
    hearer = &pool->hearers[serving.slot];
    pthread_mutex_lock(&pool->lock);
    while (hearer->listens)
        pthread_cond_wait(&pool->told, &pool->lock);
    hearer->tell = tell;
    hearer->data = data;
    late = tell && atomic_load_explicit(&pool->signalled[serving.slot], memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    if (late)
        tell(data);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void *work(void *argument);

/* Under the lock. NULL: there are as many as there may be. */
static struct df_worker *new_worker(struct df_pool *pool)
{
    for (uint32_t i = 0; i < DF_WORKER_COUNT; i++)
        if (!pool->workers[i].used) {
            pool->workers[i] = (struct df_worker){pool, i, true, NULL};
            return &pool->workers[i];
        }
    return NULL;
}

/* Under the lock. */
static bool start_worker(struct df_pool *pool)
{
    struct df_worker *worker = new_worker(pool);
    pthread_attr_t attributes;
    pthread_t thread;

    if (!worker || pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    worker->used = pthread_create(&thread, &attributes, work, worker) == 0;
    pthread_attr_destroy(&attributes);
    return worker->used;
}

static bool add_worker(struct df_pool *pool)
{
    bool made;

    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->idle, 1);
    made = !atomic_load(&pool->stopping) && start_worker(pool);
    pool->count += made;
    if (!made)
        atomic_fetch_sub(&pool->idle, 1);
    pthread_mutex_unlock(&pool->lock);
    return made;
}

/* Before this worker is busy: somebody else must see what comes. */
static void delegate(struct df_pool *pool)
{
    if (atomic_load(&pool->idle) == 0)
        add_worker(pool);
    else if (df_pool_any_pending(pool->segment))
        df_link_ring(pool->segment);
}

void *df_pool_landing(void)
{
    struct df_worker *worker = serving.worker;

    if (!worker)
        return NULL;
    if (!worker->landing)
        worker->landing = df_pages_new(DF_PAYLOAD_SIZE);
    return worker->landing;
}

static void forget_signal(struct df_pool *pool, uint32_t slot)
{
    if (atomic_load_explicit(&pool->signalled[slot], memory_order_relaxed))
        atomic_store_explicit(&pool->signalled[slot], false, memory_order_relaxed);
}

/* *cpu: the processor that the client ran on. Returns what is to be served next; NULL: whatever. */
static struct df_slot *serve(struct df_worker *worker, struct df_slot *slot, uint32_t *cpu)
{
    struct df_pool *pool = worker->pool;
    struct df_segment *segment = pool->segment;
    uint32_t index = (uint32_t)(slot - df_segment_slots(segment));

    *cpu = slot->cpu;
    atomic_fetch_sub(&pool->idle, 1);
    delegate(pool);
    serving = (struct serving){.pool = pool, .slot = index, .worker = worker};
    pool->serve(pool->arg, slot, &df_segment_areas(segment)[index]);
    forget_signal(pool, index);
    slot = df_pool_give_back(pool, slot);
    forget_signal(pool, index);       /* that came just now; of the next op, it is told again */
    atomic_fetch_add(&pool->idle, 1); /* behind the answer, which somebody waits for */
    return slot;
}

static void end_worker(struct df_pool *pool, struct df_worker *worker)
{
    df_pages_free(worker->landing, DF_PAYLOAD_SIZE);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_sub(&pool->idle, 1);
    worker->used = false;
    pool->count--;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument)
{
    struct df_worker *worker = argument;
    struct df_pool *pool = worker->pool;
    uint32_t client_cpu = UINT32_MAX;
    struct df_slot *slot = NULL;
    char last_words[DF_CRASH_ROOM]; /* at the far end of the stack, which is full at the near one */
    stack_t before = {.ss_flags = SS_DISABLE};
    bool stay = true;

    df_crash_stand_by(last_words, &before);
    while (stay) {
        while (slot || (slot = df_pool_take(pool)))
            slot = serve(worker, slot, &client_cpu);
        stay = !atomic_load(&pool->stopping) && await(pool, worker->index, client_cpu);
    }
    df_crash_stand_down(&before);
    end_worker(pool, worker);
    return NULL;
}

/* ---- sleeping ops ---------------------------------------------------------------------------- */

static void do_nothing(int signal)
{
    (void)signal;
}

/* Whoever stops the pool says so before he looks for sleepers, under the lock. */
static bool set_sleeping(struct df_pool *pool, const struct df_slot *slot, bool sleeping)
{
    size_t index = (size_t)(slot - df_segment_slots(pool->segment));
    bool goes_on;

    pthread_mutex_lock(&pool->lock);
    goes_on = !atomic_load(&pool->stopping);
    pool->sleepers[index] = pthread_self();
    pool->sleeping[index] = sleeping && goes_on;
    pthread_mutex_unlock(&pool->lock);
    return goes_on;
}

bool df_pool_sleep_begin(struct df_pool *pool, const struct df_slot *slot)
{
    return set_sleeping(pool, slot, true);
}

bool df_pool_sleep_end(struct df_pool *pool, const struct df_slot *slot)
{
    return set_sleeping(pool, slot, false);
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
    atomic_init(&pool->worth, DF_SPIN_START);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->ended, NULL);
    pthread_cond_init(&pool->told, NULL);
    sigaction(DF_POOL_SIGNAL, &action, NULL);
    atomic_store(&df_call_signals, hear_signals);
    if (!add_worker(pool))
        return -EAGAIN;
    add_worker(pool);
    return 0;
}

static void ring_all(struct df_segment *segment)
{
    for (unsigned i = 0; i < DF_WORKER_COUNT; i++) {
        atomic_fetch_add(&segment->doorbells[i].rings, 1);
        df_sys_wake(&segment->doorbells[i].rings, 1);
    }
}

/* Under the lock, which is released meanwhile. Not for long: who was only about to sleep has missed
 * its signal. */
static void await_end(struct df_pool *pool)
{
    const int64_t end = df_clock() + KICK_NS;
    const struct timespec until = {end / NS, end % NS};

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        if (pool->sleeping[i])
            pthread_kill(pool->sleepers[i], DF_POOL_SIGNAL);
    pthread_cond_clockwait(&pool->ended, &pool->lock, CLOCK_MONOTONIC, &until);
}

void df_pool_stop(struct df_pool *pool)
{
    atomic_store(&pool->stopping, true);
    ring_all(pool->segment);
    pthread_mutex_lock(&pool->lock);
    while (pool->count > 0)
        await_end(pool);
    pthread_mutex_unlock(&pool->lock);
    atomic_store(&df_call_signals, NULL);
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->told);
    pthread_mutex_destroy(&pool->lock);
}
