/*
 * A descriptor that one thread copies while another closes it: there is no copy, or one that reads
 * as every other. "ok", or how many copies did not.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 2, FIRST = 300, NUMBERS = 300 }; /* none is used again while somebody knows it */

static _Atomic int shown = -1;
static atomic_bool done;

static void *open_and_close(void *unused)
{
    for (int i = 0; !done; i++) {
        int fd = open("here", O_RDONLY);
        int last = fcntl(fd, F_DUPFD, FIRST + i % NUMBERS);

        close(fd);
        shown = last;
        for (volatile int spin = 0; spin < 200; spin++)
            ;
        shown = -1;
        close(last);
    }
    return unused;
}

static int copy(int fd, long round)
{
    switch (round % 3) {
    case 0:
        return dup(fd);
    case 1:
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    default:
        return dup2(fd, FIRST - 1);
    }
}

int main(void)
{
    struct timespec start, now;
    long copies = 0, wrong = 0;
    char text[4];
    int fd = open("here", O_RDWR | O_CREAT, 0600);
    pthread_t thread;

    if (write(fd, "text", 4) != 4 || close(fd) != 0 ||
        clock_gettime(CLOCK_MONOTONIC, &start) != 0 ||
        pthread_create(&thread, NULL, open_and_close, NULL) != 0)
        return 1;
    do {
        if ((fd = shown) >= 0 && (fd = copy(fd, copies)) >= 0) {
            copies++;
            wrong += pread(fd, text, 4, 0) != 4 || memcmp(text, "text", 4) != 0;
            close(fd);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < start.tv_sec + SECONDS);
    done = true;
    pthread_join(thread, NULL);
    if (wrong || !copies)
        printf("%ld of %ld ", wrong, copies);
    printf("%s\n", wrong || !copies ? "wrong" : "ok");
    return 0;
}
