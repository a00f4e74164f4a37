/*
 * abandoned.c - a thread that waits for the end of whoever waits for this server.
 */
#include "server/abandoned.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/masked_thread.h"

static pthread_t thread;
static int control_fd;
static int over_fd = -1; /* an eventfd; -1: nobody watches */

/* SIGTERM, for others to clean up. Here it is blocked, and main() of a file system is under way:
 * there is nothing to be ended in order. A keeper starts no other then. */
static void *watch(void *unused)
{
    struct pollfd fds[] = {{.fd = control_fd}, {.fd = over_fd, .events = POLLIN}};

    (void)unused;
    while (poll(fds, 2, -1) < 0)
        ;
    if (fds[1].revents == 0) {
        kill(0, SIGTERM);
        _exit(1);
    }
    return NULL;
}

void df_abandoned_watch(int control)
{
    if (control < 0 || (over_fd = eventfd(0, EFD_CLOEXEC)) < 0)
        return;
    control_fd = control;
    if (df_masked_thread_create(&thread, NULL, watch, NULL) == 0)
        return;
    close(over_fd);
    over_fd = -1;
}

void df_abandoned_over(void)
{
    if (over_fd < 0)
        return;
    eventfd_write(over_fd, 1);
    pthread_join(thread, NULL);
    close(over_fd);
    over_fd = -1;
}
