/*
 * way_disk.c - paths on disk that lead to an open file of a mount, by a symlink to /dev/stdout or
 * by "..", or to the working directory: the kernel, which walks them, comes to the placeholder or
 * to the shadow.
 *
 * A placeholder is a file: the kernel comes to one by a link at the end of the path, and finds
 * ENOTDIR below it. Of the link openat2(2) tells, which refuses to follow links of /proc; and the
 * answer of stat(2) has the device that placeholders lie on. Before other calls it is asked for.
 * What may lead to a placeholder is walked up to the link of /proc, from which the call goes on.
 *
 * In the shadow of a directory the kernel finds next to nothing. But a name can be made there, and
 * of what has a shadow itself attributes are told.
 */
#include <linux/openat2.h>
#include <sys/sysmacros.h>

#include "core/walk.h"
#include "intercept/run.h"
#include "shadows/shadow.h"
#include "ways/cwd.h"
#include "ways/steps.h"
#include "ways/way_private.h"

static bool leads_back(struct dfi_way *way, unsigned which)
{
    struct dfi_leg *leg = &way->leg[which], before = *leg;
    struct dfi_steps s;
    int dirfd;
    const char *path = dfi_way_asked(way, which, &dirfd);

    dfi_steps_init(&s, &way->record, false, 0);
    s.follows = !dfi_way_is_of_link(way, leg);
    if (!path || dfi_steps_walk(&s, dirfd, path) != DF_NOT_OURS || dfi_steps_left(&s, s.done) < 0)
        return false;
    if (dfi_way_goes_on(way, leg, s.done))
        return true;
    *leg = before; /* the kernel is to be asked as it was */
    return false;
}

/* Of two paths no link at the end of the second one is followed. */
static bool follows_last(const struct dfi_way *way)
{
    char target[1];
    int dirfd;
    const char *path = dfi_way_asked(way, 0, &dirfd);

    return path && !dfi_way_is_of_link(way, &way->leg[0]) &&
           dfi_kernel(__NR_readlinkat, dirfd, path, target, 1) > 0;
}

/* ---- opens ----------------------------------------------------------------------------------- */

long dfi_way_open_on_disk(struct dfi_way *way, const char *path)
{
    long ret;

    if (!dfi_run_has(DFI_RUN_OPENAT2))
        return -ELOOP;
    ret = dfi_way_open_restricted(way, path, RESOLVE_NO_MAGICLINKS);
    way->back = ret == -ELOOP && leads_back(way, 0);
    return ret == -EINVAL ? -ELOOP : ret;
}

/* ---- other calls ----------------------------------------------------------------------------- */

static bool tells_device(long nr)
{
    return nr == __NR_stat || nr == __NR_lstat || nr == __NR_newfstatat || nr == __NR_statx;
}

/* What such a call has told the program of. */
static bool is_on_shadows_device(const struct dfi_way *way)
{
    const unsigned long *a = way->frame->args;
    struct statx stx;
    dev_t device;

    if (way->frame->nr != __NR_statx)
        return dfi_copy_from(&device, (const void *)a[way->leg[0].name + 1], sizeof(device)) == 0 &&
               dfi_shadow_is_device(way->record.files, device);
    return dfi_copy_from(&stx, (const void *)a[4], sizeof(stx)) == 0 &&
           dfi_shadow_is_device(way->record.files, makedev(stx.stx_dev_major, stx.stx_dev_minor));
}

_Static_assert(offsetof(struct stat, st_dev) == 0, "what stat(2) tells begins with the device");

static bool changes_names(long nr)
{
    return dfi_calls[nr].traits & DFI_NAMES;
}

/* The directory that the path's last name is in; false: it names none. */
static bool directory_of(const char *path, char directory[PATH_MAX])
{
    size_t len = strlen(path);

    while (len > 0 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    *(char *)mempcpy(directory, path, len) = '\0';
    return len > 0;
}

static bool directory_leads_back(struct dfi_way *way, unsigned which)
{
    char directory[PATH_MAX];
    int dirfd;
    const char *path = dfi_way_asked(way, which, &dirfd);

    if (!path || !directory_of(path, directory))
        return false;
    if (dfi_run_has(DFI_RUN_OPENAT2) &&
        dfi_way_try(dirfd, directory, RESOLVE_NO_MAGICLINKS) != -ELOOP)
        return false;
    return leads_back(way, which);
}

void dfi_way_look_for_names(struct dfi_way *way)
{
    if (!dfi_cwd_is_ours(way->record.files) || !changes_names(way->frame->nr))
        return;
    for (unsigned i = 0; i < way->legs; i++)
        way->back = directory_leads_back(way, i) || way->back;
}

void dfi_way_look_before(struct dfi_way *way)
{
    way->back = !tells_device(way->frame->nr) && follows_last(way) && leads_back(way, 0);
    dfi_way_look_for_names(way);
}

/* What is not in the shadow of the working directory may be in the directory. */
static void look_for_missing(struct dfi_way *way)
{
    way->missing = dfi_way_is_missing(way, 0);
    way->back = !way->missing && directory_leads_back(way, 0);
}

void dfi_way_look_after(struct dfi_way *way, long ret)
{
    bool stands = dfi_cwd_is_ours(way->record.files);

    if (ret == -ENOENT && stands && way->legs == 1 && !changes_names(way->frame->nr))
        look_for_missing(way);
    else if (ret == -ENOTDIR)
        for (unsigned i = 0; i < way->legs; i++)
            way->back = leads_back(way, i) || way->back;
    else if (ret == 0 && tells_device(way->frame->nr) && is_on_shadows_device(way))
        way->back = (stands || follows_last(way)) && leads_back(way, 0);
}
