/*
 * shadow.c - keeps a run's directory of placeholders, and removes it after `directfuse run`.
 */
#include "process/shadow.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WALK_FDS 32 /* deeper directories are opened again */

static int held = -1;

/* The directory around that of the placeholders. */
static bool outer_of(char path[PATH_MAX])
{
    const char *shadow = getenv("DIRECTFUSE_SHADOW"), *end = shadow ? strrchr(shadow, '/') : NULL;

    if (!end || end - shadow >= PATH_MAX)
        return false;
    memcpy(path, shadow, (size_t)(end - shadow));
    path[end - shadow] = '\0';
    return true;
}

/* What was made for one run, as /dev/shm itself was not. */
static bool is_of_a_run(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

void df_shadow_hold(void)
{
    char path[PATH_MAX];
    int fd;

    if (held >= 0 || !outer_of(path))
        return;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (is_of_a_run(fd) && flock(fd, LOCK_SH) == 0)
        held = fd;
    else
        close(fd);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    remove(path);
    return 0; /* what cannot be removed is not ours, and the rest is */
}

/* Programs that still run make what they miss there: not where it is gone. */
void df_shadow_leave(void)
{
    char path[PATH_MAX], gone[PATH_MAX];

    if (held < 0 || !outer_of(path) || flock(held, LOCK_EX | LOCK_NB) < 0)
        return;
    if (snprintf(gone, sizeof(gone), "%s.ended", path) < PATH_MAX && rename(path, gone) == 0)
        nftw(gone, drop, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
