/*
 * calls_attr.c - stat, statx, access, chmod, chown, utime, truncate, statfs and their relatives.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <utime.h>

#include "client/ids.h"
#include "core/calls.h"
#include "shown/mounts.h"
#include "syscalls/handlers.h"
#include "ways/known.h"
#include "ways/node.h"

/* The path may be missing: then it is the directory's descriptor that the call is about. */
#define DFI_CHANGE_BY_PATH(name, flags, ...)                                                       \
    DFI_HANDLE_PATH(static long name##_of_path, __VA_ARGS__)                                       \
    long dfi_do_##name(struct dfi_frame *frame)                                                    \
    {                                                                                              \
        const unsigned long *a = frame->args;                                                      \
                                                                                                   \
        return is_lent(a, flags) ? -EPERM : name##_of_path(frame);                                 \
    }

/* ---- stat ------------------------------------------------------------------------------------ */

static long stat_leg(const struct dfi_leg *leg, unsigned long program, int flags)
{
    struct stat st;
    const char *path = !leg->path && flags & AT_EMPTY_PATH ? "" : leg->path;
    int ret = df_call_fstatat(leg->dirfd, path, &st, flags | dfi_way_flags(leg));

    dfi_ids_show(dfi_process()->files, &st.st_uid, &st.st_gid);
    return ret == 0 ? dfi_copy_to((void *)program, &st, sizeof(st)) : ret;
}

static long stat_fd(int fd, unsigned long program)
{
    struct stat st;
    int ret = df_call_fstat(fd, &st);

    dfi_ids_show(dfi_process()->files, &st.st_uid, &st.st_gid);
    return ret == 0 ? dfi_copy_to((void *)program, &st, sizeof(st)) : ret;
}

static long statx_leg(const struct dfi_leg *leg, int flags, unsigned mask, unsigned long program)
{
    struct statx stx;
    const char *path = !leg->path && flags & AT_EMPTY_PATH ? "" : leg->path;
    int ret = df_call_statx(leg->dirfd, path, flags | dfi_way_flags(leg), mask, &stx);

    if (ret != 0)
        return ret;
    dfi_ids_show(dfi_process()->files, &stx.stx_uid, &stx.stx_gid);
    stx.stx_mask |= STATX_MNT_ID;
    stx.stx_mnt_id = dfi_mounts_id((int32_t)stx.stx_dev_minor);
    return dfi_copy_to((void *)program, &stx, sizeof(stx));
}

static long stat_path(struct dfi_frame *frame, unsigned long program, int flags)
{
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);

    if (ret < 0 || !dfi_known_stat(&way, (struct stat *)program, flags, &ret))
        while (dfi_way_next(&way, &ret))
            ret = stat_leg(&way.leg[0], program, flags);
    return dfi_way_end(&way, ret);
}

long dfi_do_stat(struct dfi_frame *frame)
{
    return stat_path(frame, frame->args[1], 0);
}

long dfi_do_lstat(struct dfi_frame *frame)
{
    return stat_path(frame, frame->args[1], AT_SYMLINK_NOFOLLOW);
}

/* What shared memory has of an open file goes from there to the program: none of native/core's work
 * is needed for it, and it would take most of the time. A FIFO's entry is no handle: not kept. */
static bool is_kept(unsigned long fd, unsigned long program)
{
    struct dfi_files *files = dfi_process()->files;

    return !dfi_ids_differ(files) && program < DFI_USER_END - sizeof(struct stat) &&
           df_trip_known_open(&files->link, dfi_entry_of(files, (int)fd), (struct stat *)program);
}

static long stat_open(unsigned long fd, unsigned long program)
{
    struct dfi_record record;
    long ret;

    if (is_kept(fd, program))
        return 0;
    dfi_record_begin(&record);
    ret = stat_fd(DF_FD_BASE + (int)fd, program);
    return dfi_record_end_of_fd(&record, ret);
}

long dfi_do_fstat(struct dfi_frame *frame)
{
    if (!dfi_fd_is_of_mount(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    return stat_open(frame->args[0], frame->args[1]);
}

/* What fstat() of libc and others is: a descriptor, and an empty name or none. Linux asks for no
 * other flags then. */
static bool is_fstat(const unsigned long a[], unsigned long flags)
{
    return flags & AT_EMPTY_PATH && (int)a[0] >= 0 &&
           (!a[1] || dfi_byte_at((const void *)a[1]) == '\0');
}

long dfi_do_newfstatat(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;

    if (!is_fstat(a, a[3]))
        return stat_path(frame, a[2], (int)a[3]);
    return dfi_fd_is_of_mount(a[0]) ? stat_open(a[0], a[2]) : dfi_other_fd(a[0]);
}

static long dfi_do_statx_by_name(struct dfi_frame *frame);

static int statx_flags(const unsigned long a[])
{
    return is_fstat(a, a[2]) ? (int)a[2] & (AT_EMPTY_PATH | AT_STATX_SYNC_TYPE) : (int)a[2];
}

DFI_BY_PATH(statx_by_name, statx_leg(leg, statx_flags(a), (unsigned)a[3], a[4]))

long dfi_do_statx(struct dfi_frame *frame)
{
    if (is_fstat(frame->args, frame->args[2]) && !dfi_fd_is_of_mount(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    if (frame->args[3] & STATX__RESERVED || /* do_statx(): before it looks at the path */
        (frame->args[2] & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE)
        return -EINVAL;
    return dfi_do_statx_by_name(frame);
}

/* ---- access ---------------------------------------------------------------------------------- */

static long access_leg(const struct dfi_leg *leg, int mode, int flags)
{
    return df_call_faccessat(leg->dirfd, leg->path, mode, flags | dfi_way_flags(leg));
}

static long access_path(struct dfi_frame *frame, unsigned long mode, unsigned long flags)
{
    struct dfi_way way;
    long ret = dfi_way_begin(&way, frame);

    if (ret < 0 || !dfi_known_access(&way, (int)mode, (int)flags, &ret))
        while (dfi_way_next(&way, &ret))
            ret = access_leg(&way.leg[0], (int)mode, (int)flags);
    return dfi_way_end(&way, ret);
}

long dfi_do_access(struct dfi_frame *frame)
{
    return access_path(frame, frame->args[1], 0);
}

long dfi_do_faccessat(struct dfi_frame *frame)
{
    return access_path(frame, frame->args[2], 0);
}

long dfi_do_faccessat2(struct dfi_frame *frame)
{
    return access_path(frame, frame->args[2], frame->args[3]);
}

/* ---- chmod, chown ---------------------------------------------------------------------------- */

static long chmod_leg(const struct dfi_leg *leg, unsigned long mode, int flags)
{
    return df_call_fchmodat(leg->dirfd, leg->path, (mode_t)mode, flags | dfi_way_flags(leg));
}

/* Of ids that the program's namespace does not have there is no owner. */
static bool know_owner(uid_t *user, gid_t *group)
{
    const struct dfi_files *files = dfi_process()->files;

    return dfi_ids_user(files, user) && dfi_ids_group(files, group);
}

/* The file is looked for before that is said: do_fchownat(). */
static long refuse_owner(const struct dfi_leg *leg, int flags)
{
    struct stat st;
    long ret = df_call_fstatat(leg->dirfd, leg->path, &st, flags | dfi_way_flags(leg));

    return ret < 0 ? ret : -EINVAL;
}

static long chown_leg(const struct dfi_leg *leg, unsigned long uid, unsigned long gid, int flags)
{
    uid_t user = (uid_t)uid;
    gid_t group = (gid_t)gid;

    if (!know_owner(&user, &group))
        return refuse_owner(leg, flags);
    return df_call_fchownat(leg->dirfd, leg->path, user, group, flags | dfi_way_flags(leg));
}

/* By more than O_PATH, which is of no use to calls that change the file. */
static bool is_open(int fd)
{
    const struct dfi_files *files = dfi_process()->files;
    const struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, fd - DF_FD_BASE));

    return ofd && !(atomic_load(&ofd->flags) & O_PATH);
}

static long chown_fd(int fd, unsigned long uid, unsigned long gid)
{
    uid_t user = (uid_t)uid;
    gid_t group = (gid_t)gid;

    if (!know_owner(&user, &group))
        return is_open(fd) ? -EINVAL : -EBADF;
    return df_call_fchown(fd, user, group);
}

/* A device of a mount is the machine's own once it is open, and its attributes are not for us to
 * change. */
static long change_other(unsigned long fd)
{
    return dfi_node_is_lent(fd) ? -EPERM : dfi_other_fd(fd);
}

static bool is_empty(unsigned long path)
{
    char first = '\0';

    return !path || (dfi_copy_from(&first, (const void *)path, 1) == 0 && first == '\0');
}

/* The same by a path that is not there: flags are those that allow it. */
static bool is_lent(const unsigned long *a, unsigned long flags)
{
    return (!a[1] || flags & AT_EMPTY_PATH) && is_empty(a[1]) && !dfi_fd_is_of_mount(a[0]) &&
           dfi_node_is_lent(a[0]);
}

DFI_BY_PATH(chmod, chmod_leg(leg, a[1], 0))
DFI_ATTR_BY_FD(fchmod, change_other, df_call_fchmod(fd, (mode_t)a[1]))
DFI_BY_PATH(fchmodat, chmod_leg(leg, a[2], 0))
DFI_CHANGE_BY_PATH(fchmodat2, a[3], chmod_leg(leg, a[2], (int)a[3]))
DFI_BY_PATH(chown, chown_leg(leg, a[1], a[2], 0))
DFI_BY_PATH(lchown, chown_leg(leg, a[1], a[2], AT_SYMLINK_NOFOLLOW))
DFI_ATTR_BY_FD(fchown, change_other, chown_fd(fd, a[1], a[2]))
DFI_CHANGE_BY_PATH(fchownat, a[4], chown_leg(leg, a[2], a[3], (int)a[4]))

/* ---- times ----------------------------------------------------------------------------------- */

static long set_times(const struct dfi_leg *leg, const struct timespec *times, int flags)
{
    return df_call_utimensat(leg->dirfd, leg->path, times, flags | dfi_way_flags(leg));
}

static long utimens_leg(const struct dfi_leg *leg, unsigned long program, int flags)
{
    struct timespec times[2];

    if (program && dfi_copy_from(times, (const void *)program, sizeof(times)) < 0)
        return -EFAULT;
    return set_times(leg, program ? times : NULL, flags);
}

static long utimes_leg(const struct dfi_leg *leg, unsigned long program)
{
    struct timespec times[2];
    struct timeval given[2];

    if (!program)
        return set_times(leg, NULL, 0);
    if (dfi_copy_from(given, (const void *)program, sizeof(given)) < 0)
        return -EFAULT;
    for (int i = 0; i < 2; i++) {
        if (given[i].tv_usec < 0 || given[i].tv_usec >= 1000000)
            return -EINVAL;
        times[i] = (struct timespec){given[i].tv_sec, given[i].tv_usec * 1000};
    }
    return set_times(leg, times, 0);
}

static long utime_leg(const struct dfi_leg *leg, unsigned long program)
{
    struct utimbuf given;
    struct timespec times[2];

    if (!program)
        return set_times(leg, NULL, 0);
    if (dfi_copy_from(&given, (const void *)program, sizeof(given)) < 0)
        return -EFAULT;
    times[0] = (struct timespec){given.actime, 0};
    times[1] = (struct timespec){given.modtime, 0};
    return set_times(leg, times, 0);
}

DFI_BY_PATH(utime, utime_leg(leg, a[1]))
DFI_BY_PATH(utimes, utimes_leg(leg, a[1]))
DFI_CHANGE_BY_PATH(futimesat, 0, utimes_leg(leg, a[2]))
DFI_CHANGE_BY_PATH(utimensat, a[3], utimens_leg(leg, a[2], (int)a[3]))

/* What is no regular file is not opened: vfs_truncate() of the kernel. */
static long check_truncated(const struct dfi_leg *leg)
{
    struct stat st;
    long ret = df_call_fstatat(leg->dirfd, leg->path, &st, dfi_way_flags(leg));

    if (ret < 0)
        return ret;
    return S_ISDIR(st.st_mode) ? -EISDIR : S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

/* As who opens the file for that, whatever a descriptor that leads there is open for. */
static long truncate_opened(struct dfi_way *way, off_t size)
{
    long ret = size < 0 ? -EINVAL : check_truncated(&way->leg[0]);

    if (ret == 0)
        ret = dfi_way_open(way, &way->leg[0], O_WRONLY);
    if (ret < 0)
        return ret;
    ret = df_call_ftruncate(DF_FD_BASE + DFI_FD_FOREIGN, size);
    dfi_way_shut(way);
    return ret;
}

DFI_BY_PATH(truncate, leg->dirfd >= DF_FD_BASE ? truncate_opened(&way, (off_t)a[1])
                                               : df_call_truncate(leg->path, (off_t)a[1]))

/* ---- statfs ---------------------------------------------------------------------------------- */

#define FUSE_SUPER_MAGIC 0x65735546
#define STATFS_VALID     0x0020 /* of f_flags: they are set; ST_VALID of the kernel */

static long show_statfs(const struct statvfs *from, unsigned long program)
{
    struct statfs to;

    memset(&to, 0, sizeof(to));
    to.f_type = FUSE_SUPER_MAGIC;
    to.f_bsize = (long)from->f_bsize;
    to.f_frsize = (long)from->f_frsize;
    to.f_blocks = from->f_blocks;
    to.f_bfree = from->f_bfree;
    to.f_bavail = from->f_bavail;
    to.f_files = from->f_files;
    to.f_ffree = from->f_ffree;
    memcpy(&to.f_fsid, &from->f_fsid, sizeof(to.f_fsid));
    to.f_namelen = (long)from->f_namemax;
    to.f_flags = (long)from->f_flag | STATFS_VALID;
    return dfi_copy_to((void *)program, &to, sizeof(to));
}

static long statfs_opened(struct dfi_way *way, struct statvfs *out)
{
    long ret = dfi_way_open(way, &way->leg[0], O_PATH);

    if (ret < 0)
        return ret;
    ret = df_call_fstatvfs(DF_FD_BASE + DFI_FD_FOREIGN, out);
    dfi_way_shut(way);
    return ret;
}

static long statfs_leg(struct dfi_way *way, unsigned long program)
{
    const struct dfi_leg *leg = &way->leg[0];
    struct statvfs out;
    long ret =
        leg->dirfd >= DF_FD_BASE ? statfs_opened(way, &out) : df_call_statvfs(leg->path, &out);

    return ret == 0 ? show_statfs(&out, program) : ret;
}

static long statfs_fd(int fd, unsigned long program)
{
    struct statvfs out;
    int ret = df_call_fstatvfs(fd, &out);

    return ret == 0 ? show_statfs(&out, program) : ret;
}

DFI_BY_PATH(statfs, statfs_leg(&way, a[1]))
DFI_ATTR_BY_FD(fstatfs, dfi_other_fd, statfs_fd(fd, a[1]))
