/*
 * interrupted_memory.c - preloaded into a mount server: each of its fallocate(2) is interrupted by
 * a signal the first time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate64(int fd, int mode, off_t at, off_t size)
{
    static int calls;

    if (calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, size);
}

int fallocate(int fd, int mode, off_t at, off_t size) __attribute__((alias("fallocate64")));
