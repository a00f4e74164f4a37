/*
 * way_missing.c - a path that the kernel does not find: is it a directory above a mountpoint, or
 * may a real symlink on it lead into a mount?
 */
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "syscalls/cwd.h"
#include "syscalls/table.h"
#include "syscalls/way_private.h"

/* The absolute path of a leg that is the kernel's: its own, or put into `room`. NULL: it cannot lie
 * above a mount. */
static const char *absolute_text(const struct dfi_leg *leg, char room[PATH_MAX])
{
    const char *path = leg->path;
    ssize_t len;

    if (path[0] == '/')
        return path;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (leg->dirfd >= DF_FD_BASE || !df_table_may_begin(path, (size_t)(df_scan_end(path) - path)))
        return NULL;
    len = df_walk_directory_name(leg->at >= 0 ? leg->dirfd : AT_FDCWD, room);
    return len >= 0 && df_walk_join(room, room, (size_t)len, path) == 0 ? room : NULL;
}

/* A path that is the kernel's own: <shadow>/t/<path> instead of one that leads to nothing on disk
 * and lies above a mountpoint. True: it is in out. */
static bool find_above(const struct dfi_files *files, const struct dfi_leg *leg, char out[PATH_MAX])
{
    char room[PATH_MAX], text[PATH_MAX];
    const char *path = absolute_text(leg, room);
    struct df_scan scan;

    if (!path || df_scan(path, text, &scan) < 0 || scan.up)
        return false;
    return df_table_below(scan.text, scan.len) &&
           dfi_cwd_shadow(files, scan.text, scan.len, out) == 0;
}

bool dfi_way_look_above(struct dfi_way *way, long *ret)
{
    char out[PATH_MAX];
    const char *paths[2] = {out, NULL};
    const struct dfi_leg *leg = &way->leg[0];

    if (way->legs != 1 || !leg->path || !(dfi_calls[way->frame->nr].traits & DFI_LOOKS) ||
        !find_above(way->record.files, leg, out))
        return false;
    *ret = dfi_way_ask(way, paths);
    return true;
}

/* Directories that were there once, by a hash of their names: programs look for what is missing in
 * the same few. One that is replaced by a symlink into a mount meanwhile is taken for what it was.
 */
static _Atomic uint64_t *known_slot(struct dfi_files *files, const char *directory, uint64_t *hash)
{
    *hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *directory != '\0'; directory++)
        *hash = (*hash ^ (unsigned char)*directory) * UINT64_C(0x100000001b3);
    return &files->known[*hash % DFI_KNOWN];
}

/* Is this directory there? -1: it is missing, and no link that leads nowhere either. */
static int is_there(struct dfi_files *files, int dirfd, const char *directory)
{
    char target[1];
    uint64_t hash;
    _Atomic uint64_t *slot = known_slot(files, directory, &hash);
    bool absolute = directory[0] == '/'; /* others are another directory's the next time */
    long ret;

    if (absolute && atomic_load_explicit(slot, memory_order_relaxed) == hash)
        return 1;
    ret = dfi_kernel(__NR_readlinkat, dirfd, directory, target, 1);
    if (ret == -ENOENT)
        return -1;
    if (ret != -EINVAL && dfi_kernel(__NR_faccessat, dirfd, directory, 0) < 0)
        return 0;
    if (absolute)
        atomic_store_explicit(slot, hash, memory_order_relaxed);
    return 1;
}

/* Cuts the last name off. Is the directory there that it is in? As is_there(); 0 as well if it is
 * called as a mountpoint that may lie in there. */
static int go_up(struct dfi_files *files, int dirfd, char *path)
{
    char *slash = strrchr(path, '/');

    if (dfi_table_is_last(slash ? slash + 1 : path))
        return 0;
    if (!slash || slash == path)
        return 1;
    *slash = '\0';
    return is_there(files, dirfd, path);
}

/* Most that is not found is missing in a directory that is there, or that directory is: then the
 * name itself need not be looked at. */
bool dfi_way_may_lead(struct dfi_files *files, const struct dfi_leg *leg)
{
    char path[PATH_MAX], target[1];
    int dirfd = leg->at >= 0 ? leg->dirfd : AT_FDCWD, there;
    long ret;

    if (!leg->path || leg->path[0] == '\0' || dirfd >= DF_FD_BASE)
        return false;
    strcpy(path, leg->path);
    there = go_up(files, dirfd, path);
    if (there >= 0) {
        ret = dfi_kernel(__NR_readlinkat, dirfd, leg->path, target, 1);
        if (ret != -ENOENT)
            return ret >= 0 || ret == -ENOTDIR;
    }
    while (there < 0)
        there = go_up(files, dirfd, path);
    return there == 0;
}
