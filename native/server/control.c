/*
 * control.c - one thread that reads the sockets: HELLO, BORN, and the end of each client.
 */
#include "server/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/join.h"
#include "core/clock.h"
#include "server/socket.h"

#define EVENTS  16                   /* taken at a time */
#define LOOK_MS 1000                 /* between two looks for children that were never born */
#define IDLE_NS INT64_C(10000000000) /* that memory is kept for which nobody has a use */

/* A socket that leads to us. */
struct connection {
    int fd;
    uint32_t client; /* whose life it stands for; 0: nobody's, others join by it */
    uid_t peer;      /* who connected to our name, or is trusted as one; (uid_t)-1: nobody */
    uint32_t ticket; /* by which it is about to become `client`, offered at `place`; 0: none */
    uint32_t place;
    struct connection *next; /* of those with a ticket */
};

struct control {
    struct df_server *server;
    int epoll;
    int signals;
    unsigned connections;
    uint32_t offers[DF_OFFERS]; /* what was put into those of the segment */
    struct connection *takers;  /* that have a ticket */
    int64_t looked;             /* ns: when memory was looked for that nobody needs */
    bool over;                  /* a signal came */
};

/* A message as it came. */
struct incoming {
    struct df_join_message body;
    struct ucred sender;
    int fd; /* -1: none */
};

/* ---- connections ----------------------------------------------------------------------------- */

static int watch(struct control *c, int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Takes over fd, also on failure: NULL. */
static struct connection *add_connection(struct control *c, int fd, uint32_t client, uid_t peer)
{
    struct connection *connection = malloc(sizeof(*connection));
    const int on = 1;

    if (!connection) {
        close(fd);
        return NULL;
    }
    *connection = (struct connection){.fd = fd, .client = client, .peer = peer};
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    if (watch(c, fd, connection) < 0) {
        close(fd);
        free(connection);
        return NULL;
    }
    c->connections++;
    return connection;
}

/* ---- offers: clients that nobody is ---------------------------------------------------------- */

static _Atomic uint32_t *offer_at(const struct control *c, uint32_t place)
{
    return &c->server->own.segment->offers[place];
}

/* Not where the server may be started again: the next one would not know who has taken what. */
static void offer_clients(struct control *c)
{
    for (uint32_t i = 0; i < DF_OFFERS && !c->server->options->kept; i++)
        if (c->offers[i] == 0) {
            c->offers[i] = df_files_client_offer(&c->server->files);
            atomic_store(offer_at(c, i), c->offers[i]);
        }
}

static void forget_taker(struct control *c, struct connection *taker)
{
    struct connection **at = &c->takers;

    while (*at != taker)
        at = &(*at)->next;
    *at = taker->next;
    taker->ticket = 0;
}

/* False: somebody else has taken it, or will. */
static bool may_take(const struct control *c, const struct connection *taker)
{
    uint32_t now = atomic_load(offer_at(c, taker->place));

    return taker->client == c->offers[taker->place] &&
           (now == taker->client || now == taker->ticket);
}

/* Whether it has done what it was about to do; then the place is free for another offer. */
static bool has_taken(struct control *c, struct connection *taker)
{
    if (!may_take(c, taker) || atomic_load(offer_at(c, taker->place)) != taker->ticket)
        return false;
    c->offers[taker->place] = 0;
    df_files_client_born(&c->server->files, taker->client);
    return true;
}

/* Taken out first: a copy of the descriptor, in a program that was just starting, would keep the
 * epoll entry, and with it a pointer to what is freed here. */
static void end_connection(struct control *c, struct connection *connection)
{
    if (connection->ticket && !has_taken(c, connection))
        connection->client = 0;
    if (connection->ticket)
        forget_taker(c, connection);
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    close(connection->fd);
    if (connection->client) {
        df_execute_bury(c->server, connection->client);
        df_kept_client(c->server->options->kept, connection->client, -1);
    }
    free(connection);
    c->connections--;
}

/* Those who have taken what they said are clients from now on, those who cannot are nobody. */
static void settle_takers(struct control *c)
{
    struct connection *next;

    for (struct connection *taker = c->takers; taker; taker = next) {
        next = taker->next;
        if (has_taken(c, taker))
            forget_taker(c, taker);
        else if (!may_take(c, taker))
            end_connection(c, taker);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

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

/* 1: a message, which stays there; 0: the end; -EAGAIN: nothing now. */
static int look_at(int fd, struct incoming *in)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&in->body, sizeof(in->body)};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t size = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    in->fd = -1;
    in->sender = (struct ucred){0};
    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
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

/* By who connected, too: programs of a run inherit the connection, and may change their user before
 * they join by it. A message that comes between accept and SO_PASSCRED bears no sender, which the
 * kernel shows as process 0 of the overflow uid. */
static bool may_join(const struct connection *connection, const struct incoming *in)
{
    return is_trusted(connection->peer) || (in->sender.pid != 0 && is_trusted(in->sender.uid));
}

static void send_welcome(struct control *c, int fd, uint32_t client, int error, int given)
{
    struct df_join_message body = {.magic = DF_JOIN_MAGIC,
                                   .kind = DF_JOIN_WELCOME,
                                   .client = client,
                                   .error = error,
                                   .size = c->server->own.segment->size};

    memcpy(body.build, df_build, DF_BUILD_SIZE);
    /* who does not listen is gone */
    df_socket_tell(fd, &body, sizeof(body), error ? -1 : given, MSG_DONTWAIT);
}

/* Takes over fd. It may have been told so already, by a server that died before it could note it:
 * nobody reads the second message. */
static void let_in(struct control *c, int fd, uint32_t client)
{
    send_welcome(c, fd, client, 0, c->server->own.memory);
    df_files_client_born(&c->server->files, client);
    if (!add_connection(c, fd, client, (uid_t)-1))
        df_execute_gone(c->server, client);
}

static void turn_away(struct control *c, int fd, int error)
{
    send_welcome(c, fd, 0, error, -1);
    close(fd);
}

/* The keeper hears of it first: a client that has no socket is taken for dead. */
static void welcome(struct control *c, const struct connection *from, const struct incoming *in)
{
    uint32_t client;

    if (!may_join(from, in)) {
        turn_away(c, in->fd, -EACCES);
    } else if (memcmp(in->body.build, df_build, DF_BUILD_SIZE) != 0) {
        turn_away(c, in->fd, -EPROTO);
    } else if ((client = df_files_client_new(&c->server->files)) == 0) {
        turn_away(c, in->fd, -EAGAIN);
    } else {
        df_kept_client(c->server->options->kept, client, in->fd);
        let_in(c, in->fd, client);
    }
}

/* Whoever has a client's socket is one, whatever its user: a program may change that. The keeper
 * hears of it first, as above. */
static void birth(struct control *c, const struct incoming *in)
{
    const struct df_kept *kept = c->server->options->kept;

    df_kept_client(kept, in->body.client, in->fd);
    if (!df_files_client_born(&c->server->files, in->body.client)) {
        df_kept_client(kept, in->body.client, -1);
        close(in->fd); /* it finds out: its calls are refused */
    } else if (!add_connection(c, in->fd, in->body.client, (uid_t)-1)) {
        df_execute_gone(c->server, in->body.client);
    }
}

/* Perhaps before it has done so: it may be killed in between. */
static void hear_taker(struct control *c, const struct incoming *in)
{
    uint32_t place = (uint32_t)(in->body.size >> 32), ticket = (uint32_t)in->body.size;
    struct connection *taker;

    if (place >= DF_OFFERS || !(ticket & DF_TICKET) || in->body.client == 0) {
        close(in->fd);
        return;
    }
    taker = add_connection(c, in->fd, in->body.client, (uid_t)-1);
    if (!taker)
        return;
    taker->place = place;
    taker->ticket = ticket;
    taker->next = c->takers;
    c->takers = taker;
}

static void give_place(struct control *c, const struct connection *from, const struct incoming *in)
{
    const char *shadow = c->server->options->shadow;
    int place =
        shadow ? df_files_place(&c->server->files, shadow, from->client, in->body.size) : -ENOENT;

    send_welcome(c, in->fd, from->client, place < 0 ? place : 0, place);
    if (place >= 0)
        close(place); /* first: the client waits for the end of the socket */
    close(in->fd);
}

static void take_message(struct control *c, const struct connection *from,
                         const struct incoming *in)
{
    if (in->fd < 0)
        return;
    switch (in->body.kind) {
    case DF_JOIN_HELLO:
        welcome(c, from, in);
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
static void read_connection(struct control *c, struct connection *connection)
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
        end_connection(c, connection);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void accept_client(struct control *c)
{
    int fd = accept4(c->server->options->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);

    if (fd < 0)
        return;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    add_connection(c, fd, 0, peer.uid);
}

static void drain(int fd)
{
    char bytes[sizeof(struct signalfd_siginfo)];

    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

static void take_event(struct control *c, void *data)
{
    if (data == &c->signals) {
        drain(c->signals);
        c->over = true;
    } else if (data == &c->server->news) {
        drain(c->server->news);
    } else if (data == c) {
        accept_client(c);
    } else {
        read_connection(c, data);
    }
}

static void bury_unborn(struct control *c)
{
    uint32_t client;

    while ((client = df_files_client_overdue(&c->server->files, df_clock())))
        df_execute_bury(c->server, client);
}

static bool is_over(const struct control *c)
{
    struct df_server *server = c->server;

    if (c->over || atomic_load(&server->live_count) == 0)
        return true;
    return !server->options->stay && c->connections == 0 &&
           df_files_client_count(&server->files) == 0;
}

/* Programs of a run have nobody to tell it to. */
static void say_full(const struct control *c, bool *said)
{
    if (*said || c->server->options->report < 0 || !atomic_load(&c->server->own.segment->full))
        return;
    *said = true;
    fprintf(
        stderr,
        "directfuse: there is no shared memory left for the mount server (process %d): calls go "
        "on with what they have, without more of the cache and at most %d at a time\n",
        getpid(), DF_ROOM_SLOTS);
}

static void give_idle_memory_back(struct control *c)
{
    int64_t now = df_clock_coarse();

    if (now - c->looked < IDLE_NS)
        return;
    c->looked = now;
    df_lent_cool(&c->server->framer.lent);
}

static void loop(struct control *c)
{
    struct epoll_event events[EVENTS];
    bool said = false;

    offer_clients(c);
    while (!is_over(c)) {
        int count = epoll_wait(c->epoll, events, EVENTS, LOOK_MS);

        atomic_store(&c->server->looking, true);
        for (int i = 0; i < count; i++)
            take_event(c, events[i].data.ptr);
        atomic_store(&c->server->looking, false);
        if (count < EVENTS)
            df_server_seen(c->server);
        df_server_end_unused(c->server);
        bury_unborn(c);
        settle_takers(c);
        offer_clients(c);
        say_full(c, &said);
        give_idle_memory_back(c);
    }
}

static bool is_kept(const struct df_kept *kept, uint32_t client)
{
    for (size_t i = 0; i < kept->count; i++)
        if (kept->clients[i].client == client)
            return true;
    return false;
}

static bool is_dead(struct df_files *files, const struct df_kept *kept, uint32_t client)
{
    return !is_kept(kept, client) &&
           (df_files_client_is_born(files, client) || df_files_client_is_new(files, client));
}

/* After a server that has died: its clients. Whose socket it could not hand on is gone. */
static void take_clients(struct control *c, const struct df_kept *kept)
{
    struct df_files *files = &c->server->files;

    for (size_t i = 0; i < kept->count; i++)
        if (df_files_client_is_new(files, kept->clients[i].client))
            let_in(c, kept->clients[i].fd, kept->clients[i].client);
        else
            add_connection(c, kept->clients[i].fd, kept->clients[i].client, (uid_t)-1);
    for (uint32_t id = 0; (id = df_files_client_next(files, id)) != 0;)
        if (is_dead(files, kept, id))
            df_execute_gone(c->server, id);
}

static int begin(struct control *c)
{
    const struct df_serve_options *options = c->server->options;
    sigset_t ends;
    int error;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->epoll < 0 || c->signals < 0)
        return -errno;
    atomic_store(&c->server->sockets, c->epoll);
    if ((error = watch(c, c->signals, &c->signals)) < 0 ||
        (error = watch(c, c->server->news, &c->server->news)) < 0)
        return error;
    if (options->listener >= 0 && (error = watch(c, options->listener, c)) < 0)
        return error;
    if (options->kept && options->kept->memory >= 0)
        take_clients(c, options->kept);
    return options->control < 0 || add_connection(c, options->control, 0, geteuid()) ? 0 : -ENOMEM;
}

static void tell_ready(struct control *c)
{
    struct df_join_message body = {
        .magic = DF_JOIN_MAGIC, .kind = DF_JOIN_READY, .client = (uint32_t)c->server->mounts[0].id};

    const struct df_kept *kept = c->server->options->kept;

    if (kept && kept->memory >= 0) /* that was told by the first */
        return;
    if (kept) /* that one outlives this process */
        body.size = (uint64_t)getppid();
    memcpy(body.build, df_build, DF_BUILD_SIZE);
    if (c->server->options->control >= 0)
        send(c->server->options->control, &body, sizeof(body), MSG_NOSIGNAL);
}

/* The sockets that are left close with the process. */
int df_control_run(struct df_server *server)
{
    struct control c = {.server = server, .epoll = -1, .signals = -1};
    int error = begin(&c);

    if (error == 0) {
        tell_ready(&c);
        loop(&c);
    }
    atomic_store(&server->sockets, -1);
    if (c.epoll >= 0)
        close(c.epoll);
    if (c.signals >= 0)
        close(c.signals);
    return error;
}
