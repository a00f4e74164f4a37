/*
 * survey.c - choosing the files that are timed in a file system that holds some already.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "site.h"

enum { ENTRIES_MAX = 5000, DEPTH_MAX = 32, LIST_BUFFER = 32768 };

struct survey {
    struct site *site;
    int entries; /* seen so far */
    int deepest;
};

static void keep(char **slot, const char *path)
{
    char *copy = strdup(path);

    if (copy) {
        free(*slot);
        *slot = copy;
    }
}

static void see_file(struct survey *survey, const char *path, int depth)
{
    struct site *site = survey->site;
    struct stat st;

    if (site->door->fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return;
    if (!site->deep2)
        keep(&site->deep2, path);
    if (depth > survey->deepest) {
        survey->deepest = depth;
        keep(&site->deep4, path);
    }
    if (!site->data || st.st_size > site->data_size) {
        site->data_size = st.st_size;
        keep(&site->data, path);
    }
}

static void see_directory(struct survey *survey, const char *path, int depth);

static bool is_dots(const struct dirent64 *entry)
{
    return strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
}

static void see_entry(struct survey *survey, const char *directory, const struct dirent64 *entry,
                      int depth)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
        return;
    survey->entries++;
    if (entry->d_type == DT_DIR && depth < DEPTH_MAX)
        see_directory(survey, path, depth + 1);
    else if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
        see_file(survey, path, depth);
    free(path);
}

/* All of one buffer of records; how many. */
static int see_records(struct survey *survey, const char *path, const char *buf, ssize_t size,
                       int depth)
{
    int count = 0;

    for (ssize_t at = 0; at < size && survey->entries < ENTRIES_MAX;) {
        const struct dirent64 *entry = (const struct dirent64 *)(buf + at);
        at += entry->d_reclen;
        if (is_dots(entry))
            continue;
        see_entry(survey, path, entry, depth);
        count++;
    }
    return count;
}

static void see_directory(struct survey *survey, const char *path, int depth)
{
    const struct door *door = survey->site->door;
    int fd = door->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), count = 0;
    char *buf = malloc(LIST_BUFFER);
    ssize_t got;

    while (fd >= 0 && buf && survey->entries < ENTRIES_MAX &&
           (got = door->getdents(fd, buf, LIST_BUFFER)) > 0)
        count += see_records(survey, path, buf, got, depth);
    if (fd >= 0)
        door->close(fd);
    free(buf);
    if (count > survey->site->crowd_size) {
        survey->site->crowd_size = count;
        keep(&survey->site->crowd, path);
    }
}

int site_find(struct site *site, const struct site_plan *plan)
{
    struct survey survey = {.site = site};
    int flags = (plan->direct ? O_DIRECT : 0) | (plan->scribble ? O_RDWR : O_RDONLY);

    *site = (struct site){.door = plan->door, .fd = -1, .found = true};
    site->buf = aligned_alloc(SITE_SMALL, SITE_BUFFER);
    see_directory(&survey, plan->root, 1);
    if (!site->buf || !site->deep2 || !site->deep4 || !site->data || !site->crowd) {
        errno = site->buf ? ENOENT : ENOMEM;
        return -1;
    }
    keep(&site->large, site->data);
    if (plan->scribble)
        memset(site->buf, 'x', SITE_BUFFER);
    site->fd = plan->door->openat(AT_FDCWD, site->data, flags | O_CLOEXEC, 0);
    return site->fd < 0 ? -1 : 0;
}
