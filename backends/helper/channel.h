/*
 * channel.h - the kernel's end of a FUSE connection, over a SOCK_SEQPACKET socket: requests out,
 * replies and notifications in, one message each.
 *
 * A request is sent by the thread that made the call. If nobody else is reading, that thread reads
 * until its own reply is there, so that a single-threaded caller needs no second thread; else it
 * sleeps until whoever reads has replied for it. A relief thread reads when a reader has left
 * replies outstanding, and for notifications while nothing happens.
 *
 * A signal to a thread that waits, either way, sends FUSE_INTERRUPT for its request; what the
 * server makes of it is the server's: the thread goes on waiting for the reply. In a mount server
 * the host tells of signals, which are those of another process (fuse_req_interrupt_func(3)).
 */
#ifndef HELPER_CHANNEL_H
#define HELPER_CHANNEL_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../later.h"
#include "files.h"
#include "protocol.h"
#include "release.h"

enum { CHANNEL_REQUESTS = 4096 }; /* in flight; more wait for a slot */

/* Minor versions from which on structures have the members of that name. */
enum { PROTOCOL_BLKSIZE_MINOR = 9, PROTOCOL_UMASK_MINOR = 12 };

#define WINDOW_MAX    (128u * 1024u) /* bytes; the kernel's readahead is no larger */
#define WINDOW_SPARES AHEAD_PIECES

struct ask;
struct waiter;

/* One request that awaits its reply. */
struct pending {
    struct channel *channel;
    fuse_req_t req;        /* NULL: of nobody who could be interrupted */
    struct ask *ask;       /* takes the reply in place of req, unless NULL */
    struct waiter *waiter; /* who sent it; NULL: the slot is free */
    bool unattended;       /* nobody waits for the reply now */
    bool resent;           /* the server is to get it a second time */
    uint32_t opcode;
    uint32_t generation; /* of the slot: a late second reply finds nothing */
    uint32_t next_free;
    uint64_t node, changes;   /* as in its message */
    uint64_t clock;           /* files_clock() */
    size_t room;              /* bytes of data that the caller takes */
    struct fuse_file_info fi; /* OPEN, OPENDIR, CREATE */
};

/* What is sent: a header made from the first members, then the parts. */
struct message {
    uint32_t opcode;
    uint64_t node;
    uint64_t changes;                /* the node whose bytes it may change; 0: none */
    const struct fuse_file_info *fi; /* kept for the reply; may be NULL */
    size_t room;
    struct iovec part[4];     /* the first is the header's place */
    int count;                /* of parts, the header's included */
    uint16_t extension_words; /* of 8 bytes each; the last part, if any */
};

struct forget;
struct poll_handles;
struct window;

struct channel {
    int fd;
    char *ours;         /* whether this is the process that made it: channel_is_ours() */
    size_t limit;       /* bytes of the largest message */
    uint32_t minor;     /* of the protocol that both sides speak */
    uint64_t flags;     /* FUSE_* of INIT that both sides agreed on, flags2 from bit 32 on */
    uint32_t max_write; /* bytes of data in one WRITE */
    uint32_t max_read;  /* ... in one reply */
    uint32_t max_readahead;
    size_t most_ahead; /* bytes of one file that are under way, at most: what the socket holds */
    uint16_t max_background, congestion_threshold;
    uint32_t time_gran;           /* nanoseconds */
    struct fuse_session *session; /* set before the first request */
    struct poll_handles *polls;   /* notify.c */
    struct files files;
    struct releases releases;
    char *buffer;             /* `limit` bytes; of the reader */
    _Atomic uint32_t windows; /* requests under way whose data have a place already */

    _Atomic bool no_copy_64; /* the server has said that it knows no COPY_FILE_RANGE_64 */

    pthread_mutex_t lock;   /* protects what follows */
    pthread_cond_t freed;   /* a slot */
    pthread_cond_t relieve; /* wakes the relief thread */
    bool reading;           /* somebody reads, and owns `buffer` */
    pthread_t reader;       /* who, if so */
    bool dead;              /* the server is gone */
    bool no_interrupt;      /* it has said that it knows no FUSE_INTERRUPT */
    bool ending;            /* the relief thread is to end */
    uint32_t in_flight, unattended, first_free;
    struct forget *forgets; /* put off; forget.c */
    uint64_t taken;         /* messages that answered somebody, so far */
    struct window *spares;  /* window.c */
    uint32_t spare_count;
    struct pending *slots; /* CHANNEL_REQUESTS of them */
    pthread_t relief;
    bool has_relief;
};

/* ---- life ---- */

/* Makes the pair: *theirs is the server's end. NULL with errno. */
struct channel *channel_new(int *theirs);

/* Before INIT: another pair in place of the first one. The server's end, or -1 with errno. */
int channel_connect(struct channel *channel);

/* INIT, before anything else, with what the helper can pass on. *server is the process that
 * answered (0: not told). 0, or -1 after a message. */
int channel_greet(struct channel *channel, pid_t *server);

/* Starts the relief thread; from here on requests may be sent. 0 or an errno. */
int channel_start(struct channel *channel, struct fuse_session *session);

/* When nothing was read: whether the server is gone, and all is read. */
bool channel_has_ended(const struct channel *channel);

/* DESTROY, if the server is still there. */
void channel_say_goodbye(struct channel *channel);

/* Ends the connection: the server reads its end. No request is in flight. */
void channel_free(struct channel *channel);

/* False in a forked child: the socket is its parent's. */
static inline bool channel_is_ours(const struct channel *channel)
{
    return *channel->ours;
}

/* ---- requests ---- */

/* Sends a message on behalf of req, which is answered now, by another thread, or with an error. */
void channel_send(struct channel *channel, fuse_req_t req, struct message *message);

/* Sends one whose reply is for the helper itself: its first `size` bytes come to `room`. 0 or an
 * errno; req is still to be answered. */
int channel_ask(struct channel *channel, fuse_req_t req, struct message *message, void *room,
                size_t size);

/* Sends all that are under way once more, as the server has asked: it has lost them. By the thread
 * that reads. */
void exchange_resend_all(struct channel *channel);

/* Sends one that has no answer (FORGET, BATCH_FORGET). */
void channel_tell(struct channel *channel, fuse_req_t req, struct message *message);

/* Whether this thread is the one that reads: it passes a notification on, and cannot wait for a
 * reply. */
bool channel_is_reader(struct channel *channel);

/* ---- reply.c, notify.c ---- */

/* Makes room for what attributes lack in a reply of before 7.9; `body` has it. Returns its size. */
size_t reply_widen(uint32_t opcode, char *body, size_t size);

/* Hands a reply's body to the request. */
void reply_pass_on(const struct pending *pending, const char *body, size_t size);

/* libfuse 3.18; NULL in an older one. */
extern int fuse_lowlevel_notify_increment_epoch(struct fuse_session *session) __attribute__((weak));

/* libfuse 3.19; the same. */
extern int fuse_lowlevel_notify_prune(struct fuse_session *session, fuse_ino_t *nodeids,
                                      uint32_t count) __attribute__((weak));

/* A message with no request: FUSE_NOTIFY_*. */
void notify_pass_on(struct channel *channel, int code, const char *body, size_t size);

/* The number that POLL is sent with, so that a notification finds `handle` again; takes it. One for
 * each open file, which is the helper's own `file` (fi->fh) and not the server's number: that may
 * be 0 for all. An older handle is dropped. 0: no memory, and nobody will be told. */
uint64_t notify_remember_poll(struct channel *channel, uint64_t node, uint64_t file,
                              struct fuse_pollhandle *handle);

/* The open file is gone. */
void notify_forget_poll(struct channel *channel, uint64_t node, uint64_t file);

/* Frees all of them. */
void notify_free(struct channel *channel);

#endif
