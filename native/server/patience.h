/*
 * patience.h - a server that is to end does so though its file system hangs.
 *
 * While an end has begun a thread looks whether any call into a file system ends. When none has for
 * the segment's patience (and at least a second: processes may be slow), it says so and ends the
 * process. What the file system does at its own end (destroy) is not timed: it writes what it
 * holds. Without a patience everything is waited for, until the server is told to end once more
 * (SIGTERM, SIGINT): then it is two seconds.
 */
#ifndef DF_SERVER_PATIENCE_H
#define DF_SERVER_PATIENCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct df_server;

struct df_patience {
    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopping;
    unsigned waiting;       /* ends that have begun */
    _Atomic int unmounting; /* id of the mount that is being unmounted; 0: none */
};

void df_patience_init(struct df_server *server);

/* What waits for the file system to let go begins, or is over. Any thread. Where there is no memory
 * for a thread, it is waited for as if there were no patience. */
void df_patience_begin(struct df_server *server);
void df_patience_end(struct df_server *server);

/* The server has ended. */
void df_patience_free(struct df_server *server);

/* Longest time that a call may take, ns; 0: any. */
int64_t df_patience_of(const struct df_server *server);

#endif
