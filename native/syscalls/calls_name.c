/*
 * calls_name.c - entries of directories: mkdir, mknod, unlink, rmdir, rename, link, symlink,
 * readlink and their relatives.
 */
#include <fcntl.h>
#include <string.h>

#include "core/calls.h"
#include "core/route.h"
#include "core/walk.h"
#include "intercept/brief.h"
#include "intercept/text.h"
#include "shadows/shadow.h"
#include "syscalls/handlers.h"
#include "ways/cwd.h"
#include "ways/node.h"
#include "ways/proc.h"
#include "ways/root.h"

/* ---- making ---------------------------------------------------------------------------------- */

DFI_BY_PATH(mkdir, df_call_mkdirat(leg->dirfd, leg->path, (mode_t)a[1]))
DFI_BY_PATH(mkdirat, df_call_mkdirat(leg->dirfd, leg->path, (mode_t)a[2]))

/* Of a device's number the kernel takes 32 bits. */
static long make_node(struct dfi_way *way, unsigned long mode, unsigned long device)
{
    return dfi_node_make(way, (mode_t)mode, (dev_t)(unsigned)device);
}

DFI_BY_PATH(mknod, make_node(&way, a[1], a[2]))
DFI_BY_PATH(mknodat, make_node(&way, a[2], a[3]))

long dfi_do_symlink(struct dfi_frame *frame)
{
    char target[PATH_MAX];
    struct dfi_way way;
    long ret = dfi_copy_path(target, (const char *)frame->args[0], sizeof(target));

    if (ret < 0)
        return ret;
    ret = dfi_way_begin(&way, frame);
    while (dfi_way_next(&way, &ret))
        ret = df_call_symlinkat(target, way.leg[0].dirfd, way.leg[0].path);
    return dfi_way_end(&way, ret);
}

long dfi_do_symlinkat(struct dfi_frame *frame)
{
    return dfi_do_symlink(frame);
}

/* ---- removing -------------------------------------------------------------------------------- */

DFI_BY_PATH(unlink, df_call_unlinkat(leg->dirfd, leg->path, 0))

/* Its shadow, if somebody stands in what has that path, which is *path; else -ENOENT. */
static long find_shadow(struct dfi_way *way, char path[PATH_MAX])
{
    const struct dfi_leg *leg = &way->leg[0];

    if (leg->path && dfi_cwd_may_have(way->record.files, leg->path) &&
        dfi_way_physical(way, leg, path))
        return dfi_cwd_leave(way->record.files, path);
    return -ENOENT;
}

/* Those who stand there stay; also who has come meanwhile. */
static long remove_there(struct dfi_way *way)
{
    const struct dfi_leg *leg = &way->leg[0];
    char path[PATH_MAX];
    struct stat st = {.st_mode = 0777, .st_uid = (uid_t)-1, .st_gid = (gid_t)-1};
    long shadow = find_shadow(way, path), ret;

    if (shadow >= 0)
        df_call_fstatat(leg->dirfd, leg->path, &st, AT_SYMLINK_NOFOLLOW);
    ret = df_call_unlinkat(leg->dirfd, leg->path, AT_REMOVEDIR);
    if (shadow < 0 && ret == 0)
        shadow = find_shadow(way, path);
    if (shadow < 0)
        return ret;
    if (ret == 0)
        dfi_cwd_removed(way->record.files, path, shadow, &st);
    dfi_brief_close(shadow);
    return ret;
}

DFI_BY_PATH(rmdir, remove_there(&way))

long dfi_do_unlinkat(struct dfi_frame *frame)
{
    switch ((int)frame->args[2]) {
    case 0:
        return dfi_do_unlink(frame);
    case AT_REMOVEDIR:
        return dfi_do_rmdir(frame);
    default:
        return -EINVAL;
    }
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* Whether somebody may stand in what is moved or replaced, and what the two are called: asked
 * before, since a way to them may begin there or go through them; and after, since somebody may
 * have come meanwhile. */
static bool may_stand(struct dfi_way *way, char from[PATH_MAX], char to[PATH_MAX])
{
    const struct dfi_leg *leg = way->leg;
    const struct dfi_files *files = way->record.files;

    if (!leg[0].path || !leg[1].path)
        return false;
    if (!dfi_cwd_may_have(files, leg[0].path) && !dfi_cwd_may_have(files, leg[1].path))
        return false;
    return dfi_way_physical(way, &leg[0], from) && dfi_way_physical(way, &leg[1], to);
}

/* What begins in a directory that is renamed is looked for by its new name, when its shadow has
 * that: who finds nothing waits until then. */
static long rename_legs(const struct dfi_way *way, unsigned flags, bool stands)
{
    const struct dfi_leg *from = &way->leg[0], *to = &way->leg[1];
    long ret;

    if (stands)
        dfi_cwd_moves(way->record.files);
    ret = df_call_renameat2(from->dirfd, from->path, to->dirfd, to->path, flags);
    if (stands && ret != 0)
        dfi_cwd_has_moved(way->record.files);
    return ret;
}

/* A program that stands in a directory goes with it. */
static long rename_by(struct dfi_frame *frame, unsigned flags)
{
    char before[PATH_MAX], after[PATH_MAX];
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);
    bool stands = ret == 0 && may_stand(&way, before, after);

    while (dfi_way_next(&way, &ret))
        ret = rename_legs(&way, flags, stands);
    if (ret == 0 && way.ours && (stands || may_stand(&way, before, after)))
        dfi_cwd_renamed(way.record.files, before, after, flags);
    if (ret == 0 && way.ours && stands)
        dfi_cwd_has_moved(way.record.files);
    return dfi_way_end(&way, ret);
}

long dfi_do_rename(struct dfi_frame *frame)
{
    return rename_by(frame, 0);
}

long dfi_do_renameat(struct dfi_frame *frame)
{
    return rename_by(frame, 0);
}

long dfi_do_renameat2(struct dfi_frame *frame)
{
    return rename_by(frame, (unsigned)frame->args[4]);
}

/* ---- linking --------------------------------------------------------------------------------- */

#define LINK_FLAGS (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)

/* A descriptor itself is linked for who has the credentials by which it was opened, or rights: both
 * the kernel knows of the placeholder. A name that is there already is refused after that. */
static bool may_link(unsigned long fd)
{
    return dfi_kernel(__NR_linkat, fd, "", AT_FDCWD, "/", AT_EMPTY_PATH) != -ENOENT;
}

static long link_legs(const struct dfi_leg leg[2], const unsigned long *a, int flags)
{
    bool by_fd = !leg[0].empty && leg[0].path && leg[0].path[0] == '\0' && flags & AT_EMPTY_PATH;

    if (by_fd && !(flags & ~LINK_FLAGS) && !may_link(a[0]))
        return -ENOENT;
    return df_call_linkat(leg[0].dirfd, leg[0].path, leg[1].dirfd, leg[1].path,
                          flags | dfi_way_flags(&leg[0]));
}

DFI_BY_PATH(link, link_legs(leg, a, 0))
DFI_BY_PATH(linkat, link_legs(leg, a, (int)a[4]))

/* ---- readlink -------------------------------------------------------------------------------- */

static long show(unsigned long program, size_t size, const char *text, long len)
{
    if (len > 0 && (size_t)len > size)
        len = (long)size;
    return len > 0 && dfi_copy_to((void *)program, text, (size_t)len) < 0 ? -EFAULT : len;
}

/* /proc/self/fd/5 and its like, for what is ours. False: another path. */
static bool read_proc(const char *path, char text[PATH_MAX], long *ret)
{
    struct dfi_files *files = dfi_process()->files;
    struct dfi_record record;
    const char *rest;
    enum dfi_proc what;
    int fd = -1;

    if (path[0] != '/' || (path[1] != 'p' && path[1] != 'd') || dfi_root_of(files))
        return false;
    if (strncmp(dfi_text_base(path), "std", 3) == 0) /* /dev/stdin is a link to /proc/self/fd/0 */
        return false;
    what = dfi_proc_look(files, path, &fd, &rest);
    if (what == DFI_PROC_NONE || *rest != '\0')
        return false;
    dfi_record_begin(&record);
    *ret = dfi_proc_readlink(files, what, fd, text);
    dfi_record_end(&record);
    return true;
}

/* The absolute name of a link that was read by that path. False: it has none. */
static bool name_link(const struct dfi_frame *frame, const char *path, char name[PATH_MAX])
{
    int dirfd = frame->nr == __NR_readlinkat ? (int)frame->args[0] : AT_FDCWD;

    return df_walk_absolute(dirfd, path, name) == 0;
}

/* Whether the kernel may have named what only stands in for something of ours. */
static bool may_stand_in(const struct dfi_files *files, const char *path, const char *text)
{
    return dfi_shadow_behind(files, text) || strcmp(dfi_text_base(path), "exe") == 0;
}

/* What is to be shown of the kernel's text: its length or -errno. */
static long name_shown(const struct dfi_files *files, const struct dfi_frame *frame,
                       const char *path, char text[PATH_MAX], long len)
{
    char link[PATH_MAX];

    text[len] = '\0';
    if (!may_stand_in(files, path, text) || !name_link(frame, path, link))
        return len;
    return dfi_proc_shown(files, link, text, (size_t)len);
}

/* The way of a call whose arguments from `at` on are memory and its size. The kernel is given ours:
 * what it names may be shown by a shorter name, behind which the program's memory stays as it is.
 */
static long text_at_end(struct dfi_frame *frame, unsigned at, const char *path, char text[PATH_MAX])
{
    struct dfi_way way;
    const struct dfi_leg *leg = &way.leg[0];
    long ret;

    frame->args[at] = (unsigned long)text;
    frame->args[at + 1] = PATH_MAX - 1;
    ret = dfi_way_begin(&way, frame);
    while (dfi_way_next(&way, &ret))
        ret = df_call_readlinkat(leg->dirfd, leg->path, text, PATH_MAX);
    if (ret > 0 && !way.ours) /* by the path that a link in a mount has led to, if one has */
        ret =
            name_shown(way.record.files, frame, leg->path[0] == '/' ? leg->path : path, text, ret);
    return dfi_way_end(&way, ret);
}

static long read_link(struct dfi_frame *frame, unsigned at)
{
    char path[PATH_MAX], text[PATH_MAX];
    unsigned long program = frame->args[at], room = frame->args[at + 1];
    long ret = dfi_copy_path(path, (const char *)frame->args[at - 1], PATH_MAX);

    if ((int)room <= 0)
        return -EINVAL;
    if (ret < 0)
        return ret;
    if (!read_proc(path, text, &ret)) {
        ret = text_at_end(frame, at, path, text);
        frame->args[at] = program;
        frame->args[at + 1] = room;
    }
    return show(program, (size_t)(int)room, text, ret);
}

long dfi_do_readlink(struct dfi_frame *frame)
{
    return read_link(frame, 1);
}

long dfi_do_readlinkat(struct dfi_frame *frame)
{
    return read_link(frame, 2);
}
