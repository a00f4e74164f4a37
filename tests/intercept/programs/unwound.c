/*
 * unwound.c - what unwinds from a system call that a signal has ended, or that goes on behind its
 * handler: a backtrace, and a thread that is cancelled, whose functions have something to clean up.
 * Prints what was met. In a directory in which it can make FIFOs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int met, inside;

static const char *name_of(void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_sname ? info.dli_sname : "";
}

static void handler(int signal, siginfo_t *info, void *context)
{
    void *frames[64];
    int count = backtrace(frames, 64);
    (void)signal, (void)info;
    for (int i = 0; i < count; i++)
        met |= strcmp(name_of(frames[i]), "wait_for_it") == 0;
    inside = name_of((void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP])[0] != '\0';
}

/* Left by a signal, or when another thread writes. */
__attribute__((noinline)) ssize_t wait_for_it(int fd);
ssize_t wait_for_it(int fd)
{
    char byte;
    ssize_t got = read(fd, &byte, 1);
    __asm__ volatile("" : : : "memory");
    return got;
}

static pthread_t waiter;
static int pipes[2];
static const char *fifo;

static void sleep_some(void)
{
    usleep(20000);
}

static void *interrupt(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000 && !met; i++) {
        sleep_some();
        pthread_kill(waiter, SIGUSR1);
    }
    if (write(pipes[1], "x", 1) != 1)
        perror("write");
    return NULL;
}

static void interrupted(const char *what, int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    pthread_t other;
    char byte;
    sigaction(SIGUSR1, &action, NULL);
    waiter = pthread_self();
    met = 0;
    pthread_create(&other, NULL, interrupt, NULL);
    ssize_t got = wait_for_it(pipes[0]);
    printf("%s: %s, in a function %d, ", what, got == 1 ? "read" : strerror(errno), inside);
    pthread_join(other, NULL);
    printf("unwound %d\n", met);
    if (got != 1 && read(pipes[0], &byte, 1) != 1)
        perror("read");
}

static void cleaned(int *which)
{
    printf("cleaned %d\n", *which);
}

__attribute__((noinline)) static void *cancelled(void *how)
{
    int number __attribute__((cleanup(cleaned))) = *(int *)how;
    if (number == 1)
        wait_for_it(pipes[0]);
    else
        open(fifo, O_RDONLY); /* nobody writes */
    return NULL;
}

static void cancel(int number)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, cancelled, &number);
    sleep_some();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
}

int main(void)
{
    void *frames[4];
    fifo = "fifo";
    setvbuf(stdout, NULL, _IONBF, 0);
    backtrace(frames, 4); /* loads what it needs */
    if (pipe(pipes) != 0 || (mkfifo(fifo, 0600) != 0 && errno != EEXIST))
        return 1;
    for (int i = 0; i < 3; i++) { /* also where the site is rewritten */
        interrupted("ended", 0);
        interrupted("goes on", SA_RESTART);
        cancel(1);
        cancel(2);
    }
    return 0;
}
