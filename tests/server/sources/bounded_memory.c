/*
 * bounded_memory.c - preloaded into a mount server: its segment lies in a file system of bounded
 * size, DF_TEST_MEMORY, as it does in a machine that has no more shared memory to give.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int memfd_create(const char *name, unsigned flags)
{
    int (*real)(const char *, unsigned) = (int (*)(const char *, unsigned))next("memfd_create");
    int cloexec = flags & MFD_CLOEXEC ? O_CLOEXEC : 0;

    if (strcmp(name, "directfuse") != 0) /* the segment's */
        return real(name, flags);
    return open(getenv("DF_TEST_MEMORY"), O_TMPFILE | O_RDWR | cloexec, 0600);
}

/* Only a memfd can be sealed. */
int fcntl64(int fd, int op, ...)
{
    static int (*real)(int, int, ...);
    va_list args;
    void *arg;

    va_start(args, op);
    arg = va_arg(args, void *);
    va_end(args);
    if (op == F_ADD_SEALS)
        return 0;
    if (!real)
        real = (int (*)(int, int, ...))next("fcntl64");
    return real(fd, op, arg);
}

int fcntl(int fd, int op, ...) __attribute__((alias("fcntl64")));
