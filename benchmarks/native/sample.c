/*
 * sample.c - taking one sample.
 */
#include "sample.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct lane {
    pthread_t thread;
    const struct workload *workload;
    struct site *site;
    uint64_t count;
    int error;
    double begin_ns, end_ns;
    double cpu_ns;
    long switches;
};

/* Shared with forked lanes; written by each lane in its own place only. */
struct race {
    pthread_barrier_t start; /* of two lanes or more */
    int lanes;
    bool processes;
    struct lane lane[LANES_MAX];
};

static double clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A lane that shares its process counts its thread, any other all threads: a plugin may have some.
 */
static long switches_of(const struct race *race)
{
    struct rusage used;

    getrusage(race->lanes > 1 && !race->processes ? RUSAGE_THREAD : RUSAGE_SELF, &used);
    return used.ru_nvcsw + used.ru_nivcsw;
}

static clockid_t cpu_clock(const struct race *race)
{
    return race->lanes > 1 && !race->processes ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
}

static void time_lane(struct race *race, struct lane *lane)
{
    const struct workload *workload = lane->workload;
    long switches = switches_of(race);
    double cpu = clock_ns(cpu_clock(race));

    lane->begin_ns = clock_ns(CLOCK_MONOTONIC);
    if (lane->error == 0 && workload->run(workload, lane->site, lane->count) != 0)
        lane->error = errno;
    lane->end_ns = clock_ns(CLOCK_MONOTONIC);
    lane->cpu_ns = clock_ns(cpu_clock(race)) - cpu;
    lane->switches = switches_of(race) - switches;
}

/* What comes before and after is made by each lane, outside of the clock. */
static void run_lane(struct race *race, struct lane *lane)
{
    const struct workload *workload = lane->workload;

    if (workload->before && workload->before(workload, lane->site, lane->count) != 0)
        lane->error = errno;
    if (race->lanes > 1)
        pthread_barrier_wait(&race->start);
    time_lane(race, lane);
    if (workload->after && workload->after(workload, lane->site, lane->count) != 0 && !lane->error)
        lane->error = errno;
}

struct start {
    struct race *race;
    struct lane *lane;
};

static void *lane_thread(void *argument)
{
    struct start *start = argument;

    run_lane(start->race, start->lane);
    return NULL;
}

static void run_threads(struct race *race)
{
    struct start starts[LANES_MAX];

    for (int i = 0; i < race->lanes; i++) {
        starts[i] = (struct start){race, &race->lane[i]};
        if (pthread_create(&race->lane[i].thread, NULL, lane_thread, &starts[i]) != 0)
            abort(); /* the barrier could never be left */
    }
    for (int i = 0; i < race->lanes; i++)
        pthread_join(race->lane[i].thread, NULL);
}

/* The first operation of a child copies the pages it writes to; that is fork's price, not theirs.
 */
static void lane_process(struct race *race, struct lane *lane)
{
    const struct workload *workload = lane->workload;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!workload->before && !workload->after && workload->run(workload, lane->site, 1) != 0)
        lane->error = errno;
    run_lane(race, lane);
    _exit(0);
}

static void run_processes(struct race *race)
{
    pid_t pids[LANES_MAX]; /* not in the race, which the children have too */

    for (int i = 0; i < race->lanes; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            abort(); /* as above */
        if (pids[i] == 0)
            lane_process(race, &race->lane[i]);
    }
    for (int i = 0; i < race->lanes; i++) {
        int status = 0;
        if (waitpid(pids[i], &status, 0) < 0 || !WIFEXITED(status))
            race->lane[i].error = ECHILD;
    }
}

static int sum_up(const struct race *race, struct sample *out)
{
    double begin = race->lane[0].begin_ns, end = race->lane[0].end_ns;
    double count = (double)race->lane[0].count, all = count * race->lanes;

    *out = (struct sample){0};
    for (int i = 0; i < race->lanes; i++) {
        const struct lane *lane = &race->lane[i];
        if (lane->error)
            return lane->error;
        begin = lane->begin_ns < begin ? lane->begin_ns : begin;
        end = lane->end_ns > end ? lane->end_ns : end;
        out->cpu_ns += lane->cpu_ns / all;
        out->switches += (double)lane->switches / all;
    }
    out->ns = (end - begin) / count;
    return 0;
}

static struct race *race_new(int lanes, bool processes)
{
    struct race *race =
        mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    if (race == MAP_FAILED)
        return NULL;
    race->lanes = lanes;
    race->processes = processes;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&race->start, &attr, (unsigned)lanes);
    pthread_barrierattr_destroy(&attr);
    return race;
}

int sample_take(const struct workload *workload, struct site *sites, int lanes, bool processes,
                uint64_t count, struct sample *out)
{
    struct race *race = race_new(lanes, processes);

    if (!race)
        return errno;
    for (int i = 0; i < lanes; i++)
        race->lane[i] = (struct lane){.workload = workload, .site = &sites[i], .count = count};
    if (lanes == 1)
        run_lane(race, &race->lane[0]);
    else if (processes)
        run_processes(race);
    else
        run_threads(race);
    int error = sum_up(race, out);
    munmap(race, sizeof(*race)); /* the barrier holds nothing else, and nobody waits at it */
    return error;
}
