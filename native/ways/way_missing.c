/*
 * way_missing.c - a path that the kernel does not find: is it a directory above a mountpoint, or
 * may a real symlink on it lead into a mount?
 */
#include <linux/openat2.h>

#include "client/table.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "intercept/brief.h"
#include "intercept/run.h"
#include "ways/cwd.h"
#include "ways/way_private.h"

const char *dfi_way_asked(const struct dfi_way *way, unsigned which, int *dirfd)
{
    const struct dfi_leg *leg = &way->leg[which];
    const char *left = df_left_path((int)which);

    *dirfd = leg->at >= 0 && !left ? leg->dirfd : AT_FDCWD;
    if (left || !leg->path)
        return left;
    return leg->path[0] != '\0' && *dirfd < DF_FD_BASE ? leg->path : NULL;
}

/* The path in canonical form and absolute, if it may lie above a mount; *walked: only a walk tells
 * where it leads. */
static bool scan_asked(const char *path, int dirfd, bool *walked, char text[PATH_MAX],
                       struct df_scan *scan)
{
    char room[PATH_MAX];

    if (df_scan(path, text, scan) < 0)
        return false;
    if (path[0] == '/' && scan->up && !*walked && dfi_table_is_foreign(path, strlen(path)))
        return false;
    *walked = *walked || scan->up;
    if (path[0] == '/')
        return true;
    if (!*walked && !df_table_may_begin(scan->text, (size_t)(df_scan_end(scan->text) - scan->text)))
        return false;
    return df_walk_absolute(dirfd, path, room) == 0 && df_scan(room, text, scan) == 0;
}

/* Where a path leads that goes through a directory above a mountpoint and up again, if that is on
 * disk: the kernel, which does not find that directory, is asked for where it leads. */
static bool is_on_disk(const struct df_scan *scan, const char *text, size_t len, char out[PATH_MAX])
{
    bool slash = (scan->slash || scan->last != DF_LAST_NAME) && len > 1 && len + 1 < PATH_MAX;

    if (df_walk_real_entry(AT_FDCWD, text, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    strcpy(mempcpy(out, text, len), slash ? "/" : "");
    return true;
}

/* <shadow>/t/<path> instead of one that leads to nothing on disk and lies above a mountpoint, or
 * where one leads on disk. `walked`: a symlink may be on it. True: it is in out. */
static bool find_above(struct dfi_way *way, bool walked, char out[PATH_MAX])
{
    char text[PATH_MAX];
    struct df_scan scan;
    int dirfd;
    const char *path = dfi_way_asked(way, 0, &dirfd);
    ssize_t len = -1;

    if (!path || !scan_asked(path, dirfd, &walked, text, &scan))
        return false;
    if (walked) {
        len = df_walk_out(scan.text, scan.slash || !dfi_way_is_of_link(way, &way->leg[0]), text);
        if (len > 0 && is_on_disk(&scan, text, (size_t)len, out))
            return true;
        scan.text = text;
    } else {
        len = (ssize_t)scan.len;
    }
    return len > 0 && df_table_below(scan.text, (size_t)len) &&
           dfi_cwd_shadow(way->record.files, scan.text, (size_t)len, out) == 0;
}

bool dfi_way_look_above(struct dfi_way *way, bool walked, long *ret)
{
    char out[PATH_MAX];
    const char *paths[2] = {out, NULL};

    if (way->legs != 1 || !(dfi_calls[way->frame->nr].traits & DFI_LOOKS) ||
        !find_above(way, walked, out))
        return false;
    *ret = dfi_way_ask(way, paths);
    return true;
}

long dfi_way_try(int dirfd, const char *path, uint64_t resolve)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
    long fd = dfi_brief_if_left(__NR_openat2, dirfd, path, &how, sizeof(how));

    dfi_brief_close(fd);
    return fd < 0 ? fd : 0;
}

/* Where no symlink is on it, a path leads where its text says, which is no mount: then it is
 * missing for certain. One call, where there is no filter that might end who makes it. */
static bool is_plainly_missing(int dirfd, const char *path)
{
    long ret;

    if (!dfi_run_has(DFI_RUN_OPENAT2))
        return false;
    ret = dfi_way_try(dirfd, path, RESOLVE_NO_SYMLINKS);
    return ret == -ENOENT || ret == -ENOTDIR;
}

/* Opens that were in vain, up to VAIN_MOST, less those that met a symlink: a guess of what the next
 * one is. Threads may lose each other's counts. */
enum { VAIN_MOST = 4 };
static _Atomic unsigned vain DFI_HOT;

static void count_vain(unsigned count)
{
    atomic_store_explicit(&vain, count, memory_order_relaxed);
}

long dfi_way_open_restricted(const struct dfi_way *way, const char *path, uint64_t resolve)
{
    const struct open_how how = {
        .flags = (unsigned)way->opens, .mode = way->mode, .resolve = resolve};
    const struct dfi_leg *leg = &way->leg[0];
    const unsigned long *args = way->frame->args;
    unsigned long at = path || leg->at < 0 ? (unsigned long)AT_FDCWD : args[leg->at];

    dfi_linger_end(way->record.files);
    return dfi_kernel_wait6(__NR_openat2, at, path ? (unsigned long)path : args[leg->name],
                            (unsigned long)&how, sizeof(how), 0, 0);
}

long dfi_way_open_plainly(struct dfi_way *way, const char *path)
{
    unsigned before = atomic_load_explicit(&vain, memory_order_relaxed);
    long ret;

    if (before == 0 || !dfi_run_has(DFI_RUN_OPENAT2))
        return -ELOOP;
    ret = dfi_way_open_restricted(way, path, RESOLVE_NO_SYMLINKS);
    way->missing = ret == -ENOENT || ret == -ENOTDIR;
    if (ret == -ELOOP)
        count_vain(before - 1);
    return ret == -EINVAL ? -ELOOP : ret; /* openat2(2) knows flags that open(2) passes over */
}

/* Is this directory there? -1: it is missing, and no link that leads nowhere either. */
static int is_there(int dirfd, const char *directory)
{
    char target[1];
    long ret = dfi_kernel(__NR_readlinkat, dirfd, directory, target, 1);

    if (ret == -ENOENT)
        return -1;
    return ret == -EINVAL || dfi_kernel(__NR_faccessat, dirfd, directory, 0) == 0;
}

/* Cuts the last name off. Is the directory there that it is in? As is_there(); 0 as well if it is
 * called as a mountpoint that may lie in there. */
static int go_up(int dirfd, char *path)
{
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (dfi_table_is_last(name, strlen(name)))
        return 0;
    if (!slash || slash == path)
        return 1;
    *slash = '\0';
    return is_there(dirfd, path);
}

/* With symlinks on it. Most that is not found is missing in a directory that is there, or that
 * directory is: then the name itself need not be looked at. */
static bool may_lead(int dirfd, const char *asked)
{
    char path[PATH_MAX], target[1];
    int there;
    long ret;

    strcpy(path, asked);
    there = go_up(dirfd, path);
    if (there >= 0) {
        ret = dfi_kernel(__NR_readlinkat, dirfd, asked, target, 1);
        if (ret != -ENOENT)
            return ret >= 0 || ret == -ENOTDIR;
    }
    while (there < 0)
        there = go_up(dirfd, path);
    return there == 0;
}

bool dfi_way_is_missing(const struct dfi_way *way, unsigned which)
{
    int dirfd;
    const char *path = dfi_way_asked(way, which, &dirfd);

    return path && is_plainly_missing(dirfd, path);
}

bool dfi_way_may_lead(const struct dfi_way *way, unsigned which)
{
    int dirfd;
    const char *path = dfi_way_asked(way, which, &dirfd);
    bool missing = path && is_plainly_missing(dirfd, path);

    if (missing && way->opens >= 0)
        count_vain(VAIN_MOST);
    return path && !missing && may_lead(dirfd, path);
}
