/*
 * join.h - how a process becomes a client of a mount server. Freestanding.
 *
 * All it needs is one socket that leads to the server: inherited, or connected to a named server.
 * On it, it sends one end of a socketpair of its own, and on that the server answers: with the
 * process's client id and the segment's memfd. So a socket that many processes have inherited
 * serves them all, and none reads another's answer. The kernel says who sends (SCM_CREDENTIALS);
 * the server watches the process by a pidfd and drops what it had when it is gone.
 */
#ifndef DF_CHANNEL_JOIN_H
#define DF_CHANNEL_JOIN_H

#include "channel/link.h"

#define DF_JOIN_MAGIC 0x64664a31 /* "1Jfd" */

enum df_join_kind {
    DF_JOIN_HELLO, /* with a socket: to be a client. Answered there by DF_JOIN_WELCOME */
    DF_JOIN_BORN,  /* the sender is the child whose id df_trip_fork() gave: `client`. No answer */
    DF_JOIN_WELCOME,
};

struct df_join_message {
    uint32_t magic; /* DF_JOIN_MAGIC */
    uint32_t kind;
    uint32_t client;
    int32_t error; /* of the welcome: 0 or a negative errno */
    uint64_t size; /* of the welcome: of the segment, bytes */
};

/*
 * Registers this process by `socket`, a SOCK_SEQPACKET socket that leads to a server, and maps the
 * segment. On success link->control and link->memory are the caller's to close (or to keep at
 * numbers of its choice), `socket` is untouched. 0 or -errno: -EPROTO (another build), -EACCES
 * (another user's), -ENOTCONN (the server is gone), -EMFILE, -ENOMEM.
 */
int df_join_hello(struct df_link *link, int socket);

/* In a forked child: link is the parent's copy, client is what df_trip_fork() gave the parent. From
 * now on the link is the child's own. 0 or -errno. */
int df_join_born(struct df_link *link, uint32_t client);

#endif
