/*
 * exchange.h - one request and its reply: what channel.c, which reads, and exchange.c, which sends,
 * tell each other.
 */
#ifndef HELPER_EXCHANGE_H
#define HELPER_EXCHANGE_H

#include "channel.h"

/* A limit that is never met: with one, the kernel ends a wait at a signal whatever SA_RESTART says
 * (signal(7)). */
#define EXCHANGE_PATIENCE_S 3600

/* Who waits for a reply; on the stack of its thread. */
struct waiter {
    _Atomic uint32_t state; /* futex: WAITER_* */
    struct fuse_in_header header;
    struct message *message; /* as long as it waits: it may have to be sent again */
};

enum { WAITER_WAITS, WAITER_SLEEPS, WAITER_REPLIED, WAITER_RESENDS };

/* The body of a reply that is not for the host. */
struct ask {
    void *room;
    size_t size;
    bool partial; /* the reply may be shorter, as data are; not longer */
    size_t got;   /* bytes; set by the reply, as the next */
    int error;    /* 0 or an errno */
};

/* A request that is under way while its thread does something else. It has to stay where it is
 * until exchange_arrived(). */
struct parcel {
    struct waiter waiter;
    struct message message; /* set by the sender, as the next */
    struct ask ask;
};

/* ---- channel.c ---- */

/* The request's number: bit 0 is the protocol's mark for INTERRUPT, bit 63 for RESEND. Under the
 * lock, as the next two. */
uint64_t channel_number(const struct channel *channel, const struct pending *pending);

/* NULL: it is answered, or never was. */
struct pending *channel_find(struct channel *channel, uint64_t number);

/* A free slot, sooner or later, or, if not `patient`, now. NULL: there is none; the server is gone.
 */
struct pending *channel_take_slot(struct channel *channel, bool patient);

/* Takes the request of a reply out of its slot. False: there is none (any more). */
bool channel_claim(struct channel *channel, uint64_t number, struct pending *out);

/* Reads until `own` is replied to. False: it is already, or somebody else reads. */
bool channel_read(struct channel *channel, struct waiter *own);

/* ---- exchange.c ---- */

/* Sends a parcel, on behalf of req, without waiting for anything. 0, or an errno: it is not sent.
 */
int exchange_begin(struct channel *channel, fuse_req_t req, struct parcel *parcel);

/* Waits for its reply; signals of req's caller interrupt it. */
void exchange_await(struct channel *channel, fuse_req_t req, struct parcel *parcel);

/* Its reply is there, and its members are the sender's again. */
static inline bool exchange_arrived(struct parcel *parcel)
{
    return atomic_load(&parcel->waiter.state) == WAITER_REPLIED;
}

/* The reply is where it belongs: wakes its thread. */
void exchange_end(struct waiter *waiter);

/* `error`: 0 or an errno. */
void exchange_answer(struct ask *ask, int error, const char *body, size_t size);

/* Sends INTERRUPT. Not if the server has so many messages unread that no more fit. */
void exchange_interrupt(struct channel *channel, uint64_t number);

/* The server has answered that with `error`, a negative errno. */
void exchange_interrupt_replied(struct channel *channel, uint64_t number, int error);

/* Sends `own` again if exchange_resend_all() wants that. */
void exchange_resend(struct channel *channel, struct waiter *own);

#endif
