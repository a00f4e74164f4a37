/*
 * join.h - how a process becomes a client of a mount server. Freestanding.
 *
 * All it needs is one socket that leads to the server: inherited, or connected to a named server.
 * On it, it sends one end of a socketpair of its own, and on that the server answers: with the
 * process's client id and the segment's memfd. So a socket that many processes have inherited
 * serves them all, and none reads another's answer. The kernel says who sends (SCM_CREDENTIALS).
 *
 * The socket of its own is how a process is known to live: when its last copy is closed the server
 * drops what the process had. So it is close-on-exec unless the program that follows is still a
 * client, a forked child gets one of its own, and nobody else may keep a copy.
 */
#ifndef DF_CHANNEL_JOIN_H
#define DF_CHANNEL_JOIN_H

#include "channel/link.h"
#include "core/build.h"

#define DF_JOIN_MAGIC 0x64664a32 /* "2Jfd" */

enum df_join_kind {
    DF_JOIN_HELLO, /* with a socket: to be a client. Answered there by DF_JOIN_WELCOME */
    DF_JOIN_BORN,  /* with a socket: the sender is the child whose id df_trip_fork() gave. No answer
                    */
    DF_JOIN_WELCOME,
    DF_JOIN_READY, /* a server that was started, to who started it: `client` is the id of its first
                      mount, or `error` why there is none; text may follow. Its number stands in
                      directfuse/_served.py, too */
    DF_JOIN_PLACE, /* with a socket: asks for the placeholder of the file whose handle is `size`.
                      Answered there by DF_JOIN_WELCOME, with its descriptor, and closed when the
                      server has none of it any more */
    DF_JOIN_TAKE,  /* with a socket: the sender is about to be `client`, which is offered; `size`
                      says by which ticket, and above its 32 bits at which place (layout.h). No
                      answer */
    DF_JOIN_BELL,  /* with the writing end of a pipe: a bell of a call, whose token is `size`
                      (ledger/bells.h). No answer */
    DF_JOIN_EPOLL, /* with an eventfd: the same of an epoll instance */
};

/* The one thing that must stay as it is: by it two builds that differ find that out, and say so. */
struct df_join_message {
    uint32_t magic; /* DF_JOIN_MAGIC */
    uint32_t kind;
    uint32_t client;
    int32_t error; /* of the welcome: 0 or a negative errno */
    uint64_t size; /* of the welcome: of the segment, bytes; DF_JOIN_READY: the process that stands
                      for the server, 0: the sender; DF_JOIN_PLACE: a handle */
    char build[DF_BUILD_SIZE]; /* the sender's df_build */
};

/* For an answer, which a server gives when it has mounted. */
struct df_join_wait {
    int64_t patience;   /* ns, then -ETIMEDOUT; < 0: any */
    bool interruptible; /* -EINTR: a signal came before */
};

/*
 * Registers this process by `socket`, a SOCK_SEQPACKET socket that leads to a server, and maps the
 * segment. On success link->control and link->memory are the caller's to close (or to keep at
 * numbers of its choice), `socket` is untouched. 0 or -errno: -EPROTO (another build, which
 * `theirs` then names; NULL: nobody wants to know), -EACCES (another user's), -ENOTCONN (the server
 * is gone), -EMFILE, -ENOMEM, and as `wait` says. */
int df_join_hello(struct df_link *link, int socket, struct df_join_wait wait,
                  char theirs[DF_BUILD_SIZE]);

/*
 * Registers this process, which has the segment mapped already: one that was forked without a word
 * to the server. `socket` as above. As a client that the server has offered, which needs no answer;
 * where there is none just now, the answer is waited for as long as link->patience says. The client
 * id, and in *control, which is closed at execve, the socket that stands for this process; or
 * -errno: as above, -ETIMEDOUT.
 */
int64_t df_join_late(const struct df_link *link, int socket, int *control);

/*
 * In a forked child: link is the parent's copy, client is what df_trip_fork() gave the parent, and
 * the socket leads to the server. From now on the link is the child's own; link->control is another
 * descriptor, and the child's copy of the parent's is closed. 0 or -errno: then the child is no
 * client.
 */
int df_join_born(struct df_link *link, int socket, uint32_t client);

/*
 * Moves a descriptor that stays open above 0, 1 and 2: a program that has closed these may write to
 * them all the same. Its number from now on; where none is left, the one that it has.
 */
int df_join_above_standard(int fd);

/* Sends the server the far end of a bell, by its kind (DF_JOIN_BELL, DF_JOIN_EPOLL) and token; fd
 * stays the caller's. 0 or -errno. */
int df_join_bell(const struct df_link *link, enum df_join_kind kind, uint64_t token, int fd);

/*
 * A descriptor of the file's placeholder, for the caller to close: of the same open file
 * description in all processes that have this handle. -errno: -ENOTCONN (the server is gone),
 * -EBADF, -ENOENT (a server without placeholders), -EMFILE and others of open(2).
 */
int df_join_place(struct df_link *link, uint64_t handle);

#endif
