/*
 * control_messages.c - what comes on the sockets: HELLO, BORN, PLACE, TAKE, and the answers.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/join.h"
#include "process/socket.h"
#include "server/control_private.h"

/* A message as it came. */
struct incoming {
    struct df_join_message body;
    struct ucred sender;
    int fd; /* -1: none */
};

static void read_control(struct incoming *in, struct msghdr *header)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(header); h; h = CMSG_NXTHDR(header, h)) {
        if (h->cmsg_level != SOL_SOCKET)
            continue;
        if (h->cmsg_type == SCM_CREDENTIALS)
            memcpy(&in->sender, CMSG_DATA(h), sizeof(in->sender));
        if (h->cmsg_type == SCM_RIGHTS)
            memcpy(&in->fd, CMSG_DATA(h), sizeof(in->fd));
    }
}

/* With the rounding of CMSG_SPACE there would be room for a second descriptor, which nobody closes.
 */
#define ROOM_FOR_ONE (CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(sizeof(int)))

/* Else it is the end of the socket. */
static bool passes(int error)
{
    return error == EAGAIN || error == EINTR || error == ENOMEM || error == ENOBUFS;
}

/* 1: a message, which stays there; 0: the end; -EAGAIN: nothing now. */
static int look_at(int fd, struct incoming *in)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&in->body, sizeof(in->body)};
    struct msghdr header = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = ROOM_FOR_ONE};
    ssize_t size = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    in->fd = -1;
    in->sender = (struct ucred){0};
    if (size < 0)
        return passes(errno) ? -EAGAIN : 0;
    read_control(in, &header);
    if (size == sizeof(in->body) && in->body.magic == DF_JOIN_MAGIC)
        return 1;
    if (in->fd >= 0)
        close(in->fd);
    return 0;
}

static bool is_trusted(uid_t uid)
{
    return uid == geteuid() || uid == 0;
}

/* A client's own socket is nobody else's. By who connected, too: programs of a run inherit the
 * connection, and may change their user before they join by it. A message that comes between accept
 * and SO_PASSCRED bears no sender, which the kernel shows as process 0 of the overflow uid. */
static bool may_join(const struct df_connection *connection, const struct incoming *in)
{
    return connection->client != 0 || is_trusted(connection->peer) ||
           (in->sender.pid != 0 && is_trusted(in->sender.uid));
}

/* False: it is not to be told, nor would it be told of our end. */
static bool send_welcome(struct df_control *c, int fd, uint32_t client, int error, int given)
{
    struct df_join_message body = {.magic = DF_JOIN_MAGIC,
                                   .kind = DF_JOIN_WELCOME,
                                   .client = client,
                                   .error = error,
                                   .size = c->server->own.segment->size};

    memcpy(body.build, df_build, DF_BUILD_SIZE);
    return df_socket_tell(fd, &body, sizeof(body), error ? -1 : given, MSG_DONTWAIT);
}

/* A client of which we would hear no more: it sees its socket's end, or has its calls refused. */
static void lose(struct df_control *c, uint32_t client)
{
    df_execute_bury(c->server, client);
    df_kept_client(c->server->options->kept, client, -1);
}

/* It may have been told so already, by a server that died before it could note it: nobody reads the
 * second message. */
void df_control_let_in(struct df_control *c, int fd, uint32_t client)
{
    bool told = send_welcome(c, fd, client, 0, c->server->own.memory);

    df_files_client_born(&c->server->files, client);
    if (told && df_control_add(c, fd, client, (uid_t)-1))
        return;
    lose(c, client);
    if (!told)
        close(fd);
}

static void turn_away(struct df_control *c, int fd, int error)
{
    send_welcome(c, fd, 0, error, -1);
    close(fd);
}

/* The keeper hears of it first: a client that has no socket is taken for dead. */
static void welcome(struct df_control *c, const struct incoming *in)
{
    uint32_t client;

    if (memcmp(in->body.build, df_build, DF_BUILD_SIZE) != 0) {
        turn_away(c, in->fd, -EPROTO);
    } else if ((client = df_files_client_new(&c->server->files)) == 0) {
        turn_away(c, in->fd, -EAGAIN);
    } else {
        df_kept_client(c->server->options->kept, client, in->fd);
        df_control_let_in(c, in->fd, client);
    }
}

/* The keeper hears of it first, as above. */
static void birth(struct df_control *c, const struct incoming *in)
{
    const struct df_kept *kept = c->server->options->kept;

    df_kept_client(kept, in->body.client, in->fd);
    if (!df_files_client_born(&c->server->files, in->body.client)) {
        df_kept_client(kept, in->body.client, -1);
        close(in->fd); /* it finds out: its calls are refused */
    } else if (!df_control_add(c, in->fd, in->body.client, (uid_t)-1)) {
        lose(c, in->body.client);
    }
}

/* Perhaps before it has done so: it may be killed in between. Where the last number is in use, its
 * socket has not come with it: without one we would never hear of its end. */
static void hear_taker(struct df_control *c, const struct incoming *in)
{
    uint32_t place = (uint32_t)(in->body.size >> 32), ticket = (uint32_t)in->body.size;
    struct df_connection *taker = NULL;

    if (place >= DF_OFFERS || !(ticket & DF_TICKET) || in->body.client == 0) {
        if (in->fd >= 0)
            close(in->fd);
        return;
    }
    if (in->fd >= 0)
        taker = df_control_add(c, in->fd, in->body.client, (uid_t)-1);
    if (!taker) {
        df_control_refuse_taker(c, place, in->body.client, ticket);
        return;
    }
    taker->place = place;
    taker->ticket = ticket;
    taker->next = c->takers;
    c->takers = taker;
}

static void give_place(struct df_control *c, const struct df_connection *from,
                       const struct incoming *in)
{
    const char *shadow = c->server->options->shadow;
    int place =
        shadow ? df_files_place(&c->server->files, shadow, from->client, in->body.size) : -ENOENT;

    send_welcome(c, in->fd, from->client, place < 0 ? place : 0, place);
    if (place >= 0)
        close(place); /* first: the client waits for the end of the socket */
    close(in->fd);
}

static void take_message(struct df_control *c, const struct df_connection *from,
                         const struct incoming *in)
{
    if (in->fd < 0 && in->body.kind != DF_JOIN_TAKE) /* who has sent it sees the end */
        return;
    if (!may_join(from, in)) { /* nor be born, nor ask for what others have */
        turn_away(c, in->fd, -EACCES);
        return;
    }
    switch (in->body.kind) {
    case DF_JOIN_HELLO:
        welcome(c, in);
        break;
    case DF_JOIN_BORN:
        birth(c, in);
        break;
    case DF_JOIN_PLACE:
        give_place(c, from, in);
        break;
    case DF_JOIN_TAKE:
        hear_taker(c, in);
        break;
    case DF_JOIN_BELL:
        df_control_hang(c, in->body.size, in->fd);
        break;
    case DF_JOIN_EPOLL:
        df_bell_hang(&c->server->bells, in->body.size, in->fd, true);
        break;
    default:
        close(in->fd);
    }
}

/* With the descriptor in it, of which looking has made a copy. */
static void take_off(int fd)
{
    char byte;

    while (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

/* Who says that it is born says it once, and may be told so twice: if this server dies before it
 * has understood, the next one finds the message there. Who joins waits for the answer, and sees
 * the end. */
void df_control_read(struct df_control *c, struct df_connection *connection)
{
    struct incoming in;
    int ret;

    while ((ret = look_at(connection->fd, &in)) == 1) {
        if (in.body.kind != DF_JOIN_BORN)
            take_off(connection->fd);
        take_message(c, connection, &in);
        if (in.body.kind == DF_JOIN_BORN)
            take_off(connection->fd);
    }
    if (ret == 0)
        df_control_end(c, connection);
}
