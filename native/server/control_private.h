/*
 * control_private.h - the sockets of a server, shared by control*.c. Of the control thread alone:
 * nothing here needs a lock.
 */
#ifndef DF_SERVER_CONTROL_PRIVATE_H
#define DF_SERVER_CONTROL_PRIVATE_H

#include "process/heap.h"
#include "process/memory_limit.h"
#include "server/control.h"

/* A socket that leads to us. */
struct df_connection {
    int fd;
    uint32_t client; /* whose life it stands for; 0: nobody's, others join by it */
    uid_t peer;      /* who connected to our name, or is trusted as one; (uid_t)-1: nobody */
    uint32_t ticket; /* by which it is about to become `client`, offered at `place`; 0: none */
    uint32_t place;
    uint64_t bell;              /* token of a bell, whose end it stands for; 0: of none */
    struct df_connection *next; /* of those with a ticket */
};

struct df_control {
    struct df_server *server;
    int epoll;
    int signals;
    unsigned connections;
    uint32_t offers[DF_OFFERS];   /* what was put into those of the segment */
    struct df_connection *takers; /* that have a ticket */
    int64_t looked;               /* ns: when memory was looked for that nobody needs */
    struct df_heap heap;
    struct df_memory_limit limit; /* no directory: there is none */
    int64_t counted;              /* ns: when what it leaves was looked at */
    bool holders;                 /* a program has held memory of mapped files */
    bool over;                    /* a signal came */
    bool deaf;                    /* who connects is not heard: df_control_listen() */
};

/* ---- control_connection.c ---- */

/* `data` is what the epoll instance says of fd. 0 or -errno. */
int df_control_watch(struct df_control *c, int fd, void *data);

/* Whether it is told of those who connect. Not while there is no descriptor for them: they stay,
 * and it would be told again at once. */
void df_control_listen(struct df_control *c, bool listens);

/* Takes over fd, also on failure: NULL. */
struct df_connection *df_control_add(struct df_control *c, int fd, uint32_t client, uid_t peer);

/* Listens for the end of a bell of a call, whose far end fd is. */
void df_control_hang(struct df_control *c, uint64_t token, int fd);

/* Closes and frees it; if it stood for a client's life, that client is gone. */
void df_control_end(struct df_control *c, struct df_connection *connection);

/* ---- control_offers.c: clients that nobody is ---- */

/* Fills the free places of the segment. */
void df_control_offer(struct df_control *c);

/* Those who have taken what they said are clients from now on, those who cannot are nobody. */
void df_control_settle(struct df_control *c);

/* It cannot be listened for: it gets no offer, or is gone if it has taken it. */
void df_control_refuse_taker(struct df_control *c, uint32_t place, uint32_t client,
                             uint32_t ticket);

/* Its connection ends: taker->client is 0 then if it has taken nothing. */
void df_control_end_taker(struct df_control *c, struct df_connection *taker);

/* ---- control_messages.c ---- */

/* Answers all messages that lie there, and ends the connection if that has ended. */
void df_control_read(struct df_control *c, struct df_connection *connection);

/* Welcomes a client on fd, which it takes over. */
void df_control_let_in(struct df_control *c, int fd, uint32_t client);

#endif
