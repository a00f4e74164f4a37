/*
 * steps.c - a walk one component at a time; each step is judged by the flags of openat2(2):
 * LOOKUP_* in fs/namei.c of the kernel.
 */
#include "ways/steps.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "ways/cwd.h"
#include "ways/name.h"
#include "ways/root.h"

#define ROOT (DF_FD_BASE + DFI_FD_ROOT)

static bool is(const struct dfi_steps *s, uint64_t flags)
{
    return s->resolve & flags;
}

static bool is_scoped(const struct dfi_steps *s)
{
    return is(s, RESOLVE_BENEATH | RESOLVE_IN_ROOT);
}

const char *dfi_steps_name(const struct dfi_steps *s)
{
    if (s->dirfd == AT_FDCWD)
        return s->len > 0 ? s->done : "/";
    return s->len > 0 ? s->done + 1 : ".";
}

/* Where the kernel is asked. What begins at an open directory is a mount's, also if that is gone.
 */
static bool is_outside(const struct dfi_steps *s)
{
    return s->dirfd == AT_FDCWD && s->mount == DFI_STEPS_OUTSIDE;
}

/* ---- places ---------------------------------------------------------------------------------- */

static int mount_of_file(const struct dfi_steps *s, int dirfd)
{
    const struct dfi_record *record = s->record;
    const struct df_ofd *ofd = dfi_ofd(record->files, dfi_record_handle(record, dirfd));

    return ofd ? ofd->mount : DFI_STEPS_OUTSIDE;
}

static int mount_of(const struct dfi_steps *s)
{
    const struct df_table_entry *entry;

    if (s->dirfd != AT_FDCWD)
        return s->mount;
    entry = s->len > 0 ? df_table_lookup(s->done, s->len) : NULL;
    return entry ? entry->id : DFI_STEPS_OUTSIDE;
}

/* Whether that is in a mount that lies below the root, of which root bytes of the name are. */
static const struct df_table_entry *nested_at(const char *name, size_t len, size_t root)
{
    const struct df_table_entry *entry = df_table_lookup(name, len);

    return entry && entry->point_len > root ? entry : NULL;
}

/* A name that is the root's, or below it, goes on from the root: nothing leads above it there. */
static void be_in_root(struct dfi_steps *s)
{
    size_t root = dfi_root_covers(s->record, s->done, s->len);

    if (root == 0 || (s->floor > 0 && s->floor < root) || nested_at(s->done, s->len, root))
        return;
    memmove(s->done, s->done + root, s->len - root + 1);
    s->len -= root;
    s->floor = s->floor > root ? s->floor - root : 0;
    s->dirfd = ROOT;
    s->mount = mount_of_file(s, ROOT);
}

/* In another mount it goes on by its name: open directories know of theirs only. */
static void be_nested(struct dfi_steps *s)
{
    const struct df_table_entry *entry;
    char name[PATH_MAX];
    long root = dfi_root_join(s->record, s->done, name);

    if (root <= 0 || !(entry = nested_at(name, (size_t)root + s->len, (size_t)root)))
        return;
    memcpy(s->done, name, (size_t)root + s->len + 1);
    s->len += (size_t)root;
    s->floor += is_scoped(s) ? (size_t)root : 0;
    s->dirfd = AT_FDCWD;
    s->mount = entry->id;
}

static void settle(struct dfi_steps *s)
{
    if (s->rooted && s->dirfd == AT_FDCWD)
        be_in_root(s);
    else if (s->nested && s->dirfd == ROOT)
        be_nested(s);
}

bool dfi_steps_inside(const struct dfi_steps *s)
{
    return s->dirfd == ROOT ||
           (s->nested && s->dirfd == AT_FDCWD && dfi_root_covers(s->record, s->done, s->len) > 0);
}

/* `done` is another place now: 0 or -EXDEV. */
static long arrive(struct dfi_steps *s)
{
    int before = s->mount;

    s->mount = mount_of(s);
    settle(s);
    s->entered = s->entered || !is_outside(s);
    return s->mount != before && is(s, RESOLVE_NO_XDEV) ? -EXDEV : 0;
}

/* A mountpoint is a directory: nobody need be asked. */
static bool is_mountpoint(const struct dfi_steps *s)
{
    const struct df_table_entry *entry = df_table_lookup(s->done, s->len);

    return s->dirfd == AT_FDCWD && entry && entry->point_len == s->len;
}

/* The length of the link that is there, -EINVAL: it is none, or -errno. Outside of mounts every
 * error is the kernel's to find, but for what there is above a mountpoint alone. */
static long read_link(const struct dfi_steps *s, char target[PATH_MAX])
{
    long ret;

    if (is_mountpoint(s))
        return -EINVAL;
    if (!is_outside(s)) {
        ret = df_call_readlinkat(s->dirfd, dfi_steps_name(s), target, PATH_MAX - 1);
        return ret == DF_NOT_OURS ? -EAGAIN : ret;
    }
    ret = df_walk_link(dfi_steps_name(s), target);
    if (ret < 0 && ret != -EINVAL)
        return df_table_below(s->done, s->len) ? -EINVAL : DF_NOT_OURS;
    return ret;
}

/* "." and ".." are of directories that may be searched. 0 or why not. */
static long check_directory(struct dfi_steps *s)
{
    char target[PATH_MAX];
    long ret;

    if ((ret = df_walk_down(s->done, &s->len, ".", 1)) < 0)
        return ret;
    ret = read_link(s, target);
    df_walk_up(s->done, &s->len);
    if (ret == DF_NOT_OURS && df_table_below(s->done, s->len))
        return 0;
    return ret == -EINVAL ? 0 : ret;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void be_at_root(struct dfi_steps *s)
{
    s->dirfd = s->rooted ? ROOT : AT_FDCWD;
    if (s->rooted)
        s->mount = mount_of_file(s, s->dirfd);
}

/* nd_jump_root() */
static long jump_to_root(struct dfi_steps *s)
{
    int before = s->mount;
    long ret;

    if (is(s, RESOLVE_BENEATH))
        return -EXDEV;
    if (!is(s, RESOLVE_IN_ROOT))
        be_at_root(s);
    s->done[s->len = s->floor] = '\0';
    ret = arrive(s);
    return s->mount != before && is(s, RESOLVE_NO_XDEV) ? -EXDEV : ret;
}

/* Links of /proc lead to what they are of, whatever name they have for it; but for these two, which
 * lead to the name of a directory there. */
static bool is_in_proc(const struct dfi_steps *s)
{
    return is_outside(s) && strncmp(s->done, "/proc/", 6) == 0 && s->resolve != RESOLVE_CACHED &&
           strcmp(s->done + 6, "self") != 0 && strcmp(s->done + 6, "thread-self") != 0;
}

/* pick_link() */
static long follow(struct dfi_steps *s, char target[PATH_MAX], long len)
{
    long ret;

    if (++s->links > DF_LINKS_MAX || is(s, RESOLVE_NO_SYMLINKS))
        return -ELOOP;
    if (is_in_proc(s))
        return DF_NOT_OURS;
    df_walk_up(s->done, &s->len);
    s->mount = mount_of(s);
    target[len] = '\0';
    ret = df_walk_join(s->rest, target, (size_t)len, s->rest);
    return ret == 0 && target[0] == '/' ? jump_to_root(s) : ret;
}

static long step_down(struct dfi_steps *s, const char *name, size_t len)
{
    bool last = s->rest[strspn(s->rest, "/")] == '\0', slash = s->rest[0] == '/';
    char target[PATH_MAX];
    long ret;

    if (last && slash && s->makes && !is_outside(s))
        return (ret = check_directory(s)) < 0 ? ret : -EISDIR;
    ret = df_walk_down(s->done, &s->len, name, len);
    if (ret < 0 || (ret = arrive(s)) < 0 || (last && s->entry))
        return ret;
    ret = read_link(s, target);
    if (ret >= 0)
        return last && !slash && !s->follows ? 0 : follow(s, target, ret);
    return ret == -EINVAL || (last && ret == -ENOENT) ? 0 : ret;
}

/* What begins at an open directory goes by its name from now on. */
static long take_name(struct dfi_steps *s)
{
    char name[PATH_MAX];
    long ret = dfi_name_find(s->dirfd, name);

    if (ret < 0)
        return ret;
    if (df_walk_join(s->done, name, (size_t)ret, s->done) < 0)
        return -ENAMETOOLONG;
    s->dirfd = AT_FDCWD;
    s->len += (size_t)ret;
    settle(s);
    return 0;
}

/* An open directory that the way up may leave, or that the root may lie below. */
static bool wants_name(const struct dfi_steps *s)
{
    return !is_scoped(s) && s->dirfd != AT_FDCWD && s->dirfd != ROOT && (s->len == 0 || s->rooted);
}

/* handle_dots() */
static long step_up(struct dfi_steps *s)
{
    long ret;

    if (is_scoped(s) && s->len == s->floor)
        return is(s, RESOLVE_BENEATH) ? -EXDEV : 0;
    if (wants_name(s) && (ret = take_name(s)) < 0)
        return ret;
    if (s->len == 0 && s->dirfd == ROOT)
        return 0;
    df_walk_up(s->done, &s->len);
    return arrive(s);
}

static long step(struct dfi_steps *s)
{
    const char *from = s->rest + strspn(s->rest, "/"), *end = df_scan_end(from);
    char name[PATH_MAX];
    unsigned dots = df_scan_dots(from);
    size_t len = (size_t)(end - from);
    long ret;

    *(char *)mempcpy(name, from, len) = '\0';
    if (dots != 0 && (ret = check_directory(s)) < 0)
        return ret;
    memmove(s->rest, end, strlen(end) + 1);
    return dots == 0 ? step_down(s, name, len) : dots == 2 ? step_up(s) : 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

void dfi_steps_init(struct dfi_steps *s, struct dfi_record *record, bool rooted, uint64_t resolve)
{
    s->record = record;
    s->resolve = resolve;
    s->follows = true;
    s->makes = s->entry = s->entered = false;
    s->rooted = rooted;
    s->nested = rooted && dfi_root_has_mounts(record);
    s->links = 0;
    s->dirfd = AT_FDCWD;
    s->len = s->floor = 0;
    s->done[0] = '\0';
    s->mount = DFI_STEPS_OUTSIDE;
}

/* What the walk begins at is known. */
static void begin(struct dfi_steps *s)
{
    s->mount = mount_of(s);
    settle(s);
    s->entered = !is_outside(s);
    s->floor = is_scoped(s) ? s->len : 0;
}

/* An absolute, physical name of len bytes without a slash at its end. */
static long at_name(struct dfi_steps *s, const char *name, size_t len)
{
    memcpy(s->done, name, len);
    s->done[s->len = len] = '\0';
    begin(s);
    return 0;
}

/* One of ours, or the kernel's. */
static long at_fd(struct dfi_steps *s, int dirfd)
{
    ssize_t len;

    if (dirfd < DF_FD_BASE) {
        len = df_walk_directory_name(dirfd, s->done);
        if (len < 0)
            return DF_NOT_OURS;
        s->done[s->len = (size_t)len] = '\0';
    } else {
        s->dirfd = dirfd;
        s->mount = mount_of_file(s, dirfd);
        if (s->mount == DFI_STEPS_OUTSIDE)
            return -EBADF;
    }
    begin(s);
    return 0;
}

/* From a working directory that was removed there is only the way up; else it is the kernel's. */
static long at_above(struct dfi_steps *s, const char **path)
{
    char above[PATH_MAX];
    int ret;

    while (df_scan_dots(*path) == 1)
        *path += 1 + strspn(*path + 1, "/");
    if (is_scoped(s) || df_scan_dots(*path) != 2)
        return DF_NOT_OURS;
    ret = dfi_cwd_join(s->record->files, "..", above);
    if (ret <= 0)
        return ret < 0 ? ret : DF_NOT_OURS;
    *path += 2;
    return at_name(s, above, strlen(above) - 2); /* it ends in "/." */
}

static long at_cwd(struct dfi_steps *s, const char **path)
{
    char name[PATH_MAX];
    long ret;

    if (dfi_cwd_take(s->record))
        return at_fd(s, DF_FD_BASE + DFI_FD_HERE);
    ret = dfi_cwd_join(s->record->files, "", name);
    if (ret != 0)
        return ret < 0 ? ret : at_name(s, name, strlen(name));
    ret = at_fd(s, AT_FDCWD);
    return ret == DF_NOT_OURS ? at_above(s, path) : ret;
}

/* *path: what is to be walked from there. */
static long at_start(struct dfi_steps *s, int dirfd, const char **path)
{
    if (dirfd == AT_FDCWD && **path != '/')
        return at_cwd(s, path);
    if (**path != '/')
        return at_fd(s, dirfd);
    be_at_root(s);
    begin(s);
    return 0;
}

long dfi_steps_walk(struct dfi_steps *s, int dirfd, const char *path)
{
    long ret = at_start(s, dirfd, &path);

    if (ret < 0)
        return ret;
    strcpy(s->rest, path);
    while (ret == 0 && s->rest[strspn(s->rest, "/")] != '\0')
        ret = step(s);
    if (ret < 0)
        return ret;
    return is_outside(s) ? DF_NOT_OURS : 0;
}

long dfi_steps_left(const struct dfi_steps *s, char out[PATH_MAX])
{
    long ret = df_walk_join(out, s->done, s->len, s->rest);

    if (ret == 0 && out[0] == '\0')
        strcpy(out, "/");
    return ret;
}
