/*
 * abandoned.c - a thread that ends a server which still mounts: when whoever waits for it has gone,
 * or by a signal.
 */
#include "process/abandoned.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/masked_thread.h"

static pthread_t thread;
static int control_fd;
static int signals_fd;
static int over_fd = -1; /* an eventfd; -1: nobody watches */

/* By SIGTERM, for others to clean up. Here it is blocked, and main() of a file system is under way:
 * there is nothing to be ended in order. A keeper starts no other then. */
static _Noreturn void end(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    kill(0, SIGTERM);
    _exit(1);
}

/* What has come when it is over is for who serves. */
static void *watch(void *unused)
{
    struct pollfd fds[] = {{.fd = control_fd},
                           {.fd = signals_fd, .events = POLLIN},
                           {.fd = over_fd, .events = POLLIN}};

    (void)unused;
    while (poll(fds, 3, -1) < 0)
        ;
    if (fds[2].revents == 0)
        end();
    return NULL;
}

static void close_all(void)
{
    close(signals_fd);
    close(over_fd);
    over_fd = -1;
}

void df_abandoned_watch(int control)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    control_fd = control;
    if ((over_fd = eventfd(0, EFD_CLOEXEC)) < 0)
        return;
    signals_fd = signalfd(-1, &ends, SFD_CLOEXEC);
    if (signals_fd < 0 || df_masked_thread_create(&thread, NULL, watch, NULL) != 0)
        close_all();
}

void df_abandoned_over(void)
{
    if (over_fd < 0)
        return;
    eventfd_write(over_fd, 1);
    pthread_join(thread, NULL);
    close_all();
}
