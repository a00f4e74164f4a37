/*
 * way_root.c - the paths of a process whose root is in a mount: what they lead to is found step by
 * step, and the call goes to that.
 */
#include <linux/openat2.h>

#include "core/fd.h"
#include "core/scan.h"
#include "core/walk.h"
#include "ways/cwd.h"
#include "ways/name.h"
#include "ways/root.h"
#include "ways/steps.h"
#include "ways/way_private.h"

/* ---- one path -------------------------------------------------------------------------------- */

/* What makes, removes or moves nothing, as "." and "..", must go on doing so. */
static bool ends_in_dots(const char *path)
{
    const char *slash = strrchr(path, '/');

    return df_scan_dots(slash ? slash + 1 : path) != 0;
}

/* The name that was walked, with what the path ended in. */
static long tell(const struct dfi_steps *s, bool dots, char path[PATH_MAX])
{
    size_t len = s->len;
    long ret;

    if (s->len == 0) {
        strcpy(path, dfi_steps_name(s));
        return 0;
    }
    ret = df_walk_join(path, s->done, len, dots ? "/." : s->rest);
    if (ret == 0 && s->dirfd != AT_FDCWD)
        memmove(path, path + 1, strlen(path));
    return ret;
}

static long walk(struct dfi_steps *s, int *dirfd, char path[PATH_MAX])
{
    bool dots = ends_in_dots(path);
    long ret = dfi_steps_walk(s, *dirfd, path);

    if (ret == DF_NOT_OURS && s->entered) { /* it has come out of a mount that is not the root's */
        *dirfd = AT_FDCWD;
        ret = dfi_steps_left(s, path);
    } else if (ret == 0) {
        ret = tell(s, dots, path);
        *dirfd = s->dirfd;
    }
    return ret;
}

long dfi_root_place(struct dfi_record *record, int *dirfd, char path[PATH_MAX], bool follows)
{
    struct dfi_steps s;

    dfi_steps_init(&s, record, true, 0);
    s.follows = follows;
    return walk(&s, dirfd, path);
}

long dfi_root_name(struct dfi_record *record, char path[PATH_MAX], bool follows)
{
    char name[PATH_MAX];
    int dirfd = AT_FDCWD;
    long ret;

    if (!dfi_root_begin(record))
        return DF_NOT_OURS;
    ret = dfi_root_place(record, &dirfd, path, follows);
    if (ret == 0 && path[0] != '/' && (ret = dfi_name_find(dirfd, name)) >= 0)
        ret = df_walk_join(path, name, (size_t)ret, path);
    dfi_root_end(record);
    return ret;
}

/* ---- legs ------------------------------------------------------------------------------------ */

/* Whether the last component of the path is an entry to make, remove or move, whatever it is. */
static bool is_entry(const struct dfi_way *way, const struct dfi_leg *leg)
{
    switch (way->frame->nr) {
    case __NR_mkdir:
    case __NR_mkdirat:
    case __NR_mknod:
    case __NR_mknodat:
    case __NR_unlink:
    case __NR_unlinkat:
    case __NR_rmdir:
    case __NR_rename:
    case __NR_renameat:
    case __NR_renameat2:
    case __NR_symlink:
    case __NR_symlinkat:
        return true;
    case __NR_link:
    case __NR_linkat:
        return leg != &way->leg[0];
    default:
        return false;
    }
}

bool dfi_root_begin_way(struct dfi_way *way)
{
    way->held = way->held || dfi_root_begin(&way->record);
    return way->held;
}

int dfi_way_take_root(struct dfi_way *way, struct dfi_leg *leg)
{
    struct dfi_steps s;
    int dirfd = dfi_fd_given(way->record.files, leg->dirfd);
    long ret;

    if (leg->text[0] != '/' && dfi_is_hidden(dfi_process(), leg->dirfd))
        return -EBADF;
    dfi_steps_init(&s, &way->record, true, 0);
    s.entry = is_entry(way, leg);
    s.follows = !dfi_way_is_of_link(way, leg);
    ret = walk(&s, &dirfd, leg->text);
    if (ret == DF_NOT_OURS)
        return 0;
    way->rooted = way->rooted || dfi_steps_inside(&s);
    leg->changed = true;
    leg->dirfd = dirfd;
    leg->len = (uint32_t)strlen(leg->text);
    return (int)ret;
}
