/*
 * restricted.c - where openat2(2) with RESOLVE_ flags leads.
 *
 * The walk (steps.h) makes a name without links and dots of the path. In a mount that is then
 * opened from directory to directory, each held open and no link followed, so that it ends where
 * the walk was allowed to go whatever others rename meanwhile. What ends outside of all mounts is
 * the kernel's: the path as it was given, or, behind a mount, what is left of it.
 */
#include "ways/restricted.h"

#include <fcntl.h>
#include <string.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "ways/known.h"
#include "ways/root.h"

static bool is(const struct dfi_restricted *r, uint64_t flags)
{
    return r->how->resolve & flags;
}

static bool is_scoped(const struct dfi_restricted *r)
{
    return is(r, RESOLVE_BENEATH | RESOLVE_IN_ROOT);
}

static bool follows(const struct dfi_restricted *r)
{
    return !(r->how->flags & O_NOFOLLOW) &&
           (r->how->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Takes the path, that of RESOLVE_IN_ROOT without the slashes it begins with: they mean nothing. */
static long take(struct dfi_restricted *r, struct dfi_frame *frame)
{
    unsigned long given = frame->args[1];
    size_t slashes = 0;
    int first;
    long ret;

    while ((first = dfi_byte_at((char *)given + slashes)) == '/' && slashes < PATH_MAX)
        slashes++;
    r->absolute = slashes > 0 && !is(r, RESOLVE_IN_ROOT);
    if (slashes > 0 && !r->absolute)
        frame->args[1] = first == '\0' ? (unsigned long)"." : given + slashes;
    ret = dfi_way_begin_unwalked(&r->way, frame);
    frame->args[1] = given;
    if (ret == 0 && !r->way.leg[0].path)
        return -EFAULT;
    if (ret == 0 && r->way.leg[0].path[0] == '\0' && !r->way.leg[0].empty)
        return -ENOENT;
    return ret;
}

/* A name for an open file of ours, /proc/self/fd/5 and its like. */
static long refuse_magic(const struct dfi_restricted *r)
{
    if (is(r, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS))
        return -ELOOP;
    return is(r, RESOLVE_NO_XDEV) ? -EXDEV : -EAGAIN;
}

static long walk(struct dfi_restricted *r)
{
    const struct dfi_leg *leg = &r->way.leg[0];

    dfi_steps_init(&r->at, &r->way.record, r->way.held, r->how->resolve);
    r->at.follows = follows(r);
    r->at.makes = r->how->flags & O_CREAT;
    return dfi_steps_walk(&r->at, leg->dirfd, leg->path);
}

/* path_init(), and the walk: once more where the name of the working directory was in its way. */
static long walk_from_start(struct dfi_restricted *r)
{
    const struct dfi_leg *leg = &r->way.leg[0];
    long ret;

    if (r->absolute && is(r, RESOLVE_BENEATH))
        return -EXDEV;
    if (r->absolute && leg->changed)
        return refuse_magic(r);
    ret = walk(r);
    if (ret == -EACCES && !r->absolute && leg->dirfd == AT_FDCWD && dfi_way_open_cut_off(&r->way))
        ret = walk(r);
    return ret;
}

long dfi_restricted_walk(struct dfi_restricted *r, struct dfi_frame *frame,
                         const struct open_how *how)
{
    long ret;

    r->how = how;
    r->at.entered = false;
    if ((ret = take(r, frame)) < 0)
        return ret;
    return walk_from_start(r);
}

/* ---- in a mount ------------------------------------------------------------------------------ */

/* Goes to the directory, which is way.record.foreign from now on instead of the last one. */
static long enter(struct dfi_restricted *r, int dirfd, const char *name, int flags)
{
    long ret = df_call_openat(dirfd, name, O_PATH | O_DIRECTORY | flags, 0);

    if (r->way.record.foreign)
        dfi_way_shut(&r->way);
    if (ret < 0)
        return ret == DF_NOT_OURS ? -EAGAIN : ret;
    r->way.record.foreign = r->way.record.opened->host[DFI_HOST_HANDLE];
    return 0;
}

/* What of `done` needs no walk: the directory it begins at, or the mountpoint. */
static size_t fixed_len(const struct dfi_restricted *r)
{
    size_t point;

    if (r->at.dirfd != AT_FDCWD)
        return 0;
    point = df_table_lookup(r->at.done, r->at.len)->point_len;
    return point > r->at.floor ? point : r->at.floor;
}

/* To the directory of the last component. */
static long enter_all(struct dfi_restricted *r, size_t fixed, const char *last)
{
    int dirfd = r->at.dirfd;
    char *at = r->at.done + fixed, *end;
    long ret = 0;

    if (dirfd == AT_FDCWD) {
        *at = '\0';
        ret = enter(r, AT_FDCWD, r->at.done, 0);
        *at = '/';
        dirfd = DF_FD_BASE + DFI_FD_FOREIGN;
    }
    for (; ret == 0 && at + 1 < last; at = end) {
        end = (char *)df_scan_end(at + 1);
        *end = '\0';
        ret = enter(r, dirfd, at + 1, O_NOFOLLOW);
        *end = '/';
        dirfd = DF_FD_BASE + DFI_FD_FOREIGN;
    }
    return ret;
}

/* A link there was none of when the walk came by is not followed. A slash is left behind dots alone
 * where a file would be made, and what they lead to is a directory. The flags of the file are those
 * that were asked for. */
static long open_last(struct dfi_restricted *r, const char *last)
{
    const struct dfi_record *record = &r->way.record;
    int dirfd = record->foreign ? DF_FD_BASE + DFI_FD_FOREIGN : r->at.dirfd;
    int flags = (int)r->how->flags;
    bool directory = r->at.rest[0] == '/' && !(flags & O_CREAT);
    int added = O_NOFOLLOW | (directory ? O_DIRECTORY : 0);
    long ret = df_call_openat(dirfd, last, flags | added, (mode_t)r->how->mode);
    struct df_ofd *ofd;

    if (ret < 0)
        return (ret == -ELOOP && follows(r)) || ret == DF_NOT_OURS ? -EAGAIN : ret;
    ofd = dfi_ofd(record->files, record->opened->host[DFI_HOST_HANDLE]);
    if (ofd)
        atomic_fetch_and(&ofd->flags, ~(added & ~flags));
    return ret;
}

/* The attributes lie in shared memory: nobody has to be asked for the way. */
static bool is_known(struct dfi_restricted *r)
{
    struct stat st;
    long ret;

    return dfi_known_stat(&r->way, &st, follows(r) ? 0 : AT_SYMLINK_NOFOLLOW, &ret);
}

long dfi_restricted_open(struct dfi_restricted *r)
{
    struct dfi_leg *leg = &r->way.leg[0];
    size_t fixed = fixed_len(r);
    const char *last = r->at.len > fixed ? strrchr(r->at.done, '/') + 1 : NULL;
    long ret = 0;

    leg->dirfd = r->at.dirfd;
    leg->path = dfi_steps_name(&r->at);
    leg->len = (uint32_t)strlen(leg->path);
    leg->changed = leg->empty = false;
    if (is(r, RESOLVE_CACHED) && !is_known(r))
        return -EAGAIN;
    if (!last)
        return df_call_openat(r->at.dirfd, leg->path, (int)r->how->flags, (mode_t)r->how->mode);
    ret = enter_all(r, fixed, last);
    if (ret == 0)
        ret = open_last(r, last);
    if (r->way.record.foreign)
        dfi_way_shut(&r->way);
    return ret;
}

/* ---- outside --------------------------------------------------------------------------------- */

long dfi_restricted_pass(struct dfi_restricted *r)
{
    const unsigned long *a = r->way.frame->args;
    const char *path = r->at.done + r->at.floor;

    if (!r->at.entered)
        return dfi_kernel_wait(__NR_openat2, a[0], a[1], r->how, sizeof(*r->how));
    if (df_walk_join(r->at.done, r->at.done, r->at.len, r->at.rest) < 0)
        return -ENAMETOOLONG;
    if (is_scoped(r))
        path += strspn(path, "/");
    return dfi_kernel_wait(__NR_openat2, is_scoped(r) ? a[0] : (unsigned long)AT_FDCWD,
                           path[0]        ? path
                           : is_scoped(r) ? "."
                                          : "/",
                           r->how, sizeof(*r->how));
}
