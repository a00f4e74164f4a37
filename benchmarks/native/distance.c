/*
 * distance.c - how far from each other the processors are: what a line of memory takes from one to
 * the other and back.
 */
#include "distance.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNKS = 20,
    TURNS = 2000,
    TURN_MAX = 100000, /* ns: the other side does not run */
    PAUSE_US = 4000,   /* after which it may */
};

struct rally {
    _Alignas(128) _Atomic uint32_t there;
    _Alignas(128) _Atomic uint32_t back;
    _Alignas(128) atomic_bool over;
};

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *answer(void *arg)
{
    struct rally *rally = arg;

    while (!atomic_load_explicit(&rally->over, memory_order_relaxed))
        atomic_store_explicit(&rally->back,
                              atomic_load_explicit(&rally->there, memory_order_acquire),
                              memory_order_release);
    return NULL;
}

/* ns of a turn; 0: the other side did not answer in time. */
static double chunk(struct rally *rally, uint32_t *turn)
{
    int64_t begin = now();

    for (int i = 0; i < TURNS; i++) {
        int64_t asked = now();

        atomic_store_explicit(&rally->there, ++*turn, memory_order_release);
        while (atomic_load_explicit(&rally->back, memory_order_acquire) != *turn)
            if (now() - asked > TURN_MAX)
                return 0;
    }
    return (double)(now() - begin) / TURNS;
}

/* The first two processors that this thread may use. */
static bool two_processors(cpu_set_t mine, cpu_set_t out[2])
{
    int found = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &mine)) {
            CPU_ZERO(&out[found]);
            CPU_SET(cpu, &out[found++]);
        }
    return found == 2;
}

static double least(struct rally *rally)
{
    uint32_t turn = 0;
    double best = 0;

    for (int i = 0; i < CHUNKS; i++) {
        double ns = chunk(rally, &turn);

        if (ns == 0)
            usleep(PAUSE_US);
        else if (best == 0 || ns < best)
            best = ns;
    }
    return best;
}

double distance_ns(void)
{
    struct rally rally = {0};
    cpu_set_t mine, apart[2];
    pthread_attr_t attributes;
    pthread_t other;
    double best = 0;

    if (sched_getaffinity(0, sizeof(mine), &mine) < 0 || !two_processors(mine, apart))
        return 0;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof(apart[1]), &apart[1]);
    if (sched_setaffinity(0, sizeof(apart[0]), &apart[0]) == 0 &&
        pthread_create(&other, &attributes, answer, &rally) == 0) {
        best = least(&rally);
        atomic_store(&rally.over, true);
        pthread_join(other, NULL);
    }
    pthread_attr_destroy(&attributes);
    sched_setaffinity(0, sizeof(mine), &mine);
    return best;
}
