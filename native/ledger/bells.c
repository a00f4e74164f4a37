/*
 * bells.c - descriptors by which the server wakes clients that wait in the kernel.
 */
#include "ledger/bells.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/ops.h"
#include "core/wake.h"

/* All under the lock. */
struct df_bell {
    uint64_t token;
    struct df_bell *next; /* of its chain, until it is over */
    unsigned refs;        /* the chain's, and that of each wake */
    int fd;               /* -1: it has not come yet, or is closed */
    uint32_t round;       /* counts rings */
    bool rung;            /* and not heard */
    bool over;
};

struct wake {
    struct df_wake wake; /* the first member */
    struct df_bells *bells;
    struct df_bell *bell; /* with a reference */
    uint32_t round;
};

void df_bells_init(struct df_bells *bells)
{
    *bells = (struct df_bells){.lock = PTHREAD_MUTEX_INITIALIZER, .hung = PTHREAD_COND_INITIALIZER};
}

/* ---- under the lock -------------------------------------------------------------------------- */

static struct df_bell **place_of(struct df_bells *bells, uint64_t token)
{
    struct df_bell **at = &bells->chains[token % DF_BELL_CHAINS];

    while (*at && (*at)->token != token)
        at = &(*at)->next;
    return at;
}

/* Made if there is none; NULL: no memory. */
static struct df_bell *find_or_make(struct df_bells *bells, uint64_t token)
{
    struct df_bell **at = place_of(bells, token), *bell = *at;

    if (bell || !(bell = calloc(1, sizeof(*bell))))
        return bell;
    bell->token = token;
    bell->fd = -1;
    bell->refs = 1;
    return *at = bell;
}

static void put(struct df_bell *bell)
{
    if (--bell->refs == 0)
        free(bell);
}

/* One that a client has made to wait is not used: the server would wait for it, under the lock. */
static bool is_usable(const struct df_bell *bell)
{
    return bell->fd >= 0 && fcntl(bell->fd, F_GETFL) & O_NONBLOCK;
}

/* Of a pipe that is full, or a counter that is, there is enough to hear. */
static void sound(const struct df_bell *bell)
{
    const uint64_t one = 1;

    if (is_usable(bell) && write(bell->fd, &one, sizeof(one)) < 0)
        return; /* or nobody hears it any more */
}

static void ring(struct df_bell *bell)
{
    bell->round++;
    bell->rung = true;
    sound(bell);
}

/* ---- wakes ----------------------------------------------------------------------------------- */

static void end_wake(struct wake *wake, bool rings)
{
    struct df_bells *bells = wake->bells;
    struct df_bell *bell = wake->bell;

    pthread_mutex_lock(&bells->lock);
    if (rings && !bell->over && bell->round == wake->round)
        ring(bell);
    put(bell);
    pthread_mutex_unlock(&bells->lock);
    free(wake);
}

static void wake_by_bell(struct df_wake *wake)
{
    end_wake((struct wake *)wake, true);
}

static void drop(struct df_wake *wake)
{
    end_wake((struct wake *)wake, false);
}

static bool is_over(const struct df_wake *given)
{
    const struct wake *wake = (const struct wake *)given;
    bool over;

    pthread_mutex_lock(&wake->bells->lock);
    over = wake->bell->over || wake->bell->round != wake->round;
    pthread_mutex_unlock(&wake->bells->lock);
    return over;
}

static const struct df_wake_kind kind_of_wake = {wake_by_bell, drop, is_over};

struct df_wake *df_bell_wake(struct df_bells *bells, uint64_t token, bool always)
{
    struct wake *wake = malloc(sizeof(*wake));
    struct df_bell *bell;

    if (!wake)
        return NULL;
    pthread_mutex_lock(&bells->lock);
    bell = find_or_make(bells, token);
    if (bell) {
        bell->refs++;
        *wake = (struct wake){{&kind_of_wake, always}, bells, bell, bell->round};
    }
    pthread_mutex_unlock(&bells->lock);
    if (!bell)
        free(wake);
    return bell ? &wake->wake : NULL;
}

/* ---- bells ----------------------------------------------------------------------------------- */

bool df_bell_hang(struct df_bells *bells, uint64_t token, int fd, bool asked)
{
    struct df_bell *bell;
    bool hangs;

    pthread_mutex_lock(&bells->lock);
    bell = asked ? *place_of(bells, token) : find_or_make(bells, token);
    hangs = bell && bell->fd < 0;
    if (hangs) {
        bell->fd = fd;
        if (bell->rung)
            sound(bell);
        pthread_cond_broadcast(&bells->hung);
    }
    pthread_mutex_unlock(&bells->lock);
    if (!hangs)
        close(fd);
    return hangs;
}

bool df_bell_await(struct df_bells *bells, uint64_t token)
{
    const struct df_bell *bell;
    struct timespec until;
    bool hangs = false;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_mutex_lock(&bells->lock);
    while ((bell = *place_of(bells, token)) && !(hangs = bell->fd >= 0))
        if (pthread_cond_clockwait(&bells->hung, &bells->lock, CLOCK_MONOTONIC, &until) != 0)
            break;
    pthread_mutex_unlock(&bells->lock);
    return hangs;
}

void df_bell_ring(struct df_bells *bells, uint64_t token)
{
    struct df_bell *bell;

    pthread_mutex_lock(&bells->lock);
    if ((bell = *place_of(bells, token)))
        ring(bell);
    pthread_mutex_unlock(&bells->lock);
}

void df_bells_ring(struct df_bells *bells)
{
    pthread_mutex_lock(&bells->lock);
    for (unsigned i = 0; i < DF_BELL_CHAINS; i++)
        for (struct df_bell *bell = bells->chains[i]; bell; bell = bell->next)
            ring(bell);
    pthread_mutex_unlock(&bells->lock);
}

bool df_bell_hear(struct df_bells *bells, uint64_t token)
{
    struct df_bell *bell;
    uint64_t count;
    bool rung = false;

    pthread_mutex_lock(&bells->lock);
    if ((bell = *place_of(bells, token))) {
        rung = bell->rung;
        bell->rung = false;
        if (rung && is_usable(bell) && read(bell->fd, &count, sizeof(count)) < 0)
            rung = true; /* whoever is told has nothing to read: it is heard all the same */
    }
    pthread_mutex_unlock(&bells->lock);
    return rung;
}

void df_bell_end(struct df_bells *bells, uint64_t token)
{
    struct df_bell **at, *bell;

    pthread_mutex_lock(&bells->lock);
    at = place_of(bells, token);
    if ((bell = *at)) {
        *at = bell->next;
        bell->over = true;
        if (bell->fd >= 0)
            close(bell->fd);
        bell->fd = -1;
        put(bell);
    }
    pthread_mutex_unlock(&bells->lock);
}
