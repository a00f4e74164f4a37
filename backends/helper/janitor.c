/*
 * janitor.c - removes a helper's directory when its host has ended without doing so.
 *
 *   df-janitor DIRECTORY    standard input: the host, a pidfd; standard output: a socket, on which
 * a byte says that there is nothing to remove
 */
#include <poll.h>
#include <unistd.h>

#include "directory.h"

/* True: the host is dead. The other end of the socket may close earlier, or live on in a child. */
static int host_died(void)
{
    struct pollfd ends[2] = {{.fd = 0, .events = POLLIN}, {.fd = 1, .events = POLLIN}};
    char byte;

    for (;;) {
        if (poll(ends, 2, -1) < 0)
            continue;
        if (ends[1].revents && read(1, &byte, 1) == 1)
            return 0;
        if (ends[0].revents)
            return 1;
        if (ends[1].revents)
            ends[1].fd = -1;
    }
}

int main(int argc, char *argv[])
{
    if (argc != 2)
        return 2;
    if (fork() == 0 && chdir("/") == 0 && host_died())
        directory_remove(argv[1]);
    return 0;
}
