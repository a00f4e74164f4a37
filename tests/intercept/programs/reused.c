/*
 * A number that one thread reads by while dup2(2) of another gives it now a file of the mount, now
 * one on disk (the argument): there is always one of them that it reads from. (Whether it reads
 * anything is another question: docs/run.md.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replacing.h"

static long failed, of_here, of_there;

static void *read_on(void *unused)
{
    struct stat st;
    char text[8];

    while (!done) {
        ssize_t got = pread(AT, text, sizeof(text), 0);

        of_here += got == 4 && memcmp(text, "here", 4) == 0;
        of_there += got == 5 && memcmp(text, "there", 5) == 0;
        failed += got < 0;
        failed += fstat(AT, &st) < 0;
        met = of_here > 0 && of_there > 0;
    }
    return unused;
}

static int make(const char *path, const char *text)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    return write(fd, text, strlen(text)) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
    int here = make("here", "here"), there = make(argv[argc - 1], "there");

    if (replace(here, there, read_on) != 0)
        return 1;
    printf("of both: %d, failed %ld\n", of_here > 0 && of_there > 0, failed);
    return 0;
}
