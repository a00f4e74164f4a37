/*
 * aside.c - leaving a processor, and judging whether it paid.
 *
 * A thread is moved by taking the processor out of what it may run on, and stays where it is when
 * that is given back. Who changes the affinity of a running server (taskset) in that microsecond
 * has to do it again.
 */
#include "server/aside.h"

#include <sched.h>

#define PAUSE_PAID 8 /* waits: clients on two processors would chase a worker from each to each */
#define PAUSE_MAX  4096

static bool time_to_try(struct df_aside *aside)
{
    uint32_t rest = atomic_load_explicit(&aside->rest, memory_order_relaxed);

    if (rest == 0)
        return true;
    atomic_store_explicit(&aside->rest, rest - 1, memory_order_relaxed);
    return false;
}

static bool leave(uint32_t cpu)
{
    cpu_set_t all, others;

    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) < 0)
        return false;
    others = all;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) < 0)
        return false;
    sched_setaffinity(0, sizeof(all), &all);
    return true;
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
