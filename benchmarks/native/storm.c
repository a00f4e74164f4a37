/*
 * storm.c - a metadata storm, as mdtest's: many names made, looked at and removed, spread over
 * SITE_STORM directories at depth 3.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "workload.h"

enum { PATH_ROOM = 4096, DIGITS = 8 };

/* "ROOT/storm/X/Y/n-00000000"; the digits are filled in, because formatting would cost more than
 * what is timed. */
struct name {
    char text[PATH_ROOM];
    char *x, *y, *digits;
};

static int name_begin(struct name *name, const struct site *site)
{
    int size = snprintf(name->text, sizeof(name->text), "%s/0/0/n-00000000", site->storm);

    if (size < 0 || size >= PATH_ROOM) {
        errno = ENAMETOOLONG;
        return -1;
    }
    name->digits = name->text + size - DIGITS;
    name->y = name->digits - 4;
    name->x = name->y - 2;
    return 0;
}

static const char *name_of(struct name *name, uint64_t i)
{
    *name->x = (char)('0' + i % 4);
    *name->y = (char)('0' + i / 4 % 4);
    for (int d = 0; d < DIGITS; d++)
        name->digits[d] = "0123456789abcdef"[i >> (4 * (DIGITS - 1 - d)) & 15];
    return name->text;
}

static int for_each(const struct site *site, uint64_t count,
                    int (*act)(const struct door *, const char *path))
{
    struct name name;

    if (name_begin(&name, site) != 0)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        if (act(site->door, name_of(&name, i)) != 0)
            return -1;
    }
    return 0;
}

static int make(const struct door *door, const char *path)
{
    int fd = door->openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    return fd < 0 ? -1 : door->close(fd);
}

static int look(const struct door *door, const char *path)
{
    struct stat st;

    return door->fstatat(AT_FDCWD, path, &st, 0);
}

static int remove_file(const struct door *door, const char *path)
{
    return door->unlinkat(AT_FDCWD, path, 0);
}

static int make_directory(const struct door *door, const char *path)
{
    return door->mkdirat(AT_FDCWD, path, 0700);
}

static int remove_directory(const struct door *door, const char *path)
{
    return door->unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

#define STORM(name, act)                                                                           \
    int storm_##name(const struct workload *self, struct site *site, uint64_t count)               \
    {                                                                                              \
        (void)self;                                                                                \
        return for_each(site, count, act);                                                         \
    }

STORM(make, make)
STORM(stat, look)
STORM(remove, remove_file)
STORM(mkdir, make_directory)
STORM(rmdir, remove_directory)
