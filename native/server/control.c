/*
 * control.c - the thread that waits for news: sockets, signals, mounts that nobody uses, and the
 * end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/join.h"
#include "core/clock.h"
#include "process/output.h"
#include "process/unborn.h"
#include "server/control_private.h"

#define EVENTS  16                   /* taken at a time */
#define LOOK_MS 1000                 /* between two looks for children that were never born */
#define SOON_MS 100                  /* and, in a job, for memory that is scarce */
#define IDLE_NS INT64_C(10000000000) /* that memory is kept for which nobody has a use */

static void accept_client(struct df_control *c)
{
    int fd = accept4(c->server->options->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof(peer);

    if (fd < 0) {
        df_control_listen(c, errno == EINTR || errno == ECONNABORTED);
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    df_control_add(c, fd, 0, peer.uid);
}

static void drain(int fd)
{
    char bytes[sizeof(uint64_t)];

    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

static void take_signals(struct df_control *c)
{
    struct signalfd_siginfo info;

    while (read(c->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGHUP)
            df_output_let_go();
        else
            c->over = true;
}

static void take_event(struct df_control *c, void *data)
{
    if (data == &c->signals) {
        take_signals(c);
    } else if (data == &c->server->news) {
        drain(c->server->news);
    } else if (data == c) {
        accept_client(c);
    } else {
        df_control_read(c, data);
    }
}

static void bury_unborn(struct df_control *c)
{
    struct df_files *files = &c->server->files;
    uint64_t socket;
    uint32_t client;

    while ((client = df_files_client_overdue(files, df_clock(), &socket)))
        if (df_unborn_may_live(socket))
            df_files_client_await(files, client);
        else
            df_execute_bury(c->server, client);
}

static bool is_over(const struct df_control *c)
{
    struct df_server *server = c->server;

    if (c->over || atomic_load(&server->live_count) == 0)
        return true;
    return !server->options->stay && c->connections == 0 &&
           df_files_client_count(&server->files) == 0;
}

/* Programs of a run have nobody to tell it to. */
static void say_full(const struct df_control *c, bool *said)
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

static void give_idle_memory_back(struct df_control *c)
{
    int64_t now = df_clock_coarse();

    if (now - c->looked < IDLE_NS)
        return;
    c->looked = now;
    df_lent_cool(&c->server->framer.lent);
    df_heap_cool(&c->heap, df_server_calls(c->server), now);
}

/* Programs that hold memory of mapped files give some of it up then, at their next fault or system
 * call: the kernel cannot, and kills. */
static void tell_of_scarcity(struct df_control *c)
{
    int64_t now = df_clock_coarse();

    if (!c->holders || now - c->counted < SOON_MS * INT64_C(1000000))
        return;
    c->counted = now;
    if (df_memory_is_scarce(&c->limit))
        atomic_fetch_add(&c->server->own.segment->scarce, 1);
}

/* From the first on that holds such memory; where there is no limit, nobody looks. */
static int patience_of(struct df_control *c)
{
    if (c->limit.directory[0] != '\0' && !c->holders)
        c->holders = df_mapped_has_holders(c->server);
    return c->holders ? SOON_MS : LOOK_MS;
}

static void loop(struct df_control *c)
{
    struct epoll_event events[EVENTS];
    bool said = false;

    df_control_offer(c);
    df_memory_limit_find(&c->limit);
    while (!is_over(c)) {
        int count = epoll_wait(c->epoll, events, EVENTS, patience_of(c));

        atomic_store(&c->server->looking, true);
        for (int i = 0; i < count; i++)
            take_event(c, events[i].data.ptr);
        atomic_store(&c->server->looking, false);
        if (count == 0)
            df_control_listen(c, true);
        bury_unborn(c);
        if (count < EVENTS)
            df_server_seen(c->server);
        df_server_end_unused(c->server);
        df_control_settle(c);
        df_control_offer(c);
        say_full(c, &said);
        give_idle_memory_back(c);
        df_mapped_settle(c->server);
        tell_of_scarcity(c);
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
static void take_clients(struct df_control *c, const struct df_kept *kept)
{
    struct df_files *files = &c->server->files;

    for (size_t i = 0; i < kept->count; i++)
        if (df_files_client_is_new(files, kept->clients[i].client))
            df_control_let_in(c, kept->clients[i].fd, kept->clients[i].client);
        else
            df_control_add(c, kept->clients[i].fd, kept->clients[i].client, (uid_t)-1);
    for (uint32_t id = 0; (id = df_files_client_next(files, id)) != 0;)
        if (is_dead(files, kept, id))
            df_execute_gone(c->server, id);
}

/* Where there is no number for one who connects, and for the socket of the client that he becomes,
 * nobody could ever join, and all would wait. */
static int check_room(const struct df_control *c)
{
    int connection = fcntl(c->epoll, F_DUPFD_CLOEXEC, 0);
    int client = fcntl(c->epoll, F_DUPFD_CLOEXEC, 0);
    int error = connection < 0 || client < 0 ? -errno : 0;

    if (client >= 0)
        close(client);
    if (connection >= 0)
        close(connection);
    return error;
}

/* Of one that has died the clients are there, and take what numbers there are. */
static int begin_to_listen(struct df_control *c)
{
    const struct df_serve_options *options = c->server->options;
    bool again = options->kept && options->kept->memory >= 0;
    int error;

    if (options->listener < 0)
        return 0;
    error = again ? 0 : check_room(c);
    return error < 0 ? error : df_control_watch(c, options->listener, c);
}

static int begin(struct df_control *c)
{
    const struct df_serve_options *options = c->server->options;
    sigset_t taken;
    int error;

    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    if (!options->stay) /* what stays has its output for itself */
        sigaddset(&taken, SIGHUP);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->epoll < 0 || c->signals < 0)
        return -errno;
    atomic_store(&c->server->sockets, c->epoll);
    if ((error = df_control_watch(c, c->signals, &c->signals)) < 0 ||
        (error = df_control_watch(c, c->server->news, &c->server->news)) < 0)
        return error;
    if ((error = begin_to_listen(c)) < 0)
        return error;
    if (options->kept && options->kept->memory >= 0)
        take_clients(c, options->kept);
    return options->control < 0 || df_control_add(c, options->control, 0, geteuid()) ? 0 : -ENOMEM;
}

/* Whoever has gone before it could be told knows of no server, and nobody would end one that
 * stays. */
static void tell_ready(struct df_control *c)
{
    struct df_join_message body = {
        .magic = DF_JOIN_MAGIC, .kind = DF_JOIN_READY, .client = (uint32_t)c->server->mounts[0].id};
    const struct df_kept *kept = c->server->options->kept;

    if (kept && kept->memory >= 0) /* that was told by the first */
        return;
    if (kept) /* that one outlives this process */
        body.size = (uint64_t)getppid();
    memcpy(body.build, df_build, DF_BUILD_SIZE);
    if (c->server->options->control >= 0 &&
        send(c->server->options->control, &body, sizeof(body), MSG_NOSIGNAL) < 0)
        c->over = true;
}

/* The sockets that are left close with the process. */
int df_control_run(struct df_server *server)
{
    struct df_control c = {
        .server = server, .epoll = -1, .signals = -1, .heap.since = df_clock_coarse()};
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
