/*
 * aside.c - leaving a processor, and judging whether it paid.
 *
 * A thread is moved by taking the processor out of what it may run on, or all others, and stays
 * where it is when that is given back. Who changes the affinity of a running server (taskset) in
 * that moment has to do it again: a microsecond, or until a busy processor takes the thread.
 */
#include "workers/aside.h"

#include <sched.h>

#include "channel/sys.h"

#define PRICE_MAX  500000 /* ticks: what took longer met another program */
#define FAILED_MAX 5      /* 16 times the price: a move every few hundred trips, at worst */
#define REGRETTED  2      /* prices: for so much rent a move would have paid */

void df_aside_spend(struct df_aside *aside, uint64_t late)
{
    uint64_t spent = atomic_load_explicit(&aside->spent, memory_order_relaxed) + 2 * late;

    atomic_store_explicit(&aside->spent, spent < UINT32_MAX ? (uint32_t)spent : UINT32_MAX,
                          memory_order_relaxed);
}

/* Rows as long as this one are worth a move, whatever became of the last few. */
void df_aside_pause(struct df_aside *aside)
{
    uint32_t failed = atomic_load_explicit(&aside->failed, memory_order_relaxed);
    uint64_t price = atomic_load_explicit(&aside->price, memory_order_relaxed);

    if (failed > 0 &&
        atomic_load_explicit(&aside->spent, memory_order_relaxed) >= REGRETTED * price)
        atomic_store_explicit(&aside->failed, failed - 1, memory_order_relaxed);
    atomic_store_explicit(&aside->spent, 0, memory_order_relaxed);
}

static bool is_worth_a_move(const struct df_aside *aside)
{
    uint64_t price = atomic_load_explicit(&aside->price, memory_order_relaxed);

    return atomic_load_explicit(&aside->spent, memory_order_relaxed) >=
           price / 2 << atomic_load_explicit(&aside->failed, memory_order_relaxed);
}

/* A move has cost so many ticks. */
static void learn_price(struct df_aside *aside, uint64_t ticks)
{
    uint32_t price = atomic_load_explicit(&aside->price, memory_order_relaxed);
    uint32_t paid = ticks < PRICE_MAX ? (uint32_t)ticks : PRICE_MAX;

    atomic_store_explicit(&aside->price, price ? price - price / 4 + paid / 4 : paid,
                          memory_order_relaxed);
    atomic_store_explicit(&aside->spent, 0, memory_order_relaxed);
}

/* To one of some, of all that the thread may run on. */
static bool go(const cpu_set_t *some, const cpu_set_t *all)
{
    if (CPU_COUNT(some) == 0 || sched_setaffinity(0, sizeof(*some), some) < 0)
        return false;
    sched_setaffinity(0, sizeof(*all), all);
    return true;
}

static bool leave(uint32_t cpu)
{
    cpu_set_t all, others;

    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) < 0)
        return false;
    others = all;
    CPU_CLR(cpu, &others);
    return go(&others, &all);
}

bool df_aside_step(struct df_aside *aside, uint32_t cpu)
{
    if (!is_worth_a_move(aside))
        return false;
    uint64_t begin = df_sys_ticks();
    bool left = leave(cpu);
    learn_price(aside, left ? df_sys_ticks() - begin : PRICE_MAX);
    if (!left)
        df_aside_learn(aside, false);
    return left;
}

void df_aside_learn(struct df_aside *aside, bool paid)
{
    uint32_t failed = atomic_load_explicit(&aside->failed, memory_order_relaxed);

    if (paid)
        failed = 0;
    else if (failed < FAILED_MAX)
        failed++;
    atomic_store_explicit(&aside->failed, failed, memory_order_relaxed);
}

bool df_aside_return(uint32_t cpu, uint32_t client_cpu)
{
    cpu_set_t all, one;

    if (cpu == client_cpu || client_cpu >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof(all), &all) < 0)
        return false;
    CPU_ZERO(&one);
    CPU_SET(client_cpu, &one);
    CPU_AND(&one, &one, &all);
    return go(&one, &all);
}
