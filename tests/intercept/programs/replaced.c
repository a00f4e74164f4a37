/*
 * A number that one thread uses while dup2(2) of another gives it now a file of the mount, now one
 * on disk (the argument): what is written must come to one of them. "ok": next to nothing was lost.
 * A call that had passed before the number was replaced may still come to the placeholder, one in
 * some hundreds here (docs/run.md); where every call of a while does, it is one in ten and more.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT = 90, TIMES = 50000, ONE_IN = 30 };

static atomic_int done;
static long written;

static void *write_on(void *unused)
{
    while (!done)
        written += write(AT, "x", 1) == 1;
    return unused;
}

static long size_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 ? 0 : (long)st.st_size;
}

int main(int argc, char **argv)
{
    int flags = O_RDWR | O_CREAT | O_APPEND, here = open("here", flags, 0600);
    int there = open(argv[argc - 1], flags, 0600);
    pthread_t thread;
    long lost;

    if (here < 0 || there < 0 || dup2(here, AT) < 0 ||
        pthread_create(&thread, NULL, write_on, NULL))
        return 1;
    for (int i = 0; i < TIMES; i++)
        if (dup2(i % 2 ? here : there, AT) != AT)
            return 1;
    done = 1;
    pthread_join(thread, NULL);
    lost = written - size_of(here) - size_of(there);
    if (lost > written / ONE_IN)
        printf("%ld of %ld ", lost, written);
    printf("%s\n", lost > written / ONE_IN ? "lost" : "ok");
    return 0;
}
