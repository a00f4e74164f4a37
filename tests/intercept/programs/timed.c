/*
 * timed.c - signals that end calls on sockets with a timeout, which no SA_RESTART has begun anew;
 * and that do not end them where there is none: signal(7). Prints what each call says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
static const struct timeval long_enough = {5, 0};
static volatile sig_atomic_t handled;
static int to_be_read = -1;

/* What is restarted is not for ever. */
static void count(int signal)
{
    (void)signal;
    if (++handled == 3 && to_be_read >= 0)
        send(to_be_read, "text", 4, 0);
}

/* What has waited for the third signal has been begun anew, and else the first ends it. Some may
 * have come ahead of the call, or behind it. */
static void line(const char *what, long result)
{
    printf("%s: %s\n", what,
           result < 0     ? strerrorname_np(errno)
           : handled >= 3 ? "done, behind three signals"
                          : "done");
    fflush(stdout);
    handled = 0;
}

static void receive(const char *how, int socket)
{
    char text[16], control[64];
    struct sockaddr_un from;
    socklen_t size = sizeof(from);
    struct iovec piece = {text, sizeof(text)};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    struct mmsghdr several = {.msg_hdr = header};

    puts(how);
    line("recv", recv(socket, text, sizeof(text), 0));
    line("recvfrom", recvfrom(socket, text, sizeof(text), 0, (struct sockaddr *)&from, &size));
    header.msg_controllen = several.msg_hdr.msg_controllen = sizeof(control);
    line("recvmsg", recvmsg(socket, &header, 0));
    line("recvmmsg", recvmmsg(socket, &several, 1, 0, NULL));
}

static void meet(void)
{
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), waiting = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un from;
    socklen_t size = sizeof(from);

    bind(listening, (const struct sockaddr *)&name, sizeof(name));
    listen(listening, 0);
    setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof(long_enough));
    setsockopt(waiting, SOL_SOCKET, SO_SNDTIMEO, &long_enough, sizeof(long_enough));
    line("accept", accept(listening, (struct sockaddr *)&from, &size));
    for (int i = 0; i < 3; i++) /* until its queue is full */
        connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (const struct sockaddr *)&name,
                sizeof(name));
    handled = 0;
    line("connect", connect(waiting, (const struct sockaddr *)&name, sizeof(name)));
}

int main(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 30000}, {0, 30000}};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
        return 1;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    to_be_read = pair[1];
    receive("without a timeout", pair[0]);
    to_be_read = -1;
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof(long_enough));
    receive("with one", pair[0]);
    meet();
    return 0;
}
