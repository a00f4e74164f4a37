/*
 * memory_limit.c - finds the cgroup whose memory limit is the smallest of those that hold here.
 *
 * /proc/self/cgroup says where the process is in a hierarchy, /proc/self/mountinfo where that is
 * mounted and from which directory on: a container is mostly shown a part of it. The limits of all
 * directories above hold as well.
 */
#include "process/memory_limit.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARE       8  /* part of the limit */
#define MARGIN_PART 16 /* the same */

struct hierarchy {
    const char *type;     /* of the file system */
    const char *limit;    /* name of the file in a directory */
    char own[PATH_MAX];   /* where the process is in it */
    char root[PATH_MAX];  /* of what is mounted of it */
    char point[PATH_MAX]; /* where */
};

static struct hierarchy *hierarchy_of(int version)
{
    struct hierarchy *h = calloc(1, sizeof(*h));

    if (h) {
        h->type = version == 2 ? "cgroup2" : "cgroup";
        h->limit = version == 2 ? "memory.max" : "memory.limit_in_bytes";
    }
    return h;
}

/* Whether the word is in the list, between commas. */
static bool lists(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* A line of /proc/self/cgroup: "4:memory:/path", or "0::/path" of version 2. */
static bool read_own(struct hierarchy *h, char *line)
{
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

    if (!path)
        return false;
    *path++ = '\0';
    if (strcmp(h->type, "cgroup2") == 0 ? names[1] != '\0' : !lists(names + 1, "memory"))
        return false;
    return snprintf(h->own, sizeof(h->own), "%s", path) < PATH_MAX;
}

/* A line of /proc/self/mountinfo: "36 35 0:30 ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS". */
static bool read_mount(struct hierarchy *h, char *line)
{
    char *behind = strstr(line, " - "), type[16], options[256];

    if (!behind || sscanf(behind, " - %15s %*s %255s", type, options) != 2 ||
        strcmp(type, h->type) != 0 || (strcmp(type, "cgroup") == 0 && !lists(options, "memory")))
        return false;
    return sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->point) == 2;
}

static bool find(struct hierarchy *h, const char *file, bool (*read)(struct hierarchy *, char *))
{
    FILE *lines = fopen(file, "re");
    bool found = false;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    while (lines && !found && (len = getline(&line, &size, lines)) > 0) {
        line[len - 1] = '\0';
        found = read(h, line);
    }
    free(line);
    if (lines)
        fclose(lines);
    return found;
}

/* The directory of the process, by a path of ours. One outside of what is mounted here is the
 * mount's own, as far as we can know. */
static bool place(const struct hierarchy *h, char directory[PATH_MAX])
{
    size_t len = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    bool inside = strncmp(h->own, h->root, len) == 0 && (h->own[len] == '/' || !h->own[len]);
    int size = snprintf(directory, PATH_MAX, "%s%s", h->point, inside ? h->own + len : "");

    return size > 0 && size < PATH_MAX;
}

/* UINT64_MAX: there is none ("max", or no such file). */
static uint64_t limit_in(const char *directory, const char *name)
{
    char path[PATH_MAX];
    unsigned long long bytes;
    FILE *file = NULL;
    bool read;

    if (snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX)
        file = fopen(path, "re");
    read = file && fscanf(file, "%llu", &bytes) == 1;
    if (file)
        fclose(file);
    return read ? bytes : UINT64_MAX;
}

/* Upwards, to where it is mounted. */
static void look_in(const struct hierarchy *h, struct df_memory_limit *least)
{
    char directory[PATH_MAX];
    size_t top = strlen(h->point);

    if (!place(h, directory))
        return;
    for (;;) {
        uint64_t bytes = limit_in(directory, h->limit);
        char *slash = strrchr(directory, '/');

        if (bytes < least->bytes) {
            least->bytes = bytes;
            strcpy(least->directory, directory);
        }
        if (strlen(directory) <= top || !slash)
            return;
        *slash = '\0';
    }
}

static uint64_t memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

bool df_memory_limit_find(struct df_memory_limit *limit)
{
    limit->bytes = memory_of_machine();
    limit->directory[0] = '\0';
    for (int version = 1; version <= 2; version++) {
        struct hierarchy *h = hierarchy_of(version);

        if (h && find(h, "/proc/self/cgroup", read_own) &&
            find(h, "/proc/self/mountinfo", read_mount))
            look_in(h, limit);
        free(h);
    }
    return limit->directory[0] != '\0';
}

/* Of version 2, else of version 1, which has other names. */
static uint64_t used_in(const char *directory)
{
    uint64_t bytes = limit_in(directory, "memory.current");

    return bytes != UINT64_MAX ? bytes : limit_in(directory, "memory.usage_in_bytes");
}

/* The kernel's copies of files on disk. In version 1 the sums with those of cgroups below have
 * names of their own, and come later. */
static uint64_t files_in(const char *directory)
{
    uint64_t own = 0, total = 0;
    unsigned long long bytes;
    char path[PATH_MAX], name[64];
    FILE *file = NULL;

    if (snprintf(path, sizeof(path), "%s/memory.stat", directory) < PATH_MAX)
        file = fopen(path, "re");
    while (file && fscanf(file, "%63s %llu", name, &bytes) == 2) {
        if (strcmp(name, "active_file") == 0 || strcmp(name, "inactive_file") == 0)
            own += bytes;
        if (strcmp(name, "total_active_file") == 0 || strcmp(name, "total_inactive_file") == 0)
            total += bytes;
    }
    if (file)
        fclose(file);
    return total > 0 ? total : own;
}

bool df_memory_is_scarce(const struct df_memory_limit *limit)
{
    uint64_t used = used_in(limit->directory), enough = limit->bytes - limit->bytes / MARGIN_PART;

    return used != UINT64_MAX && used > enough && used > enough + files_in(limit->directory);
}

uint64_t df_memory_share(uint64_t bytes)
{
    struct df_memory_limit limit;

    if (!df_memory_limit_find(&limit) || limit.bytes / SHARE > bytes)
        return bytes;
    return limit.bytes / SHARE;
}
