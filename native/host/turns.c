/*
 * turns.c - turns of a program that has an event loop of its own; see turns.h.
 */
#include "host/turns.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/on_stack.h"

#define FOR_EVER (UINT64_C(1) << 40) /* more turns than will be asked for */

struct df_turns {
    int fd;                       /* owned */
    _Atomic(const void *) looper; /* df_on_stack_here() of the loop's thread; NULL: not known yet */
    pthread_mutex_t lock;         /* protects all below */
    pthread_cond_t changed;       /* any of them */
    unsigned waiting;             /* callers without a turn */
    uint64_t given, begun, over;  /* turns */
    const void *current;          /* df_on_stack_here() of who has the turn; NULL: nobody */
    bool ended, deserted;
    struct df_turns_late *late; /* who wait for answers */
};

struct df_turns *df_turns_new(int fd)
{
    struct df_turns *turns = calloc(1, sizeof(*turns));

    if (!turns)
        return NULL;
    turns->fd = fd < 0 ? eventfd(1, EFD_CLOEXEC | EFD_SEMAPHORE) : fd;
    if (turns->fd < 0) {
        free(turns);
        return NULL;
    }
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->changed, NULL);
    return turns;
}

void df_turns_free(struct df_turns *turns)
{
    if (!turns)
        return;
    close(turns->fd);
    pthread_cond_destroy(&turns->changed);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}

int df_turns_fd(const struct df_turns *turns)
{
    return turns->fd;
}

static void ring(const struct df_turns *turns, uint64_t times)
{
    (void)!write(turns->fd, &times, sizeof(times));
}

/* ---- for callers ------------------------------------------------------------------------- */

static bool is_loop(struct df_turns *turns)
{
    return atomic_load_explicit(&turns->looper, memory_order_relaxed) == df_on_stack_here();
}

void df_turns_await(struct df_turns *turns)
{
    if (is_loop(turns))
        return;
    pthread_mutex_lock(&turns->lock);
    turns->waiting++;
    ring(turns, 1);
    pthread_cond_broadcast(&turns->changed); /* df_turns_give_all() */
    while (turns->begun == turns->given && !turns->ended)
        pthread_cond_wait(&turns->changed, &turns->lock);
    turns->waiting--;
    if (turns->begun < turns->given) {
        turns->begun++;
        turns->current = df_on_stack_here();
    }
    pthread_mutex_unlock(&turns->lock);
}

void df_turns_over(struct df_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    if (turns->current == df_on_stack_here()) {
        turns->current = NULL;
        turns->over++;
        pthread_cond_broadcast(&turns->changed);
    }
    pthread_mutex_unlock(&turns->lock);
}

/* ---- answers that come later ----------------------------------------------------------------- */

static void desert(struct df_turns_late *late)
{
    uint32_t awaited = late->awaited;

    if (atomic_compare_exchange_strong(late->word, &awaited, late->deserted))
        syscall(SYS_futex, late->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void df_turns_late(struct df_turns *turns, struct df_turns_late *late)
{
    pthread_mutex_lock(&turns->lock);
    late->next = turns->late;
    turns->late = late;
    if (turns->deserted)
        desert(late);
    pthread_mutex_unlock(&turns->lock);
}

void df_turns_late_over(struct df_turns *turns, struct df_turns_late *late)
{
    struct df_turns_late **at;

    pthread_mutex_lock(&turns->lock);
    at = &turns->late;
    while (*at != late)
        at = &(*at)->next;
    *at = late->next;
    pthread_mutex_unlock(&turns->lock);
}

void df_turns_desert(struct df_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->deserted = true;
    for (struct df_turns_late *late = turns->late; late; late = late->next)
        desert(late);
    pthread_mutex_unlock(&turns->lock);
}

/* ---- for the loop ------------------------------------------------------------------------ */

void df_turns_take(struct df_turns *turns)
{
    atomic_store_explicit(&turns->looper, df_on_stack_here(), memory_order_relaxed);
}

/* Under its lock. One turn at a time, however many threads of the loop there are. */
static void give(struct df_turns *turns)
{
    uint64_t mine;

    while (turns->over < turns->given && !turns->ended)
        pthread_cond_wait(&turns->changed, &turns->lock);
    if (turns->waiting == 0 || turns->ended)
        return;
    mine = ++turns->given;
    pthread_cond_broadcast(&turns->changed);
    while (turns->over < mine && !turns->ended)
        pthread_cond_wait(&turns->changed, &turns->lock);
}

void df_turns_give(struct df_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    give(turns);
    pthread_mutex_unlock(&turns->lock);
}

void df_turns_give_all(struct df_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    while (!turns->ended) {
        if (turns->waiting == 0)
            pthread_cond_wait(&turns->changed, &turns->lock);
        else
            give(turns);
    }
    pthread_mutex_unlock(&turns->lock);
}

void df_turns_end(struct df_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->ended = true;
    ring(turns, FOR_EVER);
    pthread_cond_broadcast(&turns->changed);
    pthread_mutex_unlock(&turns->lock);
}

bool df_turns_ended(struct df_turns *turns)
{
    bool ended;

    pthread_mutex_lock(&turns->lock);
    ended = turns->ended;
    pthread_mutex_unlock(&turns->lock);
    return ended;
}
