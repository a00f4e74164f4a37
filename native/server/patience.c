/*
 * patience.c - looks whether calls still end while a server is to end, and gives the rest up.
 */
#include "server/patience.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/masked_thread.h"
#include "server/server_private.h"

#define LOOK_NS   INT64_C(20000000) /* between two looks */
#define SECOND_NS INT64_C(1000000000)
#define AGAIN_NS  INT64_C(2000000000) /* the patience of who is told twice */

int64_t df_patience_of(const struct df_server *server)
{
    return atomic_load_explicit(&server->own.segment->patience, memory_order_relaxed);
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* To whoever started the server, in one line. */
static void say(const struct df_server *server, double seconds)
{
    int report = server->options->report;

    if (report >= 0)
        dprintf(report, "hung %g\n", seconds);
    else
        fprintf(
            stderr,
            "directfuse: the mount server (process %d) has ended without its file system, which "
            "has answered nothing for %g s: what that had not written yet is lost\n",
            getpid(), seconds);
}

/* Of the threads that hang none can be made to leave its call, and destroy() beside them would find
 * them in what it frees. So the process ends as it is. */
static _Noreturn void give_up(struct df_server *server, int64_t patience)
{
    int none = DF_END_NONE;

    atomic_compare_exchange_strong(&server->own.segment->end, &none, DF_END_HUNG);
    say(server, (double)patience / 1e9);
    _exit(1);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Its calls have ended, and it is at its own end. */
static bool is_ending(struct df_server *server)
{
    int id = atomic_load(&server->patience.unmounting);

    return id != 0 && df_mount_is_ending(id);
}

/* How many looks the patience lasts. Looks are counted, not time: who was stopped meanwhile has
 * given nobody a chance. */
static int64_t looks_of(int64_t patience)
{
    return (patience > SECOND_NS ? patience : SECOND_NS) / LOOK_NS;
}

/* Under the lock, which is released during the wait. */
static void nap(struct df_patience *p)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&p->changed, &p->lock, &until);
}

/* SIGTERM and SIGINT, which all threads block: the first is the control's, the next is for who
 * waits. With a patience already that is as long as it is. */
static void hear(struct df_server *server)
{
    const struct timespec now = {0};
    int64_t none = 0;
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    if (sigtimedwait(&ends, NULL, &now) > 0)
        atomic_compare_exchange_strong(&server->own.segment->patience, &none, AGAIN_NS);
}

/* Under the lock: while an end is being waited for. */
static void watch_end(struct df_server *server)
{
    struct df_patience *p = &server->patience;
    uint64_t calls = df_server_calls(server);
    int64_t looks = 0;

    while (p->waiting > 0 && !p->stopping) {
        hear(server);
        int64_t patience = df_patience_of(server);
        uint64_t now = df_server_calls(server);

        looks = now != calls || patience == 0 || is_ending(server) ? 0 : looks + 1;
        calls = now;
        if (looks > looks_of(patience))
            give_up(server, patience);
        nap(p);
    }
}

static void *watch(void *argument)
{
    struct df_server *server = argument;
    struct df_patience *p = &server->patience;

    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        if (p->waiting > 0)
            watch_end(server);
        else
            pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

void df_patience_init(struct df_server *server)
{
    struct df_patience *p = &server->patience;
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void df_patience_begin(struct df_server *server)
{
    struct df_patience *p = &server->patience;

    pthread_mutex_lock(&p->lock);
    p->waiting++;
    if (!p->started)
        p->started = df_masked_thread_create(&p->thread, NULL, watch, server) == 0;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void df_patience_end(struct df_server *server)
{
    pthread_mutex_lock(&server->patience.lock);
    server->patience.waiting--;
    pthread_mutex_unlock(&server->patience.lock);
}

void df_patience_free(struct df_server *server)
{
    struct df_patience *p = &server->patience;

    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->started)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
}
