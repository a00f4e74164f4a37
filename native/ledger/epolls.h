/*
 * epolls.h - files that epoll instances of clients watch. Such an instance has a bell of ours
 * (bells.h) in place of the file; here is what it is to watch for, and what the program wants to be
 * told then.
 *
 * An entry belongs to an open file, by its handle, and goes with that. Beside it there is one for
 * the descriptor's number and the instance (`set`), as in epoll(7). When the bell has rung, whoever
 * hears it asks whether the file is ready (server/execute_epoll.c).
 */
#ifndef DF_LEDGER_EPOLLS_H
#define DF_LEDGER_EPOLLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct df_segment;

struct df_epoll {
    uint64_t token;  /* of its bell */
    uint64_t handle; /* of the file */
    uint64_t set;    /* which instance, as the clients call it */
    int fd;          /* number of the descriptor that it was added by */
    uint32_t events; /* EPOLL* */
    uint64_t data;
    bool off;       /* EPOLLONESHOT: it has been told */
    unsigned place; /* in the segment, for when we are gone; DF_EPOLL_COUNT: none */
    struct df_epoll *next;
};

struct df_epolls {
    struct df_segment *segment;
    pthread_mutex_t lock; /* protects what follows; held for no system call */
    struct df_epoll *first;
    uint64_t newest; /* token */
    _Atomic unsigned count;
};

void df_epolls_init(struct df_epolls *epolls, struct df_segment *segment);

/* 0, -EEXIST: one of the same file, instance and number; -ENOMEM. */
int df_epolls_add(struct df_epolls *epolls, const struct df_epoll *added);

/* Those three say which; its events and data are changed, and *changed is a copy. 0, -ENOENT,
 * -EINVAL: it is EPOLLEXCLUSIVE. */
int df_epolls_modify(struct df_epolls *epolls, struct df_epoll *changed);

/* Its token, or 0. */
uint64_t df_epolls_remove(struct df_epolls *epolls, const struct df_epoll *removed);

/* The same for any of the file. */
uint64_t df_epolls_remove_any(struct df_epolls *epolls, uint64_t handle);

/* A copy of that of the bell. 0; -ENOENT: it is no more; -EINVAL: there was none. */
int df_epolls_find(struct df_epolls *epolls, uint64_t token, struct df_epoll *found);

/* It is about to be told as it was found. False: not any more, or it is another by now, of which
 * whoever has changed it looks whether it is ready. */
bool df_epolls_tell(struct df_epolls *epolls, const struct df_epoll *found);

#endif
