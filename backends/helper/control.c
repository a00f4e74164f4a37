/*
 * control.c - asking and answering over the control socket; see control.h.
 */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

union rights { /* room for one descriptor */
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static int make_socket(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address->sun_path, path);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* ---- the server's side --------------------------------------------------------------------- */

/* Some libraries run fusermount with an empty environment; its parent, the server, still has it. */
static const char *parents_variable(char *value, size_t size)
{
    char file[32], *entry = NULL;
    const char *found = NULL;
    size_t room = 0, length = strlen(CONTROL_VARIABLE);

    snprintf(file, sizeof(file), "/proc/%d/environ", (int)getppid());
    FILE *entries = fopen(file, "re");
    while (entries && !found && getdelim(&entry, &room, '\0', entries) > 0) {
        if (strncmp(entry, CONTROL_VARIABLE "=", length + 1) == 0 &&
            strlen(entry + length + 1) < size)
            found = strcpy(value, entry + length + 1);
    }
    free(entry);
    if (entries)
        fclose(entries);
    return found;
}

static int receive_answer(int connection, int *fd)
{
    int error = 0;
    union rights rights;
    struct iovec iov = {&error, sizeof(error)};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)};
    ssize_t got;

    do
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(error))
        return got < 0 ? errno : ENOTCONN;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    return error;
}

int control_ask(const struct control_message *message, int *fd)
{
    char room[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *path = getenv(CONTROL_VARIABLE);
    struct sockaddr_un address;
    int error;

    if (!path)
        path = parents_variable(room, sizeof(room));
    if (!path)
        return ENOTCONN;
    int connection = make_socket(path, &address);
    if (connection < 0)
        return errno;
    if (connect(connection, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        send(connection, message, sizeof(*message), MSG_NOSIGNAL) < 0)
        error = errno;
    else
        error = receive_answer(connection, fd);
    close(connection);
    return error;
}

/* ---- the helper's side --------------------------------------------------------------------- */

int control_listen(const char *path)
{
    struct sockaddr_un address;
    int listener = make_socket(path, &address);

    if (listener < 0)
        return -1;
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0600) < 0 ||
        listen(listener, 4) < 0) { /* whatever the umask */
        int error = errno;
        close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

static void end_texts(struct control_message *message)
{
    message->target[sizeof(message->target) - 1] = '\0';
    message->source[sizeof(message->source) - 1] = '\0';
    message->type[sizeof(message->type) - 1] = '\0';
    message->options[sizeof(message->options) - 1] = '\0';
}

int control_take(int listener, struct control_message *message)
{
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (connection < 0)
        return -1;
    ssize_t got = recv(connection, message, sizeof(*message), 0);
    if (got == (ssize_t)sizeof(*message)) {
        end_texts(message);
        return connection;
    }
    int error = got < 0 ? errno : EPROTO;
    close(connection);
    errno = error;
    return -1;
}

int control_answer(int connection, int error, int fd)
{
    union rights rights = {.header = {.cmsg_len = CMSG_LEN(sizeof(fd)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {&error, sizeof(error)};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        memcpy(CMSG_DATA(&rights.header), &fd, sizeof(fd));
        message.msg_control = &rights;
        message.msg_controllen = sizeof(rights);
    }
    ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL);
    int why = errno;
    close(connection);
    errno = why;
    return sent < 0 ? -1 : 0;
}
