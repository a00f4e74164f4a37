/*
 * restricted.c - where openat2(2) with RESOLVE_ flags leads.
 *
 * The walk makes a name without links and dots of the path, and judges each step by the flags:
 * LOOKUP_* in fs/namei.c of the kernel. In a mount the name is then opened from directory to
 * directory, each held open and no link followed, so that it ends where the walk was allowed to go
 * whatever others rename meanwhile. What ends outside of all mounts is the kernel's: the path as it
 * was given, or, behind a mount, what is left of it.
 */
#include "syscalls/restricted.h"

#include <fcntl.h>
#include <string.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "syscalls/known.h"
#include "syscalls/name.h"

#define OUTSIDE (-1) /* dfi_restricted.mount */

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

/* `done` for native/core. */
static const char *name_of(const struct dfi_restricted *r)
{
    if (r->dirfd == AT_FDCWD)
        return r->len > 0 ? r->done : "/";
    return r->len > 0 ? r->done + 1 : ".";
}

/* ---- places ---------------------------------------------------------------------------------- */

static int mount_of(const struct dfi_restricted *r)
{
    const struct df_table_entry *entry;

    if (r->dirfd != AT_FDCWD)
        return r->mount;
    entry = r->len > 0 ? df_table_lookup(r->done, r->len) : NULL;
    return entry ? entry->id : OUTSIDE;
}

/* `done` is another place now: 0 or -EXDEV. */
static long arrive(struct dfi_restricted *r)
{
    int before = r->mount;

    r->mount = mount_of(r);
    r->entered = r->entered || r->mount != OUTSIDE;
    return r->mount != before && is(r, RESOLVE_NO_XDEV) ? -EXDEV : 0;
}

static int push(struct dfi_restricted *r, const char *name, size_t len)
{
    if (r->len + 1 + len >= PATH_MAX)
        return -ENAMETOOLONG;
    r->done[r->len] = '/';
    memcpy(r->done + r->len + 1, name, len);
    r->len += 1 + len;
    r->done[r->len] = '\0';
    return 0;
}

static void pop(struct dfi_restricted *r)
{
    while (r->done[--r->len] != '/')
        ;
    r->done[r->len] = '\0';
    r->mount = mount_of(r);
}

/* The length of the link that is there, -EINVAL: it is none, or -errno. Outside of mounts every
 * error is the kernel's to find, but for what there is above a mountpoint alone. */
static long read_link(const struct dfi_restricted *r, char target[PATH_MAX])
{
    long ret;

    if (r->mount != OUTSIDE) {
        ret = df_call_readlinkat(r->dirfd, name_of(r), target, PATH_MAX - 1);
        return ret == DF_NOT_OURS ? -EAGAIN : ret;
    }
    ret = df_walk_link(name_of(r), target);
    if (ret < 0 && ret != -EINVAL)
        return df_table_below(r->done, r->len) ? -EINVAL : DF_NOT_OURS;
    return ret;
}

/* "." and ".." are of directories that may be searched. 0 or why not. */
static long check_directory(struct dfi_restricted *r)
{
    char target[PATH_MAX];
    long ret;

    if ((ret = push(r, ".", 1)) < 0)
        return ret;
    ret = read_link(r, target);
    r->done[r->len -= 2] = '\0';
    if (ret == DF_NOT_OURS && df_table_below(r->done, r->len))
        return 0;
    return ret == -EINVAL ? 0 : ret;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* nd_jump_root() */
static long jump_to_root(struct dfi_restricted *r)
{
    if (is(r, RESOLVE_BENEATH))
        return -EXDEV;
    if (!is(r, RESOLVE_IN_ROOT))
        r->dirfd = AT_FDCWD;
    r->done[r->len = r->floor] = '\0';
    return arrive(r);
}

/* Links of /proc lead to what they are of, whatever name they have for it. */
static bool is_in_proc(const struct dfi_restricted *r)
{
    return r->mount == OUTSIDE && strncmp(r->done, "/proc/", 6) == 0 &&
           r->how->resolve != RESOLVE_CACHED;
}

/* pick_link() */
static long follow(struct dfi_restricted *r, char target[PATH_MAX], long len)
{
    long ret;

    if (++r->links > DF_LINKS_MAX || is(r, RESOLVE_NO_SYMLINKS))
        return -ELOOP;
    if (is_in_proc(r))
        return DF_NOT_OURS;
    pop(r);
    target[len] = '\0';
    ret = df_walk_join(r->rest, target, (size_t)len, r->rest);
    return ret == 0 && target[0] == '/' ? jump_to_root(r) : ret;
}

static long step_down(struct dfi_restricted *r, const char *name, size_t len)
{
    bool last = r->rest[strspn(r->rest, "/")] == '\0', slash = r->rest[0] == '/';
    char target[PATH_MAX];
    long ret;

    if (last && slash && r->how->flags & O_CREAT && r->mount != OUTSIDE)
        return -EISDIR;
    if ((ret = push(r, name, len)) < 0 || (ret = arrive(r)) < 0)
        return ret;
    ret = read_link(r, target);
    if (ret >= 0)
        return last && !slash && !follows(r) ? 0 : follow(r, target, ret);
    return ret == -EINVAL || (last && ret == -ENOENT) ? 0 : ret;
}

/* handle_dots() */
static long step_up(struct dfi_restricted *r)
{
    long ret;

    if (is_scoped(r) && r->len == r->floor)
        return is(r, RESOLVE_BENEATH) ? -EXDEV : 0;
    if (r->len == 0 && r->dirfd != AT_FDCWD) {
        if ((ret = dfi_name_find(r->dirfd, r->done)) < 0)
            return ret;
        r->dirfd = AT_FDCWD;
        r->len = (size_t)ret;
    }
    if (r->len > 0)
        while (r->done[--r->len] != '/')
            ;
    r->done[r->len] = '\0';
    return arrive(r);
}

static long step(struct dfi_restricted *r)
{
    const char *from = r->rest + strspn(r->rest, "/"), *end = df_scan_end(from);
    char name[PATH_MAX];
    unsigned dots = df_scan_dots(from);
    size_t len = (size_t)(end - from);
    long ret;

    *(char *)mempcpy(name, from, len) = '\0';
    if (dots != 0 && (ret = check_directory(r)) < 0)
        return ret;
    memmove(r->rest, end, strlen(end) + 1);
    return dots == 0 ? step_down(r, name, len) : dots == 2 ? step_up(r) : 0;
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
    ret = dfi_way_begin(&r->way, frame);
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

static long begin_at_fd(struct dfi_restricted *r)
{
    const struct dfi_record *record = &r->way.record;
    const struct dfi_leg *leg = &r->way.leg[0];
    const struct df_ofd *ofd = dfi_ofd(record->files, dfi_record_handle(record, leg->dirfd));

    if (!ofd)
        return -EBADF;
    r->dirfd = leg->dirfd;
    r->mount = ofd->mount;
    r->entered = true;
    strcpy(r->rest, leg->path);
    return 0;
}

/* At the root, or at the working directory in a mount, whose name stands before the path. */
static void begin_at_name(struct dfi_restricted *r)
{
    const struct dfi_leg *leg = &r->way.leg[0];

    r->len = r->absolute ? 0 : strlen(leg->text) - leg->len - 1;
    memcpy(r->done, leg->text, r->len);
    strcpy(r->rest, leg->text + r->len);
}

static long begin_at_real(struct dfi_restricted *r)
{
    ssize_t len = df_walk_directory_name(r->way.leg[0].dirfd, r->done);

    if (len < 0)
        return DF_NOT_OURS;
    r->len = (size_t)len;
    strcpy(r->rest, r->way.leg[0].path);
    return 0;
}

/* path_init() */
static long begin(struct dfi_restricted *r)
{
    const struct dfi_leg *leg = &r->way.leg[0];
    long ret = 0;

    if (r->absolute && is(r, RESOLVE_BENEATH))
        return -EXDEV;
    if (r->absolute && leg->changed)
        return refuse_magic(r);
    r->dirfd = AT_FDCWD;
    r->len = 0;
    if (leg->dirfd >= DF_FD_BASE)
        ret = begin_at_fd(r);
    else if (leg->text[0] == '/')
        begin_at_name(r);
    else
        ret = begin_at_real(r);
    r->done[r->len] = '\0';
    r->mount = mount_of(r);
    r->entered = r->entered || r->mount != OUTSIDE;
    r->floor = is_scoped(r) ? r->len : 0;
    return ret;
}

long dfi_restricted_walk(struct dfi_restricted *r, struct dfi_frame *frame,
                         const struct open_how *how)
{
    long ret;

    r->how = how;
    r->entered = false;
    r->links = 0;
    if ((ret = take(r, frame)) < 0 || (ret = begin(r)) < 0)
        return ret;
    while (ret == 0 && r->rest[strspn(r->rest, "/")] != '\0')
        ret = step(r);
    if (ret < 0)
        return ret;
    return r->mount == OUTSIDE ? DF_NOT_OURS : 0;
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
    size_t point = r->dirfd == AT_FDCWD ? df_table_lookup(r->done, r->len)->point_len : 0;

    return point > r->floor ? point : r->floor;
}

/* To the directory of the last component. */
static long enter_all(struct dfi_restricted *r, size_t fixed, const char *last)
{
    int dirfd = r->dirfd;
    char *at = r->done + fixed, *end;
    long ret = 0;

    if (dirfd == AT_FDCWD) {
        *at = '\0';
        ret = enter(r, AT_FDCWD, r->done, 0);
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

/* A link there was none of when the walk came by is not followed. The flags of the file are those
 * that were asked for. */
static long open_last(struct dfi_restricted *r, const char *last)
{
    const struct dfi_record *record = &r->way.record;
    int dirfd = record->foreign ? DF_FD_BASE + DFI_FD_FOREIGN : r->dirfd;
    int flags = (int)r->how->flags, added = O_NOFOLLOW | (r->rest[0] == '/' ? O_DIRECTORY : 0);
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
    const char *last = r->len > fixed ? strrchr(r->done, '/') + 1 : NULL;
    long ret = 0;

    leg->dirfd = r->dirfd;
    leg->path = name_of(r);
    leg->len = (uint32_t)strlen(leg->path);
    leg->changed = leg->empty = false;
    if (is(r, RESOLVE_CACHED) && !is_known(r))
        return -EAGAIN;
    if (!last)
        return df_call_openat(r->dirfd, leg->path, (int)r->how->flags, (mode_t)r->how->mode);
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
    const char *path = r->done + r->floor;

    if (!r->entered)
        return dfi_kernel_wait(__NR_openat2, a[0], a[1], r->how, sizeof(*r->how));
    if (df_walk_join(r->done, r->done, r->len, r->rest) < 0)
        return -ENAMETOOLONG;
    if (is_scoped(r))
        path += strspn(path, "/");
    return dfi_kernel_wait(__NR_openat2, is_scoped(r) ? a[0] : (unsigned long)AT_FDCWD,
                           path[0]        ? path
                           : is_scoped(r) ? "."
                                          : "/",
                           r->how, sizeof(*r->how));
}
