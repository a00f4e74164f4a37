/*
 * storm.c - signals at a high rate, handlers that do I/O, threads that do I/O: storm THREADS
 * SIGNALS. Prints what must be the same in every run.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_long handled, failures;
static long wanted;
static int pipe_ends[2];
static _Thread_local long own; /* a handler must run on the thread it interrupted */

static void expect(int good)
{
    if (!good)
        atomic_fetch_add(&failures, 1);
}

static void on_signal(int signal)
{
    char byte = 's', back;
    long before = ++own;
    expect(signal == SIGALRM || signal == SIGUSR1);
    expect(write(pipe_ends[1], &byte, 1) == 1);
    expect(read(pipe_ends[0], &back, 1) == 1);
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    expect(fd >= 0 && close(fd) == 0);
    expect(own >= before);
    atomic_fetch_add(&handled, 1);
}

static void *work(void *argument)
{
    char text[64];
    (void)argument;
    while (atomic_load(&handled) < wanted) {
        int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        expect(fd >= 0);
        ssize_t size = read(fd, text, sizeof text);
        expect(size == sizeof text && text[0] >= '0' && text[0] <= '9');
        expect(lseek(fd, 0, SEEK_CUR) == sizeof text);
        expect(close(fd) == 0);
        expect(getppid() > 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    int count = argc > 1 ? atoi(argv[1]) : 4;
    wanted = argc > 2 ? atol(argv[2]) : 2000;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_interval.tv_usec = 100, .it_value.tv_usec = 100};
    if (pipe(pipe_ends) != 0)
        return 2;
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (atomic_load(&handled) < wanted) {
        pthread_kill(threads[handled % count], SIGUSR1);
        getppid();
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("failures %ld, handled enough %d\n", atomic_load(&failures), handled >= wanted);
    return 0;
}
