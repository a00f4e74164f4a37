/*
 * A number that one thread uses while dup2(2) of another gives it now a file of the mount, now one
 * on disk (the argument): what is written must come to one of them. "ok": next to nothing was lost.
 * A call that had passed before the number was replaced may still come to the placeholder, one in
 * some hundreds here (docs/run.md); where every call of a while does, it is one in ten and more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replacing.h"

enum { ONE_IN = 30 };

static long written;

static void *write_on(void *unused)
{
    while (!done) {
        written += write(AT, "x", 1) == 1;
        met = written > 0;
    }
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
    long lost;

    if (replace(here, there, write_on) != 0)
        return 1;
    lost = written - size_of(here) - size_of(there);
    if (lost > written / ONE_IN)
        printf("%ld of %ld ", lost, written);
    printf("%s\n", lost > written / ONE_IN ? "lost" : "ok");
    return 0;
}
