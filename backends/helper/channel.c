/*
 * channel.c - the connection, and reading from it: who reads, and what happens when the server
 * goes.
 */
#include "exchange.h"
#include "forget.h"
#include "window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_WANTED ((1u << 20) + (1u << 16)) /* bytes; as much of it as the system grants */
#define RELIEF_PAUSE   20000000L /* ns that the relief thread stays away from a busy socket */
#define RELIEF_GRACE   2000000L  /* ns that a reply nobody waits for is left to who wants it */

#define MARK_SIZE      4096u

#define ERRORS         512 /* error numbers are below: fuse_dev_do_write() of the kernel */

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
    const struct timeval limit = {.tv_sec = EXCHANGE_PATIENCE_S};

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ? errno : 0;
}

/* A page that is 0 in a forked child; elsewhere it begins with 1. NULL with errno. */
static char *mark_process(void)
{
    char *page = mmap(NULL, MARK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, MARK_SIZE, MADV_WIPEONFORK) == 0) {
        *page = 1;
        return page;
    }
    int error = errno;
    munmap(page, MARK_SIZE);
    errno = error;
    return NULL;
}

static void link_slots(struct channel *channel)
{
    for (uint32_t i = 0; i < CHANNEL_REQUESTS; i++)
        channel->slots[i].next_free = i + 1 < CHANNEL_REQUESTS ? i + 1 : NO_SLOT;
}

/* splice(2) would cut a message into pieces of sixteen buffers of a pipe, and where the pieces of
 * two threads mix, nobody can tell whose they are. With O_APPEND, which sockets do not look at, it
 * is refused, and who has tried writes instead. 0 or an errno. */
static int refuse_splice(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_APPEND) < 0 ? errno : 0;
}

int channel_connect(struct channel *channel)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = pair[0];
    size_t ours = widen(pair[0]), other = widen(pair[1]);
    channel->limit = ours < other ? ours : other;
    free(channel->buffer);
    channel->buffer = malloc(channel->limit);
    int error = channel->buffer ? make_interruptible(pair[0]) : ENOMEM;
    if (!error)
        error = refuse_splice(pair[1]);
    if (!error)
        return pair[1];
    close(pair[1]);
    errno = error;
    return -1;
}

struct channel *channel_new(int *theirs)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    if (!channel)
        return NULL;
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->freed, NULL);
    pthread_cond_init(&channel->relieve, NULL);
    pthread_mutex_init(&channel->files.lock, NULL);
    pthread_mutex_init(&channel->releases.lock, NULL);
    channel->ours = mark_process();
    channel->fd = -1;
    channel->slots = calloc(CHANNEL_REQUESTS, sizeof(*channel->slots));
    if (channel->slots && channel->ours && (*theirs = channel_connect(channel)) >= 0) {
        link_slots(channel);
        return channel;
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
    window_free_spares(channel);
    release_free(channel);
    forget_free(channel);
    free(channel->buffer);
    free(channel->slots);
    if (channel->ours)
        munmap(channel->ours, MARK_SIZE);
    pthread_mutex_destroy(&channel->files.lock);
    pthread_cond_destroy(&channel->relieve);
    pthread_cond_destroy(&channel->freed);
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

/* /dev/fuse refuses a message of no bytes, the socket passes it on. */
bool channel_has_ended(const struct channel *channel)
{
    struct pollfd end = {.fd = channel->fd, .events = POLLRDHUP};
    int unread = 0;

    return poll(&end, 1, 0) > 0 && ioctl(channel->fd, FIONREAD, &unread) == 0 && unread == 0;
}

/* ---- slots; under the lock ----------------------------------------------------------------- */

uint64_t channel_number(const struct channel *channel, const struct pending *pending)
{
    uint64_t index = (uint64_t)(pending - channel->slots);

    return ((uint64_t)pending->generation << 32 | (index + 1)) << 1 |
           (pending->resent ? PROTOCOL_UNIQUE_RESEND : 0);
}

struct pending *channel_find(struct channel *channel, uint64_t number)
{
    uint64_t index = (number >> 1 & UINT32_MAX) - 1;
    struct pending *pending = index < CHANNEL_REQUESTS ? &channel->slots[index] : NULL;

    return pending && pending->waiter && channel_number(channel, pending) == number ? pending
                                                                                    : NULL;
}

struct pending *channel_take_slot(struct channel *channel, bool patient)
{
    while (channel->first_free == NO_SLOT && !channel->dead && patient)
        pthread_cond_wait(&channel->freed, &channel->lock);
    if (channel->dead || channel->first_free == NO_SLOT)
        return NULL;
    struct pending *pending = &channel->slots[channel->first_free];
    channel->first_free = pending->next_free;
    channel->in_flight++;
    return pending;
}

static void give_slot(struct channel *channel, struct pending *pending)
{
    pending->req = NULL;
    pending->waiter = NULL;
    pending->resent = false;
    pending->generation = (pending->generation + 1) & 0x3fffffff; /* bit 63 is RESEND's */
    pending->next_free = channel->first_free;
    channel->first_free = (uint32_t)(pending - channel->slots);
    channel->in_flight--;
    channel->unattended -= pending->unattended;
    pending->unattended = false;
    atomic_fetch_sub(&channel->windows, pending->ask && pending->ask->partial);
    pending->ask = NULL;
    channel->taken++;
    pthread_cond_signal(&channel->freed);
}

bool channel_claim(struct channel *channel, uint64_t number, struct pending *out)
{
    pthread_mutex_lock(&channel->lock);
    struct pending *pending = channel_find(channel, number);
    if (pending) {
        *out = *pending;
        give_slot(channel, pending);
    }
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

/* For whom the reply is: the host, or who asks on its own account. From the last store on the
 * waiter, which lies on its thread's stack, may be gone. */
static void answer(const struct pending *pending, int error, const char *body, size_t size)
{
    if (pending->changes)
        files_changed(pending->channel, pending->changes);
    if (pending->ask)
        exchange_answer(pending->ask, error, body, size);
    else if (error)
        fuse_reply_err(pending->req, error);
    else
        reply_pass_on(pending, body, size);
    exchange_end(pending->waiter);
}

/* The server is gone: everybody who waits gets what the kernel says then. */
static void bury(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (!channel->dead && !channel->ending) /* before anybody is answered: who restarts ends here */
        fuse_log(FUSE_LOG_CRIT, "the program in its helper process has ended, or left its file "
                                "system: calls end in ENOTCONN until it is mounted again\n");
    channel->dead = true;
    pthread_cond_broadcast(&channel->freed);
    for (uint32_t i = 0; i < CHANNEL_REQUESTS; i++) {
        struct pending pending = channel->slots[i];
        if (!pending.waiter)
            continue;
        give_slot(channel, &channel->slots[i]);
        answer(&pending, ECONNABORTED, NULL, 0);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- reading; by whoever has set `reading` -------------------------------------------------- */

/* A message of the socket, of which the caller has seen `size` bytes and the header, brings data
 * for a window: they go there, past the buffer. Returns whose it is; NULL: it is still to be read.
 */
static const struct waiter *take_data(struct channel *channel, size_t size)
{
    struct fuse_out_header *header = (void *)channel->buffer;
    struct pending pending;

    if (size <= sizeof(*header) || header->len != size || header->error)
        return NULL;
    pthread_mutex_lock(&channel->lock);
    const struct pending *found = channel_find(channel, header->unique);
    bool fits =
        found && found->ask && found->ask->partial && size - sizeof(*header) <= found->ask->size;
    pthread_mutex_unlock(&channel->lock);
    if (!fits || !channel_claim(channel, header->unique, &pending))
        return NULL;
    struct iovec parts[2] = {{header, sizeof(*header)}, {pending.ask->room, pending.ask->size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    bool got = recvmsg(channel->fd, &message, MSG_DONTWAIT) == (ssize_t)size;
    answer(&pending, got ? 0 : EIO, pending.ask->room, size - sizeof(*header));
    return pending.waiter;
}

/* Receives a message into the buffer, as recv(2), and returns its whole size, of which the buffer
 * may have the beginning only; or takes one for a window: *whose it was. */
static ssize_t receive(struct channel *channel, int flags, const struct waiter **whose)
{
    *whose = NULL;
    if (atomic_load(&channel->windows) > 0) {
        ssize_t size = recv(channel->fd, channel->buffer, sizeof(struct fuse_out_header),
                            flags | MSG_PEEK | MSG_TRUNC);
        if (size < 0 || (*whose = take_data(channel, (size_t)size)))
            return size;
    }
    return recv(channel->fd, channel->buffer, channel->limit, flags | MSG_TRUNC);
}

/* An errno, or 0. What can be none is ERANGE, as libfuse makes it. */
static int error_of(const struct fuse_out_header *header)
{
    return header->error <= 0 && header->error > -ERRORS ? -header->error : ERANGE;
}

/* One message in the buffer. Returns whom it answered, NULL: nobody. */
static const struct waiter *take_message(struct channel *channel, size_t size)
{
    const struct fuse_out_header *header = (const void *)channel->buffer;
    char *body = channel->buffer + sizeof(*header);
    bool whole = size <= channel->limit; /* if not, it is more than was asked for */
    struct pending pending;

    if (size < sizeof(*header) || header->len != size)
        return NULL; /* no FUSE message: whoever waits for one goes on waiting */
    size -= sizeof(*header);
    if (header->unique == 0 && !whole)
        return NULL;
    if (header->unique == 0) {
        notify_pass_on(channel, header->error, body, size);
        return NULL;
    }
    if (header->unique & 1) {
        exchange_interrupt_replied(channel, header->unique & ~UINT64_C(1), header->error);
        return NULL;
    }
    if (!channel_claim(channel, header->unique, &pending))
        return NULL;
    if (channel->minor < PROTOCOL_BLKSIZE_MINOR && size < channel->limit / 2)
        size = reply_widen(pending.opcode, body, size);
    if (whole)
        answer(&pending, error_of(header), body, size);
    else
        answer(&pending, EIO, NULL, 0);
    return pending.waiter;
}

/* Reads until `own` is answered, or, without it, until nothing is there to read. */
static void read_messages(struct channel *channel, struct waiter *own)
{
    for (;;) {
        const struct waiter *whose;
        ssize_t got = receive(channel, own ? 0 : MSG_DONTWAIT, &whose);
        if (got < 0 && errno == EINTR && own)
            exchange_interrupt(channel, own->header.unique);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && own)))
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got < 0 || (got == 0 && channel_has_ended(channel))) {
            bury(channel);
            return;
        }
        if (!whose)
            whose = take_message(channel, (size_t)got);
        if (whose == own && own)
            return;
        if (own)
            exchange_resend(channel, own);
    }
}

/* Under the lock. */
static void begin_reading(struct channel *channel)
{
    channel->reading = true;
    channel->reader = pthread_self();
}

bool channel_is_reader(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    bool is = channel->reading && pthread_equal(channel->reader, pthread_self());
    pthread_mutex_unlock(&channel->lock);
    return is;
}

static void stop_reading(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->reading = false;
    if (channel->in_flight > channel->unattended)
        pthread_cond_signal(&channel->relieve);
    pthread_mutex_unlock(&channel->lock);
}

bool channel_read(struct channel *channel, struct waiter *own)
{
    pthread_mutex_lock(&channel->lock);
    bool mine = channel_find(channel, own->header.unique) && !channel->reading;
    if (mine)
        begin_reading(channel);
    pthread_mutex_unlock(&channel->lock);
    if (mine) {
        read_messages(channel, own);
        stop_reading(channel);
    }
    return mine;
}

/* ---- the relief thread --------------------------------------------------------------------- */

/* Somebody else reads: waits until that ends with replies outstanding, or a while. */
static void pause_relief(struct channel *channel, long pause)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += pause;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&channel->relieve, &channel->lock, &until);
}

/* Only windows are under way, and replies to such were taken since the last look at `seen`: their
 * reader takes the next one as well, without being woken, and straight into its place. */
static bool is_kept_up_with(const struct channel *channel, uint64_t *seen)
{
    uint64_t before = *seen;

    *seen = channel->taken;
    return channel->unattended > 0 && channel->in_flight == channel->unattended &&
           channel->taken != before;
}

static void *relief_thread(void *argument)
{
    struct channel *channel = argument;
    uint64_t seen = 0;
    bool go_on = true;

    while (go_on) {
        struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
        poll(&readable, 1, -1);
        pthread_mutex_lock(&channel->lock);
        bool kept_up = is_kept_up_with(channel, &seen), mine = !channel->reading && !kept_up;
        if (mine)
            begin_reading(channel);
        else if (!channel->ending)
            pause_relief(channel, kept_up ? RELIEF_GRACE : RELIEF_PAUSE);
        go_on = !channel->ending && !channel->dead;
        pthread_mutex_unlock(&channel->lock);
        if (mine) {
            read_messages(channel, NULL);
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
