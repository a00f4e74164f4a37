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

/* One message, whole or not at all. 0 or an errno. */
static int send_parts(const struct channel *channel, struct message *message,
                      struct fuse_in_header *header)
{
    struct msghdr all = {.msg_iov = message->part, .msg_iovlen = (size_t)message->count};

    header->opcode = message->opcode;
    header->nodeid = message->node;
    header->total_extlen = message->extension_words;
    message->part[0] = (struct iovec){header, sizeof(*header)};
    header->len = 0;
    for (int i = 0; i < message->count; i++)
        header->len += (uint32_t)message->part[i].iov_len;
    while (sendmsg(channel->fd, &all, MSG_NOSIGNAL) < 0) {
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
        if (!pending->req)
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
    send_parts(channel, own->message, &own->header); /* a server that is gone ends the wait */
}

/* ---- waiting --------------------------------------------------------------------------------- */

void exchange_end(struct waiter *waiter)
{
    atomic_store(&waiter->state, WAITER_REPLIED);
    wake(waiter);
}

void exchange_answer(struct ask *ask, int error, const char *body, size_t size)
{
    ask->error = error ? error : size < ask->size ? EIO : 0;
    if (!ask->error)
        memcpy(ask->room, body, ask->size);
}

/* Somebody else reads. */
static void await_reply(struct channel *channel, struct waiter *waiter)
{
    const struct timespec limit = {.tv_sec = EXCHANGE_PATIENCE_S};

    while (atomic_load(&waiter->state) != WAITER_REPLIED) {
        exchange_resend(channel, waiter);
        if (syscall(SYS_futex, &waiter->state, FUTEX_WAIT_PRIVATE, WAITER_WAITS, &limit, NULL, 0) <
                0 &&
            errno == EINTR)
            exchange_interrupt(channel, waiter->header.unique);
    }
}

/* Notes the request, so that its reply finds it. False: the server is gone. */
static bool note(struct channel *channel, fuse_req_t req, struct waiter *waiter, struct ask *ask)
{
    const struct message *message = waiter->message;

    pthread_mutex_lock(&channel->lock);
    struct pending *pending = channel_take_slot(channel);
    if (pending) {
        pending->req = req;
        pending->ask = ask;
        pending->waiter = waiter;
        pending->opcode = message->opcode;
        pending->room = message->room;
        if (message->fi)
            pending->fi = *message->fi;
        waiter->header.unique = channel_number(channel, pending);
    }
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

/* 0: there is a reply, and it is where it belongs. Else an errno. */
static int exchange(struct channel *channel, fuse_req_t req, struct message *message,
                    struct ask *ask)
{
    struct waiter waiter = {.state = WAITER_WAITS, .message = message};
    struct pending own;

    fill_context(&waiter.header, req);
    if (channel->process != getpid() || !note(channel, req, &waiter, ask))
        return ENOTCONN;
    fuse_req_interrupt_func(req, interrupt_of, channel);
    int error = send_parts(channel, message, &waiter.header);
    if (error && channel_claim(channel, waiter.header.unique, &own))
        return error == EPIPE || error == ECONNRESET ? ENOTCONN : error;
    if (!channel_read(channel, &waiter))
        await_reply(channel, &waiter);
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
    struct ask ask = {room, size, 0};
    int error = exchange(channel, req, message, &ask);

    return error ? error : ask.error;
}

/* ---- without a reply ------------------------------------------------------------------------- */

void channel_tell(struct channel *channel, fuse_req_t req, struct message *message)
{
    struct fuse_in_header header = {.unique = 2}; /* slot 0 of no generation: never answered */

    fill_context(&header, req);
    if (channel->process == getpid())
        send_parts(channel, message, &header);
}

void channel_say_goodbye(struct channel *channel)
{
    struct fuse_in_header header = {.unique = UINT64_C(1) << 62};
    struct message message = {.opcode = FUSE_DESTROY, .count = 1};

    if (channel->process == getpid())
        send_parts(channel, &message, &header);
}
