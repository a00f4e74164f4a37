/*
 * aside.c - leaving a processor, and judging whether it paid.
 *
 * A thread is moved by taking the processor out of what it may run on, or all others, and stays
 * where it is when that is given back. Who changes the affinity of a running server (taskset) in
 * that moment has to do it again: a microsecond, or until a busy processor takes the thread.
 */
#include "server/aside.h"

#include <sched.h>

#define PAUSE_PAID 8 /* waits: clients on two processors would chase a worker from each to each */
#define PAUSE_MAX  4096
#define CROWDED    256 /* waits in which nobody wants the processor, until that is believed */

static bool time_to_try(struct df_aside *aside)
{
    uint32_t rest = atomic_load_explicit(&aside->rest, memory_order_relaxed);

    if (rest == 0)
        return true;
    atomic_store_explicit(&aside->rest, rest - 1, memory_order_relaxed);
    return false;
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
    if (!time_to_try(aside))
        return false;
    if (leave(cpu))
        return true;
    df_aside_learn(aside, false);
    return false;
}

void df_aside_learn(struct df_aside *aside, bool paid)
{
    uint32_t pause = atomic_load_explicit(&aside->pause, memory_order_relaxed);

    if (paid)
        pause = PAUSE_PAID;
    else
        pause = pause < PAUSE_MAX ? 2 * pause + 1 : pause;
    atomic_store_explicit(&aside->pause, pause, memory_order_relaxed);
    atomic_store_explicit(&aside->rest, pause, memory_order_relaxed);
}

void df_aside_notice(struct df_aside *aside, bool wanted)
{
    uint32_t crowded = atomic_load_explicit(&aside->crowded, memory_order_relaxed);

    if (wanted || crowded > 0)
        atomic_store_explicit(&aside->crowded, wanted ? CROWDED : crowded - 1,
                              memory_order_relaxed);
}

bool df_aside_return(struct df_aside *aside, uint32_t cpu, uint32_t client_cpu)
{
    cpu_set_t all, one;

    if (atomic_load_explicit(&aside->crowded, memory_order_relaxed) == 0 || cpu == client_cpu ||
        client_cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) < 0)
        return false;
    CPU_ZERO(&one);
    CPU_SET(client_cpu, &one);
    CPU_AND(&one, &one, &all);
    return go(&one, &all);
}
