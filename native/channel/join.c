/*
 * join.c - the client's half of joining. Freestanding.
 */
#include "channel/join.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "channel/map.h"
#include "channel/sys.h"

/* A message with room for one descriptor. */
struct packet {
    struct df_join_message body;
    struct iovec iov;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header;
};

static void pack(struct packet *p, bool with_descriptor)
{
    p->iov = (struct iovec){&p->body, sizeof(p->body)};
    p->header = (struct msghdr){.msg_iov = &p->iov, .msg_iovlen = 1};
    if (with_descriptor) {
        p->header.msg_control = &p->control;
        p->header.msg_controllen = sizeof(p->control);
    }
}

/* fd < 0: without. */
static long send_packet(int socket, enum df_join_kind kind, uint32_t client, uint64_t handle,
                        int fd)
{
    struct packet p = {
        .body = {.magic = DF_JOIN_MAGIC, .kind = kind, .client = client, .size = handle}};
    long ret;

    memcpy(p.body.build, df_build, DF_BUILD_SIZE);
    pack(&p, fd >= 0);
    if (fd >= 0) {
        p.control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        *(int *)CMSG_DATA(&p.control.header) = fd;
    }
    do
        ret = df_sys3(SYS_sendmsg, socket, (long)&p.header, MSG_NOSIGNAL);
    while (ret == -EINTR);
    return ret;
}

/* 0: an answer, or the end. The kernel keeps account of what is left when a signal comes. */
static long await_welcome(int socket, struct df_join_wait wait)
{
    struct timespec left = {wait.patience / 1000000000, wait.patience % 1000000000};
    struct pollfd answer = {.fd = socket, .events = POLLIN};
    long ret;

    if (wait.patience < 0 && !wait.interruptible) /* as long as the receipt takes */
        return 0;
    do
        ret = df_sys6(SYS_ppoll, (long)&answer, 1, wait.patience < 0 ? 0 : (long)&left, 0, 0, 0);
    while (ret == -EINTR && !wait.interruptible);
    return ret == 0 ? -ETIMEDOUT : ret < 0 ? ret : 0;
}

/* The answer: *memory receives the segment's memfd, or what else was asked for. */
static long receive_welcome(int socket, struct df_join_message *body, int *memory)
{
    struct packet p = {0};
    long ret;

    pack(&p, true);
    do
        ret = df_sys3(SYS_recvmsg, socket, (long)&p.header, MSG_CMSG_CLOEXEC);
    while (ret == -EINTR);
    if (ret < 0)
        return ret == -ECONNRESET ? -ENOTCONN : ret;
    *memory = -1;
    if (p.header.msg_controllen >= sizeof(p.control.header) &&
        p.control.header.cmsg_type == SCM_RIGHTS)
        *memory = *(int *)CMSG_DATA(&p.control.header);
    *body = p.body;
    if (ret == 0)
        return -ENOTCONN;
    if (ret != sizeof(*body) || body->magic != DF_JOIN_MAGIC || body->kind != DF_JOIN_WELCOME)
        return -EPROTO;
    if (memcmp(body->build, df_build, DF_BUILD_SIZE) != 0)
        return -EPROTO;
    return body->error < 0 ? body->error : *memory < 0 ? -EMFILE : 0;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        df_sys3(SYS_close, fd, 0, 0);
}

int df_join_above_standard(int fd)
{
    long above = fd > 2 ? fd : df_sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

    if (above < 0)
        return fd;
    if (above != fd)
        close_fd(fd);
    return (int)above;
}

static long map(struct df_link *link, const struct df_join_message *body, int memory)
{
    long at = df_segment_map(memory, body->size, 0);
    long ret;

    if (at < 0 && at > -4096)
        return at;
    ret = df_link_init(link, (void *)at, body->size);
    if (ret < 0)
        df_sys3(SYS_munmap, at, (long)body->size, 0);
    return ret;
}

static long hello(struct df_link *link, int socket, const int pair[2], struct df_join_wait wait,
                  char theirs[DF_BUILD_SIZE])
{
    struct df_join_message body = {0};
    int memory = -1;
    long ret = send_packet(socket, DF_JOIN_HELLO, 0, 0, pair[1]);

    close_fd(pair[1]); /* the server has it: when it ends we shall see the end */
    if (ret < 0)
        return ret == -EPIPE || ret == -ECONNRESET ? -ENOTCONN : ret;
    ret = await_welcome(pair[0], wait);
    if (ret == 0)
        ret = receive_welcome(pair[0], &body, &memory);
    if (theirs)
        memcpy(theirs, body.build, DF_BUILD_SIZE);
    if (ret == 0)
        ret = map(link, &body, memory);
    if (ret < 0) {
        close_fd(memory);
        return ret;
    }
    link->client = body.client;
    link->control = df_join_above_standard(pair[0]);
    link->memory = df_join_above_standard(memory);
    return 0;
}

/* The far end is to tell who sends, also for messages sent before the server has it. */
static long make_pair(int pair[2])
{
    const int on = 1;
    long ret = df_sys6(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, (long)pair, 0, 0);

    if (ret < 0)
        return ret;
    ret = df_sys6(SYS_setsockopt, pair[1], SOL_SOCKET, SO_PASSCRED, (long)&on, sizeof(on), 0);
    if (ret < 0) {
        close_fd(pair[0]);
        close_fd(pair[1]);
    }
    return ret;
}

int df_join_hello(struct df_link *link, int socket, struct df_join_wait wait,
                  char theirs[DF_BUILD_SIZE])
{
    int pair[2];
    long ret = make_pair(pair);

    if (ret < 0)
        return (int)ret;
    ret = hello(link, socket, pair, wait, theirs);
    if (ret < 0)
        close_fd(pair[0]);
    return (int)ret;
}

/* Its place; DF_OFFERS: there is none just now. */
static uint32_t find_offer(struct df_segment *segment, uint32_t *client)
{
    uint32_t i = 0;

    for (; i < DF_OFFERS; i++) {
        *client = atomic_load_explicit(&segment->offers[i], memory_order_relaxed);
        if (*client != 0 && !(*client & DF_TICKET))
            break;
    }
    return i;
}

/* 0: there is none, or somebody else was faster. */
static int64_t take_offer(struct df_segment *segment, int socket, int end)
{
    uint32_t client, ticket, place = find_offer(segment, &client);
    long ret;

    if (place == DF_OFFERS)
        return 0;
    ticket = DF_TICKET | atomic_fetch_add(&segment->tickets, 1);
    ret = send_packet(socket, DF_JOIN_TAKE, client, (uint64_t)place << 32 | ticket, end);
    if (ret < 0)
        return ret;
    return atomic_compare_exchange_strong(&segment->offers[place], &client, ticket) ? client : 0;
}

/* Tells the server, or asks it; the client id. */
static int64_t be_client(const struct df_link *link, int socket, const int pair[2])
{
    int64_t ret = take_offer(link->segment, socket, pair[1]);
    bool offered = ret > 0;
    struct df_join_message body;
    int memory = -1;

    if (ret == 0)
        ret = send_packet(socket, DF_JOIN_HELLO, 0, 0, pair[1]);
    close_fd(pair[1]);
    if (ret < 0)
        return -ENOTCONN;
    if (offered)
        return ret;
    ret = await_welcome(pair[0], (struct df_join_wait){atomic_load(&link->patience), false});
    if (ret == 0)
        ret = receive_welcome(pair[0], &body, &memory);
    close_fd(memory);                            /* it is mapped */
    if (ret == -ENOTCONN && df_link_alive(link)) /* there was no number for our socket */
        return -ENFILE;
    return ret < 0 ? ret : body.client;
}

int64_t df_join_late(const struct df_link *link, int socket, int *control)
{
    int pair[2];
    int64_t ret = make_pair(pair);

    if (ret < 0)
        return ret;
    ret = be_client(link, socket, pair);
    if (ret < 0)
        close_fd(pair[0]);
    else
        *control = df_join_above_standard(pair[0]);
    return ret;
}

int df_join_born(struct df_link *link, int socket, uint32_t client)
{
    int pair[2];
    long ret = make_pair(pair);

    if (ret < 0)
        return (int)ret;
    ret = send_packet(socket, DF_JOIN_BORN, client, 0, pair[1]);
    close_fd(pair[1]);
    if (ret < 0) {
        close_fd(pair[0]);
        return -ENOTCONN;
    }
    close_fd(link->control); /* the parent's end, else the server would not see the parent's end */
    link->control = df_join_above_standard(pair[0]);
    link->client = client;
    return 0;
}

int df_join_bell(const struct df_link *link, enum df_join_kind kind, uint64_t token, int fd)
{
    long ret = send_packet(link->control, kind, link->client, token, fd);

    return ret == -EPIPE || ret == -ECONNRESET ? -ENOTCONN : ret < 0 ? (int)ret : 0;
}

/* Until the other side is closed, after all that it had to do. */
static void await_end(int socket)
{
    char none;
    long ret;

    do
        ret = df_sys3(SYS_read, socket, (long)&none, sizeof(none));
    while (ret == -EINTR);
}

/* Once. The server has a descriptor of the placeholder as long as it is at it: then whoever closes
 * ours would still find its locks held. */
static long ask_place(struct df_link *link, uint64_t handle)
{
    struct df_join_message body;
    int pair[2], place = -1;
    long ret = make_pair(pair);

    if (ret < 0)
        return ret;
    ret = send_packet(link->control, DF_JOIN_PLACE, link->client, handle, pair[1]);
    close_fd(pair[1]);
    if (ret >= 0)
        ret = receive_welcome(pair[0], &body, &place);
    if (ret >= 0)
        await_end(pair[0]);
    close_fd(pair[0]);
    if (ret < 0)
        close_fd(place);
    return ret < 0 ? ret : df_join_above_standard(place);
}

/* A server that dies meanwhile may be started again: the next one is asked. */
int df_join_place(struct df_link *link, uint64_t handle)
{
    long ret;

    do
        ret = ask_place(link, handle);
    while (ret == -ENOTCONN && !df_link_lost(link));
    return ret == -EPIPE || ret == -ECONNRESET ? -ENOTCONN : (int)ret;
}
