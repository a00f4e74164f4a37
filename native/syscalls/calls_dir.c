/*
 * calls_dir.c - listings and the working directory: getdents, getcwd, chdir, fchdir.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "client/ids.h"
#include "client/table.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"
#include "shadows/linger.h"
#include "shadows/shadow.h"
#include "shown/listing.h"
#include "ways/cwd.h"
#include "ways/name.h"
#include "ways/root.h"
#include "ways/steps.h"
#include "ways/way.h"

/* ---- listings -------------------------------------------------------------------------------- */

/* One of the kernel's, in which mountpoints may lie. */
static long list_real(const struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    unsigned long program = frame->args[1];
    unsigned size = (unsigned)frame->args[2];
    int fd = (int)frame->args[0];

    if (dfi_other_fd(frame->args[0]) != DFI_PASS)
        return -EBADF;
    dfi_table_refresh(files->link.segment);
    if (!df_table_any())
        return dfi_listing_read(files, fd, program, size);
    dfi_linger_end(files);
    return dfi_listing_next(files, fd, dfi_listing_read(files, fd, program, size), program, size);
}

/* The kernel counts down in an int: into a negative number of bytes no entry fits. */
static unsigned size_of(unsigned long argument)
{
    return (unsigned)argument <= INT_MAX ? (unsigned)argument : 0;
}

long dfi_do_getdents64(struct dfi_frame *frame)
{
    struct dfi_record record;
    long ret;

    if (!dfi_fd_is_ours(frame->args[0]))
        return list_real(frame);
    dfi_record_begin(&record);
    ret = df_call_getdents(DF_FD_BASE + (int)frame->args[0], (void *)frame->args[1],
                           size_of(frame->args[2]));
    dfi_record_end(&record);
    return ret;
}

/* linux_dirent of getdents(2): as linux_dirent64, but the type stands behind the name. */
struct old_entry {
    unsigned long ino, offset;
    unsigned short length;
    char name[];
};

/* Records become shorter by one byte or stay as long: what was read fits. */
static long show_old(const char *from, long size, unsigned long program)
{
    char out[sizeof(struct old_entry) + DF_NAME_MAX + 16];
    struct old_entry *to = (struct old_entry *)out;

    for (long at = 0; at < size;) {
        const struct dirent64 *entry = (const struct dirent64 *)(from + at);
        size_t len = strlen(entry->d_name);

        to->ino = entry->d_ino;
        to->offset = (unsigned long)entry->d_off;
        to->length = entry->d_reclen;
        memset(to->name, 0, entry->d_reclen - offsetof(struct old_entry, name));
        memcpy(to->name, entry->d_name, len);
        out[entry->d_reclen - 1] = (char)entry->d_type;
        if (dfi_copy_to((void *)(program + (unsigned long)at), out, entry->d_reclen) < 0)
            return -EFAULT;
        at += entry->d_reclen;
    }
    return size;
}

long dfi_do_getdents(struct dfi_frame *frame)
{
    size_t asked = size_of(frame->args[2]), size = asked < 32768 ? asked : 32768;
    struct dfi_record record;
    char *buffer;
    long ret;

    if (!dfi_fd_is_ours(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    if (!(buffer = dfi_alloc(size + 1)))
        return -ENOMEM;
    dfi_record_begin(&record);
    ret = df_call_getdents(DF_FD_BASE + (int)frame->args[0], buffer, size);
    if (ret > 0)
        ret = show_old(buffer, ret, frame->args[1]);
    dfi_record_end(&record);
    dfi_free(buffer);
    return ret;
}

/* ---- getcwd ---------------------------------------------------------------------------------- */

/* The name of the working directory for all processes; its length or -errno. */
static long name_here(struct dfi_files *files, char name[PATH_MAX])
{
    struct dfi_record record;
    long len = -ENOENT;
    bool has_name;

    dfi_record_begin(&record);
    dfi_table_refresh(files->link.segment);
    has_name = !dfi_cwd_take(&record);
    if (!has_name)
        len = dfi_name_find(DF_FD_BASE + DFI_FD_HERE, name);
    dfi_record_end(&record);
    if (!has_name)
        return len;
    len = dfi_kernel(__NR_getcwd, name, PATH_MAX);
    return len < 0 ? len : (long)dfi_cwd_shown(files, name, (size_t)len - 1);
}

/* And what it is below the root of this one. */
static long show_here(struct dfi_files *files, char name[PATH_MAX])
{
    struct dfi_record record;
    long len = name_here(files, name);

    if (len < 0 || !dfi_root_of(files))
        return len;
    dfi_record_begin(&record);
    if (dfi_root_begin(&record)) {
        len = dfi_root_show(&record, name, (size_t)len);
        dfi_root_end(&record);
    }
    dfi_record_end(&record);
    return len;
}

long dfi_do_getcwd(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    char name[PATH_MAX];
    long len;

    if (!files->cwd.ours && !dfi_root_of(files))
        return DFI_PASS;
    if ((len = show_here(files, name)) < 0)
        return len;
    name[len] = '\0';
    if (frame->args[1] < (size_t)len + 1)
        return -ERANGE;
    return dfi_copy_to((void *)frame->args[0], name, (size_t)len + 1) < 0 ? -EFAULT : len + 1;
}

/* ---- chdir ----------------------------------------------------------------------------------- */

#define TRIES 16 /* to enter a directory that others rename meanwhile */

/* As far as can be told: above a mountpoint nobody renames. */
static bool is_there(const char *path)
{
    struct stat st;
    int ret = df_call_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);

    return ret == 0 ? S_ISDIR(st.st_mode) : ret != -ENOENT && ret != -ENOTDIR;
}

/* Who renames it looks for its shadow behind that, and takes it along: so where there was none, it
 * is looked for itself behind the shadow. That is missing if somebody has taken it just now. */
static long stand(struct dfi_files *files, const char *path, size_t len)
{
    long ret = -ENOENT;

    for (int i = 0; i < TRIES && ret == -ENOENT; i++) {
        ret = dfi_cwd_expect(files, path, len);
        if (ret > 0 && !is_there(path))
            return -ENOENT;
        if (ret >= 0)
            ret = dfi_cwd_set(files, path, len);
    }
    return dfi_shadow_result(ret);
}

/* To a directory of a mount, which has been looked at, or, by a link in a mount, to a real one.
 * `plain`: the path ends in a name, which is no link's. */
static long enter(struct dfi_record *record, const char *path, bool plain)
{
    struct dfi_steps s;
    long ret;

    dfi_steps_init(&s, record, false, 0);
    s.entry = plain;
    ret = dfi_steps_walk(&s, AT_FDCWD, path);
    if (ret == 0)
        return stand(record->files, s.done, s.len);
    if (ret != DF_NOT_OURS || (ret = dfi_steps_left(&s, s.done)) < 0)
        return ret;
    ret = dfi_kernel(__NR_chdir, s.done);
    if (ret == 0)
        dfi_cwd_changed(record->files);
    return ret;
}

/* A path that ends in the name of an object, which may be a link then. */
static bool ends_in_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL, *last = slash ? slash + 1 : path;

    return last && *last != '\0' && df_scan_dots(last) == 0;
}

/* 0: a directory of a mount that may be entered. *plain: no link led to it from the end of the
 * path, which one question tells where most paths end in a directory's name. */
static long look(const struct dfi_leg *leg, bool *plain)
{
    int flags = dfi_way_flags(leg), nofollow = ends_in_name(leg->path) ? AT_SYMLINK_NOFOLLOW : 0;
    struct stat st;
    int ret = df_call_fstatat(leg->dirfd, leg->path, &st, flags | nofollow);

    *plain = nofollow && ret == 0 && !S_ISLNK(st.st_mode);
    if (nofollow && (ret == DF_NOT_OURS || (ret == 0 && S_ISLNK(st.st_mode))))
        ret = df_call_fstatat(leg->dirfd, leg->path, &st, flags);
    if (ret != 0)
        return ret;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return df_call_faccessat(leg->dirfd, leg->path, X_OK, flags | AT_EACCESS);
}

/* The same of an open file: of what type it is was seen when it was opened. */
static long look_opened(struct dfi_files *files, int fd)
{
    const struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, fd));

    if (!ofd)
        return -EBADF;
    if (ofd->kind != DF_KIND_DIRECTORY)
        return -ENOTDIR;
    return df_call_faccessat(DF_FD_BASE + fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS);
}

/* By what an open directory is called now: a name that leads to it without a link at its end. */
static long enter_called(struct dfi_record *record, int fd)
{
    char name[PATH_MAX];
    long ret = dfi_name_find(fd, name);

    return ret < 0 ? ret : enter(record, name, ends_in_name(name));
}

/* It is too long, or there is none any more, or it leads through what the caller may not search, or
 * through what is above the root. */
static bool fits_no_name(long ret)
{
    return ret == -ENAMETOOLONG || ret == -ENOENT || ret == -EACCES;
}

/* One that is open for this alone, whose reference is the working directory's then: by its name, or
 * by itself. That it may be entered has been seen. */
static long enter_opened(struct dfi_record *record, bool has_name)
{
    struct df_trip trip = {.link = &record->files->link};
    long ret = -ENOENT;

    record->foreign = record->opened->host[DFI_HOST_HANDLE];
    if (has_name)
        ret = enter_called(record, DF_FD_BASE + DFI_FD_FOREIGN);
    if (fits_no_name(ret)) {
        ret = dfi_cwd_set_open(record->files, record->foreign);
        if (ret == 0)
            return 0;
    }
    df_trip_drop(&trip, record->foreign);
    return ret;
}

/* An open directory. */
static long enter_fd(struct dfi_record *record, int fd)
{
    long ret = enter_called(record, fd);

    if (!fits_no_name(ret))
        return ret;
    ret = df_call_open_again(fd, O_PATH | O_DIRECTORY, 0);
    return ret < 0 ? ret : enter_opened(record, false);
}

/* One that is looked for there. */
static long enter_from(struct dfi_record *record, int dirfd, const char *path)
{
    long ret = df_call_openat(dirfd, path, O_PATH | O_DIRECTORY, 0);

    return ret < 0 ? ret : enter_opened(record, true);
}

static long enter_named(struct dfi_record *record, const char *path, bool plain)
{
    long ret = enter(record, path, plain);

    return ret == -ENAMETOOLONG ? enter_from(record, AT_FDCWD, path) : ret;
}

static long enter_leg(struct dfi_record *record, const struct dfi_leg *leg, bool plain)
{
    char path[PATH_MAX];
    int ret;

    if (leg->path[0] != '/' && leg->dirfd >= DF_FD_BASE)
        return leg->empty ? enter_fd(record, leg->dirfd)
                          : enter_from(record, leg->dirfd, leg->path);
    ret = df_walk_absolute(AT_FDCWD, leg->path, path); /* from where a mount lies below, say */
    return ret < 0 ? ret : enter_named(record, path, plain);
}

long dfi_do_chdir(struct dfi_frame *frame)
{
    struct dfi_way way;
    struct dfi_leg *leg = &way.leg[0];
    long ret = dfi_way_begin(&way, frame);
    bool plain = false;

    while (dfi_way_next(&way, &ret))
        ret = look(leg, &plain);
    if (ret == 0 && !way.ours) {
        dfi_cwd_changed(way.record.files);
    } else if (ret == 0) {
        ret = enter_leg(&way.record, leg, plain);
    }
    return dfi_way_end(&way, ret);
}

long dfi_do_fchdir(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    struct dfi_record record;
    long ret;

    if (!dfi_fd_is_ours(frame->args[0])) {
        if (dfi_other_fd(frame->args[0]) != DFI_PASS)
            return -EBADF;
        ret = dfi_kernel(__NR_fchdir, frame->args[0]);
        if (ret == 0)
            dfi_cwd_changed(files);
        return ret;
    }
    dfi_record_begin(&record);
    ret = look_opened(files, (int)frame->args[0]);
    if (ret == 0)
        ret = enter_fd(&record, DF_FD_BASE + (int)frame->args[0]);
    dfi_record_end(&record);
    return ret;
}

/* Into another mount namespace: then the working directory is its root; or into a user namespace.
 */
long dfi_do_setns(struct dfi_frame *frame)
{
    long ret = dfi_other_fd(frame->args[0]) == DFI_PASS
                   ? dfi_kernel(__NR_setns, frame->args[0], frame->args[1])
                   : -EBADF;

    if (ret == 0) {
        dfi_cwd_changed(dfi_process()->files);
        dfi_ids_expect(dfi_process()->files);
    }
    return ret;
}
