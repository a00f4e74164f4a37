/*
 * unborn.c - looks through /proc for who has a socket.
 */
#include "process/unborn.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NULL: there is none, or it is not ours to see. */
static DIR *open_below(int directory, const char *path)
{
    int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *opened = fd < 0 ? NULL : fdopendir(fd);

    if (!opened && fd >= 0)
        close(fd);
    return opened;
}

static bool has(int proc, const char *pid, const char *socket)
{
    char path[sizeof(((struct dirent *)0)->d_name) + sizeof("/fd")], link[64];
    const struct dirent *entry;
    bool found = false;
    DIR *fds;

    snprintf(path, sizeof(path), "%s/fd", pid);
    fds = open_below(proc, path);
    while (!found && fds && (entry = readdir(fds))) {
        ssize_t size = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link) - 1);

        link[size < 0 ? 0 : size] = '\0';
        found = strcmp(link, socket) == 0;
    }
    if (fds)
        closedir(fds);
    return found;
}

bool df_unborn_may_live(uint64_t socket)
{
    const struct dirent *entry;
    unsigned holders = 0;
    char name[64];
    DIR *proc;

    if (socket == 0)
        return false;
    snprintf(name, sizeof(name), "socket:[%" PRIu64 "]", socket);
    proc = open_below(AT_FDCWD, "/proc");
    while (proc && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]) && has(dirfd(proc), entry->d_name, name))
            holders++;
    if (proc)
        closedir(proc);
    return holders != 1; /* the parent */
}
