/*
 * way.c - takes the paths of a call from the program, and asks mounts and kernel in turn.
 */
#include "syscalls/way.h"

#include <fcntl.h>
#include <string.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "syscalls/cwd.h"
#include "syscalls/linger.h"
#include "syscalls/proc.h"
#include "syscalls/table.h"

enum { FIRST, KERNEL, AGAIN, DONE }; /* dfi_way.state: what comes next */

/* ---- taking paths ---------------------------------------------------------------------------- */

/* The rest behind /proc/self/fd/5 and its like begins at the object itself. */
static void begin_at_fd(struct dfi_leg *leg, int fd, const char *rest)
{
    while (*rest == '/')
        rest++;
    leg->dirfd = DF_FD_BASE + fd;
    leg->empty = *rest == '\0';
    leg->path = rest;
    leg->changed = true;
}

static int begin_at(struct dfi_leg *leg, const char *dir, size_t len, const char *rest)
{
    leg->changed = true;
    return df_walk_join(leg->text, dir, len, rest) < 0 ? -ENAMETOOLONG : 0;
}

static bool is_link_opened(int flags)
{
    return flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

/* Whether the call is about a symlink itself that stands at the end of that path. */
static bool is_of_link(const struct dfi_way *way, const struct dfi_leg *leg)
{
    const unsigned long *a = way->frame->args;
    unsigned traits = dfi_calls[way->frame->nr].traits;

    switch (way->frame->nr) {
    case __NR_open:
        return is_link_opened((int)a[1]);
    case __NR_openat:
        return is_link_opened((int)a[2]);
    case __NR_linkat:
        return leg != &way->leg[0] || !(a[4] & AT_SYMLINK_FOLLOW);
    default:
        return traits & DFI_OF_LINK ||
               (traits & DFI_NOFOLLOW_THIRD && a[2] & AT_SYMLINK_NOFOLLOW) ||
               (traits & DFI_NOFOLLOW_FOURTH && a[3] & AT_SYMLINK_NOFOLLOW) ||
               (traits & DFI_NOFOLLOW_FIFTH && a[4] & AT_SYMLINK_NOFOLLOW);
    }
}

/* /proc/<pid>/fd/5 of another process. */
static int take_other(struct dfi_way *way, struct dfi_leg *leg)
{
    const char *rest;
    char name[PATH_MAX];
    enum dfi_proc what =
        dfi_proc_other(way->record.files, leg->text, name, &way->record.foreign, &rest);

    if (what == DFI_PROC_NONE || (*rest == '\0' && is_of_link(way, leg)))
        return 0;
    if (what != DFI_PROC_FD)
        return begin_at(leg, name, strlen(name), rest);
    begin_at_fd(leg, DFI_FD_FOREIGN, rest);
    return 0;
}

/* What only would be shown or removed of such links is the kernel's to say. */
static int take_proc(struct dfi_way *way, struct dfi_leg *leg)
{
    struct dfi_files *files = way->record.files;
    const char *rest;
    char text[PATH_MAX];
    int fd;
    enum dfi_proc what = dfi_proc_look(files, leg->text, &fd, &rest);

    if (what == DFI_PROC_NONE)
        return take_other(way, leg);
    if (*rest == '\0' && is_of_link(way, leg))
        return 0;
    switch (what) {
    case DFI_PROC_FD:
        begin_at_fd(leg, fd, rest);
        return 0;
    case DFI_PROC_CWD:
        if ((way->record.here = dfi_cwd_handle(files))) {
            begin_at_fd(leg, DFI_FD_HERE, rest);
            return 0;
        }
        strcpy(text, rest);
        leg->changed = true;
        return dfi_cwd_join(files, text, leg->text) < 0 ? -ENOENT : 0;
    default:
        dfi_proc_exe(text);
        return begin_at(leg, text, strlen(text), rest);
    }
}

/* ---- opened for the call ----------------------------------------------------------------------
 */

static void drop(struct dfi_way *way, uint64_t handle)
{
    struct df_trip trip = {.link = &way->record.files->link};

    df_trip_drop(&trip, handle);
}

long dfi_way_open(struct dfi_way *way, const struct dfi_leg *leg, int flags)
{
    long ret = leg->empty ? df_call_open_again(leg->dirfd, flags, 0)
                          : df_call_openat(leg->dirfd, leg->path, flags, 0);

    if (ret < 0)
        return ret;
    way->record.foreign = way->record.opened->host[DFI_HOST_HANDLE];
    way->record.lent = flags & O_PATH;
    return 0;
}

void dfi_way_shut(struct dfi_way *way)
{
    drop(way, way->record.foreign);
    way->record.foreign = 0;
    way->record.lent = false;
}

/* The working directory, where its name and the path together are too long for one. */
static int open_here(struct dfi_way *way)
{
    char name[PATH_MAX];
    int ret = dfi_cwd_join(way->record.files, "", name);

    if (ret <= 0)
        return ret < 0 ? ret : -ENOENT;
    ret = df_call_openat(AT_FDCWD, name, O_PATH | O_DIRECTORY, 0);
    if (ret < 0)
        return ret == DF_NOT_OURS ? -ENAMETOOLONG : ret;
    way->record.here = way->record.opened->host[DFI_HOST_HANDLE];
    way->opened = true;
    return 0;
}

/* ---- relative ones ----------------------------------------------------------------------------
 */

/* By the handle of the working directory, which may be open already. */
static int begin_here(struct dfi_way *way, struct dfi_leg *leg)
{
    int ret = 0;

    if (!way->record.here && !(way->record.here = dfi_cwd_handle(way->record.files)))
        ret = open_here(way);
    leg->dirfd = DF_FD_BASE + DFI_FD_HERE;
    return ret;
}

/* The working directory itself, by an empty path. One above a mountpoint is the kernel's. */
static int take_here(struct dfi_way *way, struct dfi_leg *leg)
{
    char name[PATH_MAX];
    int ret;

    if (!way->record.here && dfi_cwd_join(way->record.files, "", name) == 0)
        return 0;
    ret = begin_here(way, leg);
    if (ret == -ENAMETOOLONG)
        leg->dirfd = AT_FDCWD;
    return ret == -ENAMETOOLONG ? 0 : ret;
}

static int take_relative(struct dfi_way *way, struct dfi_leg *leg)
{
    int ret;

    if (leg->dirfd != AT_FDCWD) {
        if (dfi_file_of(way->record.files, leg->dirfd))
            leg->dirfd += DF_FD_BASE;
        else if (dfi_is_hidden(dfi_process(), leg->dirfd))
            return -EBADF;
        return 0;
    }
    ret = dfi_cwd_handle(way->record.files) ? -ENAMETOOLONG
                                            : dfi_cwd_join(way->record.files, leg->text, leg->text);
    leg->changed = ret != 0;
    if (ret == -ENAMETOOLONG)
        return begin_here(way, leg);
    return ret < 0 ? ret : 0;
}

/* NULL is an empty path there: since Linux 6.11. */
static bool takes_no_path(long nr)
{
    return nr == __NR_newfstatat || nr == __NR_statx;
}

static int take(struct dfi_way *way, struct dfi_leg *leg)
{
    const char *program = (const char *)way->frame->args[leg->name];
    long len;

    leg->dirfd = leg->at >= 0 ? (int)way->frame->args[leg->at] : AT_FDCWD;
    leg->path = NULL;
    leg->empty = leg->changed = false;
    if (!program) {
        leg->text[0] = '\0';
        if (dfi_file_of(way->record.files, leg->dirfd))
            leg->dirfd += DF_FD_BASE;
        else if (leg->dirfd == AT_FDCWD && takes_no_path(way->frame->nr))
            return take_here(way, leg);
        return 0;
    }
    len = dfi_copy_path(leg->text, program, PATH_MAX);
    if (len < 0)
        return (int)len;
    leg->path = leg->text;
    leg->len = (uint32_t)len;
    if (leg->text[0] == '/')
        return leg->text[1] == 'p' || leg->text[1] == 'd' ? take_proc(way, leg) : 0;
    if (len == 0 && leg->dirfd == AT_FDCWD)
        return take_here(way, leg);
    return take_relative(way, leg);
}

long dfi_way_begin(struct dfi_way *way, struct dfi_frame *frame)
{
    const char *letters = dfi_calls[frame->nr].arguments;
    int ret = 0;

    way->frame = frame;
    way->legs = 0;
    way->state = FIRST;
    way->blocks = way->ours = way->opened = false;
    dfi_record_begin(&way->record);
    dfi_table_refresh(way->record.files->link.segment);
    for (int i = 0; letters[i] != '\0' && ret == 0; i++)
        if (letters[i] == 'p') {
            struct dfi_leg *leg = &way->leg[way->legs++];

            leg->at = i > 0 && letters[i - 1] == 'd' ? (signed char)(i - 1) : -1;
            leg->name = (signed char)i;
            ret = take(way, leg);
        }
    return ret;
}

long dfi_way_end(struct dfi_way *way, long ret)
{
    if (way->opened)
        drop(way, way->record.here);
    dfi_record_end(&way->record);
    return ret;
}

int dfi_way_flags(const struct dfi_leg *leg)
{
    return leg->empty ? AT_EMPTY_PATH : 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* The call with `paths` in the places of its own; NULL: as the caller wrote it. Inline: behind a
 * system call each function that returns costs as much as fifty instructions (decision 013). */
__attribute__((always_inline)) static inline long ask_kernel(const struct dfi_way *way,
                                                             const char *const paths[2])
{
    const struct dfi_frame *f = way->frame;
    unsigned long args[6];

    dfi_linger_end(way->record.files);
    memcpy(args, f->args, sizeof(args));
    for (unsigned i = 0; i < way->legs; i++) {
        if (!paths[i])
            continue;
        args[way->leg[i].name] = (unsigned long)paths[i];
        if (way->leg[i].at >= 0)
            args[way->leg[i].at] = (unsigned long)AT_FDCWD;
    }
    if (way->blocks)
        return dfi_kernel_wait6(f->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
    return dfi_kernel6(f->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

__attribute__((always_inline)) static inline long ask_kernel_first(const struct dfi_way *way)
{
    const char *paths[2] = {NULL, NULL};

    for (unsigned i = 0; i < way->legs; i++) {
        const struct dfi_leg *leg = &way->leg[i];

        paths[i] = df_left_path((int)i);
        if (!paths[i] && leg->changed && leg->dirfd == AT_FDCWD)
            paths[i] = leg->text;
    }
    return ask_kernel(way, paths);
}

/* ---- once more ------------------------------------------------------------------------------- */

/* The absolute path of a leg that is the kernel's, as a text. False: it cannot lie above a mount.
 */
static bool absolute_text(const struct dfi_leg *leg, char text[PATH_MAX])
{
    const char *path = leg->path;
    ssize_t len;

    if (path[0] == '/') {
        strcpy(text, path);
        return true;
    }
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (leg->dirfd >= DF_FD_BASE || !df_table_may_begin(path, (size_t)(df_scan_end(path) - path)))
        return false;
    len = df_walk_directory_name(leg->at >= 0 ? leg->dirfd : AT_FDCWD, text);
    return len >= 0 && df_walk_join(text, text, (size_t)len, path) == 0;
}

/* A path that is the kernel's own: <shadow>/t/<path> instead of one that leads to nothing on disk
 * and lies above a mountpoint. True: it is in out. */
static bool find_above(const struct dfi_files *files, const struct dfi_leg *leg, char out[PATH_MAX])
{
    char path[PATH_MAX], text[PATH_MAX];
    struct df_scan scan;

    if (!absolute_text(leg, path) || df_scan(path, text, &scan) < 0 || scan.up)
        return false;
    return df_table_below(scan.text, scan.len) &&
           dfi_cwd_shadow(files, scan.text, scan.len, out) == 0;
}

/* Directories above mountpoints that are not on disk can be looked at; they cannot be changed. */
static bool look_above(struct dfi_way *way, long *ret)
{
    char out[PATH_MAX];
    const char *paths[2] = {out, NULL};
    const struct dfi_leg *leg = &way->leg[0];

    if (way->legs != 1 || !leg->path || !(dfi_calls[way->frame->nr].traits & DFI_LOOKS) ||
        !find_above(way->record.files, leg, out))
        return false;
    *ret = ask_kernel(way, paths);
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

/* Could a real symlink on this path lead to a mount? Most that is not found is missing in a
 * directory that is there, or that directory is: then the name itself need not be looked at. */
static bool may_lead(struct dfi_files *files, const struct dfi_leg *leg)
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

static bool try_again(struct dfi_way *way, long *ret)
{
    bool may = false;

    if (way->first != -ENOENT && way->first != -ENOTDIR)
        return false;
    if (look_above(way, ret))
        return false;
    for (unsigned i = 0; i < way->legs; i++)
        may = may || may_lead(way->record.files, &way->leg[i]);
    way->record.thread.follow_real_links = may;
    return may;
}

/* Most paths of programs are the kernel's, and can be seen to be without scanning them. */
static bool are_foreign(const struct dfi_way *way)
{
    for (unsigned i = 0; i < way->legs; i++) {
        const struct dfi_leg *leg = &way->leg[i];

        if (!leg->path || leg->path[0] != '/' || !dfi_table_is_foreign(leg->path))
            return false;
    }
    return true;
}

/* True: mounts are to be asked again. */
static bool turn_to_kernel(struct dfi_way *way, long *ret)
{
    way->state = DONE;
    way->first = *ret = ask_kernel_first(way);
    if (!try_again(way, ret))
        return false;
    way->state = AGAIN;
    return true;
}

bool dfi_way_next(struct dfi_way *way, long *ret)
{
    switch (way->state) {
    case FIRST:
        if (*ret == 0 && are_foreign(way))
            return turn_to_kernel(way, ret);
        way->state = *ret < 0 ? DONE : KERNEL;
        return *ret == 0;
    case KERNEL:
        way->ours = *ret != DF_NOT_OURS;
        if (!way->ours)
            return turn_to_kernel(way, ret);
        way->state = DONE;
        return false;
    case AGAIN:
        way->record.thread.follow_real_links = false;
        way->state = DONE;
        way->ours = *ret != DF_NOT_OURS;
        if (!way->ours)
            *ret = way->first;
        return false;
    default:
        return false;
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool absolute_from_fd(const struct dfi_way *way, const struct dfi_leg *leg,
                             char out[PATH_MAX])
{
    uint64_t handle = dfi_record_handle(&way->record, leg->dirfd);
    const char *name;

    if (!handle)
        return false;
    name = way->record.files->shared->names[df_handle_index(handle)];
    return name[0] == '/' && df_walk_join(out, name, strlen(name), leg->path) == 0;
}

/* ".." by text alone. Where a symlink stands before it the name is wrong: then there is no shadow
 * of that name, or fchdir(2) finds another file there. */
static void collapse(char *path)
{
    char *to = path;

    for (const char *from = path; *from != '\0';) {
        const char *end = df_scan_end(from + 1);

        if (df_scan_dots(from + 1) == 2) {
            while (to > path && *--to != '/')
                ;
        } else {
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        }
        from = end;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

bool dfi_way_absolute(struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX])
{
    char text[PATH_MAX];
    struct df_scan scan;

    if (!leg->path)
        return false;
    if (leg->path[0] == '/') {
        strcpy(text, leg->path);
    } else if (leg->dirfd >= DF_FD_BASE) {
        if (!absolute_from_fd(way, leg, text))
            return false;
    } else {
        ssize_t len = df_walk_directory_name(leg->dirfd, text);

        if (len < 0 || df_walk_join(text, text, (size_t)len, leg->path) < 0)
            return false;
    }
    if (df_scan(text, out, &scan) < 0)
        return false;
    memmove(out, scan.text, scan.len + 1);
    if (scan.up)
        collapse(out);
    return true;
}
