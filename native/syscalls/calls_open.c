/*
 * calls_open.c - open, openat, openat2, creat: a file of a mount gets a placeholder.
 */
#include <fcntl.h>
#include <string.h>

#include "client/number.h"
#include "core/calls.h"
#include "core/fd.h"
#include "shadows/shadow.h"
#include "shown/fdinfo.h"
#include "shown/mounts.h"
#include "shown/proc_maps.h"
#include "ways/name.h"
#include "ways/node.h"
#include "ways/restricted.h"
#include "ways/way.h"

/* ---- the placeholder ------------------------------------------------------------------------- */

/* As d_tmpfile() of the kernel names what has no name: its directory, "#" and the inode number. */
static void add_number(char name[PATH_MAX], uint64_t ino)
{
    static const char deleted[] = " (deleted)";
    char number[] = "/#01234567890123456789 (deleted)";
    size_t len = strlen(name);
    char *end = mempcpy(dfi_number_put(number + 2, ino), deleted, sizeof(deleted));

    if (len + (size_t)(end - number) <= PATH_MAX)
        memcpy(name + len, number, (size_t)(end - number));
}

/* For /proc/self/fd and fchdir(2). False: there is no room for it. */
static bool keep_name(struct dfi_way *way, uint64_t handle, int flags)
{
    char *name = dfi_name_room(way->record.files, handle);

    if (!name)
        return false;
    if (!dfi_way_absolute(way, &way->leg[0], name))
        name[0] = '\0';
    else if ((flags & (O_TMPFILE | O_PATH)) == O_TMPFILE)
        add_number(name, way->record.opened->ino);
    return true;
}

/* What is open for attributes though the program has not asked for that: dfi_node_open(). */
static bool is_fifo(const struct dfi_way *way, int flags)
{
    return DF_UNLIKELY(way->record.opened->flags & O_PATH) && !(flags & O_PATH);
}

static long place(struct dfi_files *files, uint64_t entry, int flags)
{
    if (!dfi_fd_room(files))
        return -ENOMEM;
    return entry & DFI_FIFO ? dfi_node_open_fifo(files, dfi_handle_in(entry), flags)
                            : dfi_shadow_open(files, entry, flags);
}

/* The file is open on the server, for this process. */
static long install(struct dfi_way *way, int flags)
{
    struct dfi_files *files = way->record.files;
    uint64_t handle = way->record.opened->host[DFI_HOST_HANDLE];
    uint64_t entry = is_fifo(way, flags) ? handle | DFI_FIFO : handle;
    struct df_trip trip = {.link = &files->link};
    long fd = keep_name(way, handle, flags) ? 0 : -ENOSPC;

    if (fd == 0 && flags & O_TRUNC)
        dfi_shadow_emptied(files, handle);
    if (fd == 0)
        fd = place(files, entry, flags);
    if (fd >= DFI_FD_MAX) {
        dfi_kernel(__NR_close, fd);
        fd = -EMFILE;
    }
    if (fd < 0)
        df_trip_drop(&trip, handle);
    else
        dfi_fd_enter(files, (int)fd, entry);
    return fd;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int open_ours(struct dfi_way *way, int flags, mode_t mode)
{
    struct dfi_leg *leg = &way->leg[0];
    int ret;

    if (leg->empty)
        ret = df_call_open_again(leg->dirfd, flags, mode);
    else
        ret = df_call_openat(leg->dirfd, leg->path, flags, mode);
    return ret == -ENXIO ? dfi_node_open(way, flags) : ret;
}

/* As names in fdinfo are. */
static bool is_number_last(const struct dfi_leg *leg)
{
    const char *end = leg->path + dfi_leg_len(leg), *at = end;

    while (at > leg->path && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at < end && (at == leg->path || at[-1] == '/');
}

/* Files of the kernel that tell of what is ours: the last two by their whole names. */
static long show_ours(struct dfi_files *files, const struct dfi_leg *leg, int fd)
{
    long ret = is_number_last(leg) ? dfi_proc_fdinfo(files, fd) : fd;

    if (strncmp(leg->path, "/proc/", 6) != 0 && strcmp(leg->path, "/etc/mtab") != 0)
        return ret;
    ret = ret < 0 ? ret : dfi_proc_maps(files, leg->path, (int)ret);
    return ret < 0 ? ret : dfi_mounts_listed(files, leg->path, (int)ret);
}

static bool makes(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Whether a file is made or emptied. */
static bool changes(int flags)
{
    return flags & O_TRUNC || makes(flags);
}

static long open_by(struct dfi_frame *frame, int flags, mode_t mode)
{
    struct dfi_way way;
    const struct dfi_leg *leg = &way.leg[0];
    long ret = dfi_way_begin(&way, frame);

    way.blocks = true;
    way.opens = flags;
    way.mode = makes(flags) ? mode & ALLPERMS : 0;
    way.record.changes = changes(flags);
    while (dfi_way_next(&way, &ret))
        ret = open_ours(&way, flags, mode);
    if (ret == DF_FD_BASE)
        ret = install(&way, flags);
    else if (ret >= 0 && leg->path && !(flags & O_PATH))
        ret = show_ours(way.record.files, leg, (int)ret);
    return dfi_way_end(&way, ret);
}

long dfi_do_open(struct dfi_frame *frame)
{
    return open_by(frame, (int)frame->args[1], (mode_t)frame->args[2]);
}

long dfi_do_openat(struct dfi_frame *frame)
{
    return open_by(frame, (int)frame->args[2], (mode_t)frame->args[3]);
}

long dfi_do_creat(struct dfi_frame *frame)
{
    return open_by(frame, O_CREAT | O_WRONLY | O_TRUNC, (mode_t)frame->args[1]);
}

static long open_restricted(struct dfi_frame *frame, const struct open_how *how)
{
    struct dfi_restricted r;
    const struct dfi_leg *leg = &r.way.leg[0];
    int flags = (int)how->flags;
    long ret = dfi_restricted_walk(&r, frame, how);

    r.way.record.changes = changes(flags);
    if (ret == 0) {
        ret = dfi_restricted_open(&r);
        if (ret == -ENXIO)
            ret = dfi_node_open(&r.way, flags);
        if (ret == DF_FD_BASE)
            ret = install(&r.way, flags);
    } else if (ret == DF_NOT_OURS) {
        ret = dfi_restricted_pass(&r);
        if (ret >= 0 && !(flags & O_PATH))
            ret = show_ours(r.way.record.files, leg, (int)ret);
    }
    return dfi_way_end(&r.way, ret);
}

_Static_assert(sizeof(struct open_how) == 24, "the first one, which a program may have");

/* build_open_flags() of the kernel is asked with a name that it looks at when all else is right. */
static long take_how(struct open_how *how, const void *program, size_t size)
{
    long ret = dfi_copy_struct(how, sizeof(*how), program, size);

    if (ret < 0)
        return ret;
    ret = dfi_kernel(__NR_openat2, AT_FDCWD, "", how, sizeof(*how));
    return ret == -ENOENT ? 0 : ret;
}

long dfi_do_openat2(struct dfi_frame *frame)
{
    struct open_how how;
    long ret = take_how(&how, (const void *)frame->args[2], frame->args[3]);

    if (ret < 0)
        return ret;
    if (how.resolve != 0)
        return open_restricted(frame, &how);
    return open_by(frame, (int)how.flags, (mode_t)how.mode);
}
