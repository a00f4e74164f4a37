/*
 * channel.c - sending requests, reading replies: who reads, and what happens when the server goes.
 */
#include "channel.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_WANTED ((1u << 20) + (1u << 16)) /* bytes; as much of it as the system grants */
#define RELIEF_PAUSE   20000000L /* ns that the relief thread stays away from a busy socket */

/* A limit that is never met: with one, the kernel ends the wait at a signal whatever SA_RESTART
 * says (signal(7)). */
#define PATIENCE_S 3600

enum { NO_SLOT = UINT32_MAX };

/* ---- life ---------------------------------------------------------------------------------- */

/* An ordinary user gets no more than net.core.wmem_max. */
static size_t widen(int fd)
{
    int size = MESSAGE_WANTED;
    socklen_t length = sizeof(size);

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) < 0)
        return 0;
    return (size_t)size > MESSAGE_WANTED ? MESSAGE_WANTED : (size_t)size - 32; /* unix(7) */
}

/* 0 or an errno. */
static int make_interruptible(int fd)
{
    const struct timeval limit = {.tv_sec = PATIENCE_S};

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ? errno : 0;
}

static void link_slots(struct channel *channel)
{
    for (uint32_t i = 0; i < CHANNEL_REQUESTS; i++)
        channel->slots[i].next_free = i + 1 < CHANNEL_REQUESTS ? i + 1 : NO_SLOT;
}

struct channel *channel_new(int *theirs)
{
    struct channel *channel = calloc(1, sizeof(*channel));
    int pair[2] = {-1, -1};

    if (!channel)
        return NULL;
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->freed, NULL);
    pthread_cond_init(&channel->relieve, NULL);
    channel->process = getpid();
    channel->fd = -1;
    channel->slots = calloc(CHANNEL_REQUESTS, sizeof(*channel->slots));
    if (channel->slots && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
        make_interruptible(pair[0]) == 0) {
        size_t ours = widen(pair[0]), other = widen(pair[1]);
        channel->limit = ours < other ? ours : other;
        channel->buffer = malloc(channel->limit + 1); /* a link's target gets its NUL there */
        channel->fd = pair[0];
        link_slots(channel);
        *theirs = pair[1];
        if (channel->buffer)
            return channel;
        close(pair[1]);
    }
    int error = errno;
    channel_free(channel);
    errno = error;
    return NULL;
}

void channel_free(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->ending = true;
    pthread_cond_signal(&channel->relieve);
    pthread_mutex_unlock(&channel->lock);
    if (channel->fd >= 0)
        shutdown(channel->fd, SHUT_RDWR); /* ends the relief thread's poll as well */
    if (channel->has_relief)
        pthread_join(channel->relief, NULL);
    if (channel->fd >= 0)
        close(channel->fd);
    notify_free(channel);
    free(channel->buffer);
    free(channel->slots);
    pthread_cond_destroy(&channel->relieve);
    pthread_cond_destroy(&channel->freed);
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

/* ---- slots; under the lock ----------------------------------------------------------------- */

/* Bit 0 of a request's number is the kernel's mark for INTERRUPT. */
static uint64_t number_of(const struct channel *channel, const struct pending *pending)
{
    uint64_t index = (uint64_t)(pending - channel->slots);

    return ((uint64_t)pending->generation << 32 | (index + 1)) << 1;
}

static struct pending *take_slot(struct channel *channel)
{
    while (channel->first_free == NO_SLOT && !channel->dead)
        pthread_cond_wait(&channel->freed, &channel->lock);
    if (channel->dead)
        return NULL;
    struct pending *pending = &channel->slots[channel->first_free];
    channel->first_free = pending->next_free;
    channel->in_flight++;
    return pending;
}

static void give_slot(struct channel *channel, struct pending *pending)
{
    pending->req = NULL;
    pending->generation = (pending->generation + 1) & 0x7fffffff;
    pending->next_free = channel->first_free;
    channel->first_free = (uint32_t)(pending - channel->slots);
    channel->in_flight--;
    pthread_cond_signal(&channel->freed);
}

/* The request of a reply, copied out of its slot. False: there is none (any more). */
static bool claim(struct channel *channel, uint64_t number, struct pending *out)
{
    uint64_t index = (number >> 1 & UINT32_MAX) - 1;
    bool found = false;

    pthread_mutex_lock(&channel->lock);
    if (index < CHANNEL_REQUESTS) {
        struct pending *pending = &channel->slots[index];
        found = pending->req && number_of(channel, pending) == number;
        if (found) {
            *out = *pending;
            give_slot(channel, pending);
        }
    }
    pthread_mutex_unlock(&channel->lock);
    return found;
}

/* The host has the reply: wakes the thread that sent the request. From the store on its futex,
 * which lies on its stack, may be gone. */
static void wake_sender(_Atomic uint32_t *replied)
{
    atomic_store(replied, 1);
    syscall(SYS_futex, replied, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The server is gone: everybody who waits gets what the kernel says then. */
static void bury(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->dead = true;
    pthread_cond_broadcast(&channel->freed);
    for (uint32_t i = 0; i < CHANNEL_REQUESTS; i++) {
        struct pending *pending = &channel->slots[i];
        fuse_req_t req = pending->req;
        if (!req)
            continue;
        _Atomic uint32_t *replied = pending->replied;
        give_slot(channel, pending);
        fuse_reply_err(req, ECONNABORTED);
        wake_sender(replied);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- interrupting ----------------------------------------------------------------------------
 */

/* Bit 0: the number of an INTERRUPT is that of its request, with it. */
static void send_interrupt(struct channel *channel, uint64_t number)
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
        send(channel->fd, &message, sizeof(message), MSG_NOSIGNAL);
}

static bool is_pending(struct channel *channel, uint64_t number)
{
    uint64_t index = (number >> 1 & UINT32_MAX) - 1;
    bool found;

    pthread_mutex_lock(&channel->lock);
    found = index < CHANNEL_REQUESTS && channel->slots[index].req &&
            number_of(channel, &channel->slots[index]) == number;
    pthread_mutex_unlock(&channel->lock);
    return found;
}

/* An INTERRUPT is answered only by a server that does not know it, or that has not yet seen the
 * request it is about: then it gets it again. */
static void take_interrupt_reply(struct channel *channel, uint64_t number, int error)
{
    if (error == -ENOSYS) {
        pthread_mutex_lock(&channel->lock);
        channel->no_interrupt = true;
        pthread_mutex_unlock(&channel->lock);
    } else if (error == -EAGAIN && is_pending(channel, number)) {
        send_interrupt(channel, number);
    }
}

/* ---- reading; by whoever has set `reading` -------------------------------------------------- */

/* One message. Returns the request it answered, NULL: none. */
static fuse_req_t take_message(struct channel *channel, size_t size)
{
    const struct fuse_out_header *header = (const void *)channel->buffer;
    const char *body = channel->buffer + sizeof(*header);
    struct pending pending;

    if (size < sizeof(*header) || header->len != size)
        return NULL; /* no FUSE message: whoever waits for one goes on waiting */
    size -= sizeof(*header);
    if (header->unique == 0) {
        notify_pass_on(channel, header->error, body, size);
        return NULL;
    }
    if (header->unique & 1) {
        take_interrupt_reply(channel, header->unique & ~UINT64_C(1), header->error);
        return NULL;
    }
    if (!claim(channel, header->unique, &pending))
        return NULL;
    if (header->error)
        fuse_reply_err(pending.req, -header->error);
    else
        reply_pass_on(&pending, body, size);
    wake_sender(pending.replied);
    return pending.req;
}

/* Reads until `own`, of that number, is answered, or, without one, until nothing is there to read.
 */
static void read_messages(struct channel *channel, fuse_req_t own, uint64_t number)
{
    for (;;) {
        ssize_t got = recv(channel->fd, channel->buffer, channel->limit, own ? 0 : MSG_DONTWAIT);
        if (got < 0 && errno == EINTR && own)
            send_interrupt(channel, number);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && own)))
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            bury(channel);
            return;
        }
        fuse_req_t answered = take_message(channel, (size_t)got);
        if (own && answered == own)
            return;
    }
}

static void stop_reading(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->reading = false;
    if (channel->in_flight > 0)
        pthread_cond_signal(&channel->relieve);
    pthread_mutex_unlock(&channel->lock);
}

/* ---- the relief thread --------------------------------------------------------------------- */

/* Somebody else reads: waits until that ends with replies outstanding, or a while. */
static void pause_relief(struct channel *channel)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += RELIEF_PAUSE;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&channel->relieve, &channel->lock, &until);
}

static void *relief_thread(void *argument)
{
    struct channel *channel = argument;
    bool go_on = true;

    while (go_on) {
        struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
        poll(&readable, 1, -1);
        pthread_mutex_lock(&channel->lock);
        bool mine = !channel->reading;
        if (mine)
            channel->reading = true;
        else if (!channel->ending)
            pause_relief(channel);
        go_on = !channel->ending && !channel->dead;
        pthread_mutex_unlock(&channel->lock);
        if (mine) {
            read_messages(channel, NULL, 0);
            stop_reading(channel);
        }
    }
    return NULL;
}

int channel_start(struct channel *channel, struct fuse_session *session)
{
    channel->session = session;
    int error = pthread_create(&channel->relief, NULL, relief_thread, channel);
    channel->has_relief = error == 0;
    return error;
}

/* ---- sending ------------------------------------------------------------------------------- */

/* One message, whole or not at all. 0 or an errno. */
static int send_parts(const struct channel *channel, struct message *message,
                      struct fuse_in_header *header)
{
    struct msghdr all = {.msg_iov = message->part, .msg_iovlen = (size_t)message->count};

    header->opcode = message->opcode;
    header->nodeid = message->node;
    message->part[0] = (struct iovec){header, sizeof(*header)};
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

/* Notes the request, so that its reply finds it. False: the server is gone. */
static bool note(struct channel *channel, fuse_req_t req, const struct message *message,
                 struct fuse_in_header *header, _Atomic uint32_t *replied)
{
    pthread_mutex_lock(&channel->lock);
    struct pending *pending = take_slot(channel);
    if (pending) {
        pending->req = req;
        pending->replied = replied;
        pending->opcode = message->opcode;
        pending->room = message->room;
        if (message->fi)
            pending->fi = *message->fi;
        header->unique = number_of(channel, pending);
    }
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

/* True: this thread reads now. */
static bool start_reading(struct channel *channel, uint64_t number)
{
    uint64_t index = (number >> 1 & UINT32_MAX) - 1;

    pthread_mutex_lock(&channel->lock);
    const struct pending *pending = &channel->slots[index];
    bool waits = pending->req && number_of(channel, pending) == number;
    bool mine = waits && !channel->reading;
    if (mine)
        channel->reading = true;
    pthread_mutex_unlock(&channel->lock);
    return mine;
}

/* Somebody else reads. */
static void await_reply(struct channel *channel, _Atomic uint32_t *replied, uint64_t number)
{
    const struct timespec limit = {.tv_sec = PATIENCE_S};

    while (atomic_load(replied) == 0)
        if (syscall(SYS_futex, replied, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0) < 0 &&
            errno == EINTR)
            send_interrupt(channel, number);
}

void channel_send(struct channel *channel, fuse_req_t req, struct message *message)
{
    struct fuse_in_header header = {0};
    _Atomic uint32_t replied = 0;
    struct pending own;

    if (channel->process != getpid() || !note(channel, req, message, &header, &replied)) {
        fuse_reply_err(req, ENOTCONN);
        return;
    }
    fill_context(&header, req);
    int error = send_parts(channel, message, &header);
    if (error) {
        if (claim(channel, header.unique, &own))
            fuse_reply_err(req, error == EPIPE || error == ECONNRESET ? ENOTCONN : error);
    } else if (start_reading(channel, header.unique)) {
        read_messages(channel, req, header.unique);
        stop_reading(channel);
    } else {
        await_reply(channel, &replied, header.unique);
    }
}

void channel_tell(struct channel *channel, fuse_req_t req, struct message *message)
{
    struct fuse_in_header header = {.unique = 2}; /* slot 0 of no generation: never answered */

    fill_context(&header, req);
    if (channel->process == getpid())
        send_parts(channel, message, &header);
}

void channel_say_goodbye(struct channel *channel)
{
    struct fuse_in_header header = {.unique = UINT64_MAX - 1};
    struct message message = {.opcode = FUSE_DESTROY, .count = 1};

    if (channel->process == getpid())
        send_parts(channel, &message, &header);
}
