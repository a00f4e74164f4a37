/*
 * hooks_connection.c - a guest's sockets and pipes: remembered from their making (belongings.h), so
 * that their other ends see the program go; and no SIGPIPE, whose default would end the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loader/guest.h"
#include "loader/hooks.h"

static int noted(int fd)
{
    struct df_guest *guest = df_guest_current();
    if (guest && fd >= 0)
        df_belongings_add_fd(&guest->belongings, fd);
    return fd;
}

static int noted_pair(int result, const int pair[2])
{
    if (result == 0) {
        noted(pair[0]);
        noted(pair[1]);
    }
    return result;
}

static int hook_socket(int domain, int type, int protocol)
{
    return noted(socket(domain, type, protocol));
}

static int hook_socketpair(int domain, int type, int protocol, int pair[2])
{
    return noted_pair(socketpair(domain, type, protocol, pair), pair);
}

static int hook_accept(int fd, struct sockaddr *address, socklen_t *size)
{
    return noted(accept(fd, address, size));
}

static int hook_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return noted(accept4(fd, address, size, flags));
}

static int hook_pipe(int pair[2])
{
    return noted_pair(pipe(pair), pair);
}

static int hook_pipe2(int pair[2], int flags)
{
    return noted_pair(pipe2(pair, flags), pair);
}

static int hook_dup(int fd)
{
    return noted(dup(fd));
}

/* ---- writing to them ------------------------------------------------------------------------ */

static bool is_socket(int fd)
{
    struct df_guest *guest = df_guest_current();
    return guest && df_belongings_have_socket(&guest->belongings, fd);
}

/* A pipe has no such flag: the thread blocks the signal, which is sent to it alone, and takes it.
 * One that it has had before stays. */
struct quiet {
    sigset_t before;
    bool is_pipe, had;
};

static void sigpipe(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

static void begin_quiet(struct quiet *quiet, int fd)
{
    struct df_guest *guest = df_guest_current();
    sigset_t set;
    quiet->is_pipe = guest && df_belongings_have_pipe(&guest->belongings, fd);
    if (!quiet->is_pipe)
        return;
    quiet->had = sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1;
    sigpipe(&set);
    pthread_sigmask(SIG_BLOCK, &set, &quiet->before);
}

/* What was written, or -1. */
static ssize_t end_quiet(const struct quiet *quiet, ssize_t result)
{
    const struct timespec now = {0, 0};
    int error = errno;
    sigset_t set;
    if (!quiet->is_pipe)
        return result;
    sigpipe(&set);
    if (result < 0 && error == EPIPE && !quiet->had)
        sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = error;
    return result;
}

ssize_t df_hooks_write_connection(int fd, const void *data, size_t size)
{
    struct quiet quiet;
    if (is_socket(fd))
        return send(fd, data, size, MSG_NOSIGNAL);
    begin_quiet(&quiet, fd);
    return end_quiet(&quiet, write(fd, data, size));
}

ssize_t df_hooks_writev_connection(int fd, const struct iovec *iov, int count)
{
    struct quiet quiet;
    if (!is_socket(fd)) {
        begin_quiet(&quiet, fd);
        return end_quiet(&quiet, writev(fd, iov, count));
    }
    const struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static bool send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

int df_hooks_print_connection(int fd, const char *format, va_list arguments)
{
    char *text;
    struct quiet quiet;
    if (!is_socket(fd)) {
        begin_quiet(&quiet, fd);
        return (int)end_quiet(&quiet, vdprintf(fd, format, arguments));
    }
    int size = vasprintf(&text, format, arguments);
    if (size < 0)
        return -1;
    bool sent = send_all(fd, text, (size_t)size);
    int error = errno;
    free(text);
    errno = error;
    return sent ? size : -1;
}

static ssize_t hook_send(int fd, const void *data, size_t size, int flags)
{
    return send(fd, data, size, df_guest_current() ? flags | MSG_NOSIGNAL : flags);
}

static ssize_t hook_sendto(int fd, const void *data, size_t size, int flags,
                           const struct sockaddr *address, socklen_t length)
{
    return sendto(fd, data, size, df_guest_current() ? flags | MSG_NOSIGNAL : flags, address,
                  length);
}

static ssize_t hook_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return sendmsg(fd, message, df_guest_current() ? flags | MSG_NOSIGNAL : flags);
}

const struct df_hook df_hooks_connection[] = {
    {"socket", hook_socket},
    {"socketpair", hook_socketpair},
    {"accept", hook_accept},
    {"accept4", hook_accept4},
    {"pipe", hook_pipe},
    {"pipe2", hook_pipe2},
    {"dup", hook_dup},
    {"send", hook_send},
    {"sendto", hook_sendto},
    {"sendmsg", hook_sendmsg},
    {NULL, NULL},
};
