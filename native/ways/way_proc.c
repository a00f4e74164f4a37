/*
 * way_proc.c - paths through /proc/self/fd/5, /proc/<pid>/cwd, /dev/fd/5 and their like: they begin
 * at the file, or at the name, that the symlink stands for.
 */
#include <fcntl.h>
#include <sys/inotify.h>

#include "client/table.h"
#include "core/fd.h"
#include "core/walk.h"
#include "ways/cwd.h"
#include "ways/proc.h"
#include "ways/way_private.h"

/* The rest behind /proc/self/fd/5 and its like begins at the object itself, which is a directory if
 * there is a slash behind it. */
static void begin_at_fd(struct dfi_leg *leg, int fd, const char *rest)
{
    const char *name = rest + strspn(rest, "/");

    leg->dirfd = DF_FD_BASE + fd;
    leg->empty = *rest == '\0';
    leg->path = *name == '\0' && !leg->empty ? "." : name;
    leg->changed = true;
}

static int begin_at(struct dfi_leg *leg, const char *dir, size_t len, const char *rest)
{
    leg->changed = true;
    return df_walk_join(leg->text, dir, len, rest) < 0 ? -ENAMETOOLONG : 0;
}

static bool is_link_opened(int flags)
{
    return flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL | O_PATH)) == (O_CREAT | O_EXCL);
}

/* Flags of openat2(2), which lie in the program's memory. */
static int flags_of(unsigned long how)
{
    uint64_t flags;

    return dfi_copy_from(&flags, (const void *)how, sizeof(flags)) < 0 ? 0 : (int)flags;
}

bool dfi_way_is_of_link(const struct dfi_way *way, const struct dfi_leg *leg)
{
    const unsigned long *a = way->frame->args;
    unsigned traits = dfi_calls[way->frame->nr].traits;

    switch (way->frame->nr) {
    case __NR_open:
        return is_link_opened((int)a[1]);
    case __NR_openat:
        return is_link_opened((int)a[2]);
    case __NR_openat2:
        return is_link_opened(flags_of(a[2]));
    case __NR_linkat:
        return leg != &way->leg[0] || !(a[4] & AT_SYMLINK_FOLLOW);
    case __NR_inotify_add_watch:
        return a[2] & IN_DONT_FOLLOW;
    default:
        return traits & DFI_OF_LINK ||
               (traits & DFI_NOFOLLOW_THIRD && a[2] & AT_SYMLINK_NOFOLLOW) ||
               (traits & DFI_NOFOLLOW_FOURTH && a[3] & AT_SYMLINK_NOFOLLOW) ||
               (traits & DFI_NOFOLLOW_FIFTH && a[4] & AT_SYMLINK_NOFOLLOW);
    }
}

bool dfi_way_goes_on(struct dfi_way *way, struct dfi_leg *leg, const char *path)
{
    leg->len = (uint32_t)strlen(path);
    memcpy(leg->text, path, leg->len + 1);
    leg->path = leg->text;
    leg->dirfd = AT_FDCWD;
    leg->changed = false;
    return dfi_way_take_proc(way, leg) == 0 && leg->changed;
}

/* /proc/<pid>/fd/5 of another process. */
static int take_other(struct dfi_way *way, struct dfi_leg *leg)
{
    const char *rest;
    char name[PATH_MAX];
    enum dfi_proc what =
        dfi_proc_other(way->record.files, leg->text, name, &way->record.foreign, &rest);

    if (what == DFI_PROC_NONE || (*rest == '\0' && dfi_way_is_of_link(way, leg)))
        return 0;
    if (what != DFI_PROC_FD)
        return begin_at(leg, name, strlen(name), rest);
    begin_at_fd(leg, DFI_FD_FOREIGN, rest);
    return 0;
}

/* What only would be shown or removed of such links is the kernel's to say. */
int dfi_way_take_proc(struct dfi_way *way, struct dfi_leg *leg)
{
    struct dfi_files *files = way->record.files;
    const char *rest;
    char text[PATH_MAX];
    int fd, ret;
    enum dfi_proc what = dfi_proc_look(files, leg->text, &fd, &rest);

    if (what == DFI_PROC_NONE)
        return dfi_proc_hides(leg->text) ? -ENOENT : take_other(way, leg);
    if (*rest == '\0' && dfi_way_is_of_link(way, leg))
        return 0;
    switch (what) {
    case DFI_PROC_FD:
        begin_at_fd(leg, fd, rest);
        return 0;
    case DFI_PROC_CWD:
        if (dfi_cwd_take(&way->record)) {
            begin_at_fd(leg, DFI_FD_HERE, rest);
            return 0;
        }
        strcpy(text, rest);
        ret = dfi_cwd_join(files, text, leg->text);
        leg->changed = ret > 0; /* one that was removed is the kernel's */
        return ret < 0 ? -ENOENT : 0;
    default:
        dfi_proc_exe(text);
        return begin_at(leg, text, strlen(text), rest);
    }
}
