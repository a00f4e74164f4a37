/*
 * one_file.h - "file", which the processes of a test open and map.
 */
#ifndef ONE_FILE_H
#define ONE_FILE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_file(int flags)
{
    int fd = open("file", flags, 0666);

    if (fd < 0)
        _exit(3);
    return fd;
}

static char *map_shared(int fd, size_t size, int protection)
{
    char *memory = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        _exit(3);
    return memory;
}

#endif
