/*
 * shadow_kept.c - the server's part of data files that are kept; see shadow_kept.h.
 */
#include "server/shadow_kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "process/memory_limit.h"
#include "server/server_private.h"

#define KEPT_FILES 64
#define KEPT_BYTES ((uint64_t)256 << 20)
#define PRUNE_PART 16 /* of the room: when so much more may be there */
#define KEPT_PART  8  /* and no more than this part of the shadow directory's file system */

struct kept {
    char name[96];
    struct timespec used; /* when its other name came or went */
    uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *one = &((const struct kept *)a)->used,
                          *two = &((const struct kept *)b)->used;

    return one->tv_sec != two->tv_sec
               ? (one->tv_sec < two->tv_sec ? 1 : -1)
               : (one->tv_nsec < two->tv_nsec) - (one->tv_nsec > two->tv_nsec);
}

/* The data, and its list of chunks. */
static void remove_kept(const struct df_server *server, int directory, const char *name)
{
    char path[PATH_MAX];

    unlinkat(directory, name, 0);
    if (snprintf(path, sizeof(path), "%s/l/%s", server->options->shadow, name) < PATH_MAX)
        unlink(path);
}

static DIR *open_kept(const struct df_server *server)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof(path), "%s/k", server->options->shadow);

    return size > 0 && size < PATH_MAX ? opendir(path) : NULL;
}

void df_shadow_kept_forget(const struct df_server *server, const struct df_ofd *ofd)
{
    DIR *directory = open_kept(server);
    const struct dirent *entry;
    char begin[64];
    int size =
        snprintf(begin, sizeof(begin), "%" PRIu32 ".%" PRIu64 ".", (uint32_t)ofd->mount, ofd->ino);

    while (directory && (entry = readdir(directory)))
        if (strncmp(entry->d_name, begin, (size_t)size) == 0)
            remove_kept(server, dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
}

/* Those that nobody has mapped; what the list has no room for goes. */
static size_t list_kept(const struct df_server *server, DIR *directory, struct kept *list,
                        size_t room)
{
    const struct dirent *entry;
    size_t count = 0;
    struct stat st;

    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(list->name) ||
            fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            st.st_nlink > 1)
            continue;
        if (count == room) {
            remove_kept(server, dirfd(directory), entry->d_name);
            continue;
        }
        strcpy(list[count].name, entry->d_name);
        list[count].used = st.st_ctim;
        list[count++].bytes = (uint64_t)st.st_blocks * 512;
    }
    return count;
}

static uint64_t room_for_kept(int fd)
{
    struct statvfs st;
    uint64_t part = fstatvfs(fd, &st) == 0 ? st.f_blocks * st.f_frsize / KEPT_PART : 0;

    return df_memory_share(part < KEPT_BYTES ? part : KEPT_BYTES);
}

static void prune(const struct df_server *server)
{
    struct kept list[2 * KEPT_FILES];
    DIR *directory = open_kept(server);
    uint64_t left;
    size_t count;

    if (!directory)
        return;
    count = list_kept(server, directory, list, 2 * KEPT_FILES);
    left = room_for_kept(dirfd(directory));
    qsort(list, count, sizeof(*list), by_use);
    for (size_t i = 0; i < count; i++)
        if (i < KEPT_FILES && list[i].bytes <= left) {
            left -= list[i].bytes;
        } else {
            left = 0;
            remove_kept(server, dirfd(directory), list[i].name);
        }
    closedir(directory);
}

/* Not at each close: to look at all that is kept takes longer than to map a small file. */
void df_shadow_kept_closed(struct df_server *server, uint64_t bytes)
{
    if (server->kept.often == 0)
        server->kept.often = df_memory_share(KEPT_BYTES) / PRUNE_PART;
    server->kept.files++;
    server->kept.bytes += bytes;
    if (server->kept.files < KEPT_FILES / 4 && server->kept.bytes < server->kept.often)
        return;
    server->kept.files = 0;
    server->kept.bytes = 0;
    prune(server);
}
