/*
 * janitor.c - removes a helper's directory, and ends its program, when its host has ended without
 * doing so.
 *
 *   df-janitor DIRECTORY    standard input: the host, a pidfd; standard output: a socket, on which
 * a byte says that there is nothing to do, unless it comes with the pidfd of a process to be ended
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "directory.h"
#include "farewell.h"

enum { CHARGES_MAX = 4 };

struct charges {
    int pidfds[CHARGES_MAX];
    int count;
};

/* True: it was the byte that says that there is nothing to do. */
static int is_dismissed(struct charges *charges)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } rights;
    char byte;
    struct iovec iov = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)};

    if (recvmsg(1, &message, MSG_CMSG_CLOEXEC) != 1)
        return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header)
        return 1;
    if (charges->count < CHARGES_MAX)
        memcpy(&charges->pidfds[charges->count++], CMSG_DATA(header), sizeof(int));
    return 0;
}

/* True: the host is dead. The other end of the socket may close earlier, or live on in a child. */
static int host_died(struct charges *charges)
{
    struct pollfd ends[2] = {{.fd = 0, .events = POLLIN}, {.fd = 1, .events = POLLIN}};

    for (;;) {
        if (poll(ends, 2, -1) < 0)
            continue;
        if (ends[1].revents & POLLIN && is_dismissed(charges))
            return 0;
        if (ends[0].revents && !(ends[1].revents & POLLIN))
            return 1;
        if (ends[1].revents & POLLHUP)
            ends[1].fd = -1;
    }
}

int main(int argc, char *argv[])
{
    struct charges charges = {.count = 0};

    if (argc != 2)
        return 2;
    if (fork() == 0 && chdir("/") == 0 && host_died(&charges)) {
        directory_remove(argv[1]);
        for (int i = 0; i < charges.count; i++)
            farewell(charges.pidfds[i]);
    }
    return 0;
}
