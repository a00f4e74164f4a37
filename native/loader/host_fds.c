/*
 * host_fds.c - descriptors that were open before a program began; see host_fds.h.
 */
#include "loader/host_fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

struct df_host_fd {
    int fd;
    uint32_t device[2]; /* major and minor */
    uint64_t inode;
};

/* What is known of it without its file system. False: it is closed. */
static bool look(int fd, struct df_host_fd *is)
{
    struct statx stx;
    int saved = errno;
    bool open = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stx) == 0;

    errno = saved;
    if (open)
        *is = (struct df_host_fd){fd, {stx.stx_dev_major, stx.stx_dev_minor}, stx.stx_ino};
    return open;
}

static int by_number(const void *a, const void *b)
{
    const struct df_host_fd *one = a, *two = b;

    return (one->fd > two->fd) - (one->fd < two->fd);
}

/* False: there is no memory. */
static bool add(struct df_host_fds *fds, size_t *room, int fd)
{
    struct df_host_fd is;

    if (!look(fd, &is))
        return true;
    if (fds->count == *room) {
        size_t more = *room ? 2 * *room : 32;
        void *list = realloc(fds->list, more * sizeof(is));

        if (!list)
            return false;
        fds->list = list;
        *room = more;
    }
    fds->list[fds->count++] = is;
    return true;
}

int df_host_fds_find(struct df_host_fds *fds)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    bool added = true;
    size_t room = 0;

    *fds = (struct df_host_fds){0};
    if (!all)
        return -errno;
    while (added && (entry = readdir(all))) {
        int fd = atoi(entry->d_name); /* "." and "..": 0, which is no program's to close */

        if (fd != 0 && fd != dirfd(all))
            added = add(fds, &room, fd);
    }
    closedir(all);
    if (!added) {
        df_host_fds_forget(fds);
        return -ENOMEM;
    }
    if (fds->count > 0)
        qsort(fds->list, fds->count, sizeof(*fds->list), by_number);
    return 0;
}

void df_host_fds_forget(struct df_host_fds *fds)
{
    free(fds->list);
    *fds = (struct df_host_fds){0};
}

bool df_host_fds_have(const struct df_host_fds *fds, int fd)
{
    const struct df_host_fd wanted = {.fd = fd}, *found = NULL;
    struct df_host_fd is;

    if (fds->count > 0)
        found = bsearch(&wanted, fds->list, fds->count, sizeof(wanted), by_number);
    return found && look(fd, &is) && is.inode == found->inode && is.device[0] == found->device[0] &&
           is.device[1] == found->device[1];
}
