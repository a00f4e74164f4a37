/*
 * control_connection.c - the sockets that lead to a server, from the first look to the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/control_private.h"

int df_control_watch(struct df_control *c, int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void df_control_listen(struct df_control *c, bool listens)
{
    struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = c};

    if (c->deaf != listens)
        return;
    epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->server->options->listener, &event);
    c->deaf = !listens;
}

struct df_connection *df_control_add(struct df_control *c, int fd, uint32_t client, uid_t peer)
{
    struct df_connection *connection = malloc(sizeof(*connection));
    const int on = 1;

    if (!connection) {
        close(fd);
        return NULL;
    }
    *connection = (struct df_connection){.fd = fd, .client = client, .peer = peer};
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    if (df_control_watch(c, fd, connection) < 0) {
        close(fd);
        free(connection);
        return NULL;
    }
    c->connections++;
    return connection;
}

/* What listens is a copy: the other is closed by whoever ends the bell. */
void df_control_hang(struct df_control *c, uint64_t token, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct df_connection *connection;

    if (copy < 0 || !df_bell_hang(&c->server->bells, token, copy, false)) {
        close(fd); /* the client sees the end */
        return;
    }
    connection = df_control_add(c, fd, 0, (uid_t)-1);
    if (connection)
        connection->bell = token;
    else
        df_bell_end(&c->server->bells, token);
}

/* Taken out first: a copy of the descriptor, in a program that was just starting, would keep the
 * epoll entry, and with it a pointer to what is freed here. */
void df_control_end(struct df_control *c, struct df_connection *connection)
{
    if (connection->ticket)
        df_control_end_taker(c, connection);
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    close(connection->fd);
    if (connection->client) {
        df_execute_bury(c->server, connection->client);
        df_kept_client(c->server->options->kept, connection->client, -1);
    }
    if (connection->bell)
        df_bell_end(&c->server->bells, connection->bell);
    free(connection);
    c->connections--;
    df_control_listen(c, true);
}
