/*
 * farewell.c - see farewell.h.
 */
#include "farewell.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void farewell(int pidfd)
{
    static const struct {
        int patience; /* ms */
        int signal;   /* after that */
    } steps[] = {{10000, SIGTERM}, {5000, SIGKILL}, {1000, 0}};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct pollfd ended = {.fd = pidfd, .events = POLLIN};
        if (poll(&ended, 1, steps[i].patience) > 0)
            return;
        syscall(SYS_pidfd_send_signal, pidfd, steps[i].signal, NULL, 0);
    }
}
