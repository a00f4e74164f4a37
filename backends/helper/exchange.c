/*
 * exchange.c - one request: sent, waited for, interrupted, sent again.
 */
#include "exchange.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- sending --------------------------------------------------------------------------------- */

/* One message, whole or not at all; `flags` of sendmsg(2). 0 or an errno. */
static int send_parts(const struct channel *channel, struct message *message,
                      struct fuse_in_header *header, int flags)
{
    struct msghdr all = {.msg_iov = message->part, .msg_iovlen = (size_t)message->count};

    header->opcode = message->opcode;
    header->nodeid = message->node;
    header->total_extlen = message->extension_words;
    message->part[0] = (struct iovec){header, sizeof(*header)};
    header->len = 0;
    for (int i = 0; i < message->count; i++)
        header->len += (uint32_t)message->part[i].iov_len;
    while (sendmsg(channel->fd, &all, MSG_NOSIGNAL | flags) < 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static void fill_context(struct fuse_in_header *header, fuse_req_t req)
{
    const struct fuse_ctx *context = fuse_req_ctx(req);

    header->uid = context->uid;
    header->gid = context->gid;
    header->pid = (uint32_t)context->pid;
}

/* ---- interrupting ---------------------------------------------------------------------------- */

/* Bit 0: the number of an INTERRUPT is that of its request, with it. Nobody waits here: a mount
 * server calls this with a lock of its own. */
void exchange_interrupt(struct channel *channel, uint64_t number)
{
    struct {
        struct fuse_in_header header;
        struct fuse_interrupt_in body;
    } message = {{.len = sizeof(message), .opcode = FUSE_INTERRUPT, .unique = number | 1},
                 {number}};
    bool known;

    pthread_mutex_lock(&channel->lock);
    known = !channel->no_interrupt;
    pthread_mutex_unlock(&channel->lock);
    if (known)
        send(channel->fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* An INTERRUPT is answered only by a server that does not know it, or that has not yet seen the
 * request it is about: then it gets it again. */
void exchange_interrupt_replied(struct channel *channel, uint64_t number, int error)
{
    bool again;

    pthread_mutex_lock(&channel->lock);
    channel->no_interrupt |= error == -ENOSYS;
    again = error == -EAGAIN && channel_find(channel, number);
    pthread_mutex_unlock(&channel->lock);
    if (again)
        exchange_interrupt(channel, number);
}

/* The host says that the request's caller has a signal (fuse_req_interrupt_func(3)). */
static void interrupt_of(fuse_req_t req, void *data)
{
    struct channel *channel = data;
    uint64_t number = 0;

    pthread_mutex_lock(&channel->lock);
    for (uint32_t i = 0; i < CHANNEL_REQUESTS && !number; i++)
        if (channel->slots[i].req == req)
            number = channel_number(channel, &channel->slots[i]);
    pthread_mutex_unlock(&channel->lock);
    if (number)
        exchange_interrupt(channel, number);
}

/* ---- sending again --------------------------------------------------------------------------- */

static void wake(struct waiter *waiter)
{
    syscall(SYS_futex, &waiter->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* By the reader. From here on a reply to the first number is late, as with the kernel. */
void exchange_resend_all(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    for (uint32_t i = 0; i < CHANNEL_REQUESTS; i++) {
        struct pending *pending = &channel->slots[i];
        if (!pending->waiter)
            continue;
        pending->resent = true;
        atomic_store(&pending->waiter->state, WAITER_RESENDS);
        wake(pending->waiter);
    }
    pthread_mutex_unlock(&channel->lock);
}

void exchange_resend(struct channel *channel, struct waiter *own)
{
    uint32_t state = WAITER_RESENDS;

    if (!atomic_compare_exchange_strong(&own->state, &state, WAITER_WAITS))
        return;
    own->header.unique |= PROTOCOL_UNIQUE_RESEND;
    send_parts(channel, own->message, &own->header, 0); /* a server that is gone ends the wait */
}

/* ---- waiting --------------------------------------------------------------------------------- */

void exchange_end(struct waiter *waiter)
{
    if (atomic_exchange(&waiter->state, WAITER_REPLIED) == WAITER_SLEEPS)
        wake(waiter);
}

void exchange_answer(struct ask *ask, int error, const char *body, size_t size)
{
    bool fits = ask->partial ? size <= ask->size : size == ask->size;

    ask->error = error ? error : fits ? 0 : EIO;
    ask->got = ask->error ? 0 : size;
    if (ask->got > 0 && body != ask->room)
        memcpy(ask->room, body, ask->got);
}

/* Somebody else reads. */
static void await_reply(struct channel *channel, struct waiter *waiter)
{
    const struct timespec limit = {.tv_sec = EXCHANGE_PATIENCE_S};

    while (atomic_load(&waiter->state) != WAITER_REPLIED) {
        uint32_t waits = WAITER_WAITS;
        exchange_resend(channel, waiter);
        atomic_compare_exchange_strong(&waiter->state, &waits, WAITER_SLEEPS);
        if (syscall(SYS_futex, &waiter->state, FUTEX_WAIT_PRIVATE, WAITER_SLEEPS, &limit, NULL, 0) <
                0 &&
            errno == EINTR)
            exchange_interrupt(channel, waiter->header.unique);
    }
}

/* Notes the request, so that its reply finds it. False: the server is gone, or, for those that are
 * not `patient`, there are too many. */
static bool note(struct channel *channel, fuse_req_t req, struct waiter *waiter, struct ask *ask,
                 bool patient)
{
    const struct message *message = waiter->message;

    if (message->changes)
        files_changed(channel, message->changes);
    uint64_t clock = files_clock(channel);
    pthread_mutex_lock(&channel->lock);
    struct pending *pending = channel_take_slot(channel, patient);
    if (pending) {
        pending->channel = channel;
        pending->req = req;
        pending->ask = ask;
        pending->waiter = waiter;
        pending->unattended = !req;
        channel->unattended += !req;
        atomic_fetch_add(&channel->windows, ask && ask->partial);
        pending->opcode = message->opcode;
        pending->node = message->node;
        pending->changes = message->changes;
        pending->clock = clock;
        pending->room = message->room;
        if (message->fi)
            pending->fi = *message->fi;
        waiter->header.unique = channel_number(channel, pending);
    }
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

static void wait_for(struct channel *channel, struct waiter *waiter)
{
    if (!channel_read(channel, waiter))
        await_reply(channel, waiter);
}

/* 0: there is a reply, and it is where it belongs. Else an errno. */
static int exchange(struct channel *channel, fuse_req_t req, struct message *message,
                    struct ask *ask)
{
    struct waiter waiter = {.state = WAITER_WAITS, .message = message};
    struct pending own;

    fill_context(&waiter.header, req);
    if (!channel_is_ours(channel) || !note(channel, req, &waiter, ask, true))
        return ENOTCONN;
    fuse_req_interrupt_func(req, interrupt_of, channel);
    int error = send_parts(channel, message, &waiter.header, 0);
    if (error && channel_claim(channel, waiter.header.unique, &own))
        return error == EPIPE || error == ECONNRESET ? ENOTCONN : error;
    wait_for(channel, &waiter);
    return 0;
}

void channel_send(struct channel *channel, fuse_req_t req, struct message *message)
{
    int error = exchange(channel, req, message, NULL);

    if (error)
        fuse_reply_err(req, error);
}

int channel_ask(struct channel *channel, fuse_req_t req, struct message *message, void *room,
                size_t size)
{
    struct ask ask = {.room = room, .size = size};
    int error = exchange(channel, req, message, &ask);

    return error ? error : ask.error;
}

/* ---- without waiting ---------------------------------------------------------------------------
 */

int exchange_begin(struct channel *channel, fuse_req_t req, struct parcel *parcel)
{
    struct waiter *waiter = &parcel->waiter;
    struct pending own;

    *waiter = (struct waiter){.state = WAITER_WAITS, .message = &parcel->message};
    fill_context(&waiter->header, req);
    if (!note(channel, NULL, waiter, &parcel->ask, false))
        return EAGAIN;
    int error = send_parts(channel, &parcel->message, &waiter->header, MSG_DONTWAIT);
    return error && channel_claim(channel, waiter->header.unique, &own) ? error : 0;
}

void exchange_await(struct channel *channel, fuse_req_t req, struct parcel *parcel)
{
    struct waiter *waiter = &parcel->waiter;

    if (exchange_arrived(parcel))
        return;
    exchange_resend(channel, waiter);
    pthread_mutex_lock(&channel->lock);
    struct pending *pending = channel_find(channel, waiter->header.unique);
    if (pending) {
        pending->req = req;
        channel->unattended -= pending->unattended;
        pending->unattended = false;
    }
    pthread_mutex_unlock(&channel->lock);
    fuse_req_interrupt_func(req, interrupt_of, channel);
    wait_for(channel, waiter);
}

/* ---- without a reply ------------------------------------------------------------------------- */

void channel_tell(struct channel *channel, fuse_req_t req, struct message *message)
{
    struct fuse_in_header header = {.unique = 2}; /* slot 0 of no generation: never answered */

    fill_context(&header, req);
    if (channel_is_ours(channel))
        send_parts(channel, message, &header, 0);
}

void channel_say_goodbye(struct channel *channel)
{
    struct fuse_in_header header = {.unique = UINT64_C(1) << 62};
    struct message message = {.opcode = FUSE_DESTROY, .count = 1};

    if (channel_is_ours(channel))
        send_parts(channel, &message, &header, 0);
}
