/*
 * shadow.c - keeps a run's directory of placeholders, and removes it after `directfuse run`.
 */
#include "server/shadow.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WALK_FDS 32 /* deeper directories are opened again */

static int held = -1;

void df_shadow_hold(void)
{
    const char *path = getenv("DIRECTFUSE_SHADOW");

    if (!path || held >= 0)
        return;
    held = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (held >= 0)
        flock(held, LOCK_SH);
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
    const char *path = getenv("DIRECTFUSE_SHADOW");
    char gone[PATH_MAX];

    if (held < 0 || flock(held, LOCK_EX | LOCK_NB) < 0)
        return;
    if (snprintf(gone, sizeof(gone), "%s.ended", path) < PATH_MAX && rename(path, gone) == 0)
        nftw(gone, drop, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
