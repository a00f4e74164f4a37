/*
 * calls_io.c - data: read and write in all their forms, lseek, fsync, ftruncate, fallocate.
 *
 * The program's buffers are handed down as they are: only the channel touches them, with copies
 * that survive a fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>

#include "channel/trip.h"
#include "core/calls.h"
#include "shadows/map.h"
#include "syscalls/handlers.h"
#include "syscalls/rw_flags.h"

DFI_BY_FD(read, df_call_read(fd, (void *)a[1], a[2]))
DFI_BY_FD(write, df_call_write(fd, (const void *)a[1], a[2]))
DFI_BY_FD(pread64, df_call_pread(fd, (void *)a[1], a[2], (off_t)a[3]))
DFI_BY_FD(pwrite64, df_call_pwrite(fd, (const void *)a[1], a[2], (off_t)a[3]))
DFI_BY_FD(lseek, df_call_lseek(fd, (off_t)a[1], (int)a[2]))

static const struct df_ofd *ofd_of(const struct dfi_frame *frame)
{
    const struct dfi_files *files = dfi_process()->files;

    return dfi_ofd(files, dfi_file_of(files, (int)frame->args[0]));
}

/* Its flags; O_PATH: of no use to calls that look at them. */
static int flags_of(const struct dfi_frame *frame)
{
    const struct df_ofd *ofd = ofd_of(frame);

    return ofd ? (int)atomic_load(&ofd->flags) : O_PATH;
}

DFI_BY_FD(fsync, dfi_maps_sync_file(dfi_process()->files, fd, df_call_fsync))
DFI_BY_FD(fdatasync, dfi_maps_sync_file(dfi_process()->files, fd, df_call_fdatasync))

/* File systems get what is kept of their writes. */
static long write_kept(void)
{
    struct df_trip trip = {.link = &dfi_process()->files->link};
    struct dfi_record record;
    long ret;

    dfi_record_begin(&record);
    ret = df_trip_sync(&trip);
    dfi_record_end(&record);
    return dfi_as_told(ret);
}

static int write_kept_of(int fd)
{
    (void)fd;
    return (int)write_kept();
}

/* Data are to be written, not to be safe: a FUSE file system hears of this no more than of
 * sync(2). dpkg asks for it before it renames, for each file. What is wrong is refused as by
 * ksys_sync_file_range() of the kernel. */
static long sync_range(const struct dfi_frame *frame, int fd)
{
    const unsigned flags =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    off_t offset = (off_t)frame->args[1], size = (off_t)frame->args[2], end;

    if (flags_of(frame) & O_PATH)
        return -EBADF;
    if ((unsigned)frame->args[3] & ~flags || offset < 0 || size < 0 ||
        __builtin_add_overflow(offset, size, &end))
        return -EINVAL;
    return dfi_maps_sync_file(dfi_process()->files, fd, write_kept_of);
}

DFI_BY_FD(sync_file_range, sync_range(frame, fd))
DFI_BY_FD(ftruncate, df_call_ftruncate(fd, (off_t)a[1]))
DFI_BY_FD(fallocate, df_call_fallocate(fd, (int)a[1], (off_t)a[2], (off_t)a[3]))
DFI_BY_FD(fadvise64, df_call_fadvise(fd, (off_t)a[1], (off_t)a[2], (int)a[3]))

/* A FUSE file system does not hear of syncfs(2) or sync(2). */
static long sync_all(void)
{
    dfi_maps_sync(dfi_process()->files);
    return write_kept();
}

long dfi_do_syncfs(struct dfi_frame *frame)
{
    if (!dfi_fd_is_ours(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    return flags_of(frame) & O_PATH ? -EBADF : sync_all();
}

/* Those of the kernel's file systems are the kernel's. */
long dfi_do_sync(struct dfi_frame *frame)
{
    (void)frame;
    if (dfi_process()->files->link.segment)
        sync_all();
    return DFI_PASS;
}

static long read_ahead(const struct dfi_frame *frame, int fd)
{
    const struct df_ofd *ofd = ofd_of(frame);

    if (flags_of(frame) & (O_PATH | O_WRONLY)) /* or neither: O_ACCMODE itself */
        return -EBADF;
    if (ofd && ofd->kind != DF_KIND_REGULAR)
        return -EINVAL;
    return df_call_fadvise(fd, (off_t)frame->args[1], (off_t)frame->args[2], POSIX_FADV_WILLNEED);
}

DFI_BY_FD(readahead, read_ahead(frame, fd))

/* ---- vectors --------------------------------------------------------------------------------- */

/* The program's vector, its memory not looked at. 0 or -errno: import_iovec() of the kernel. */
static long take_vector(const struct dfi_frame *frame, struct iovec iov[IOV_MAX])
{
    unsigned count = (unsigned)frame->args[2];

    if (count > IOV_MAX)
        return -EINVAL;
    return dfi_copy_from(iov, (const void *)frame->args[1], count * sizeof(iov[0]));
}

#define AT_POSITION (-1) /* preadv2(2): the file's own */

/* What Linux finds before it looks at the vector: do_preadv(), vfs_readv(). */
static long judge_vector(const struct dfi_frame *frame, bool positioned, bool write, long ret)
{
    int flags = flags_of(frame), mode = flags & O_ACCMODE;

    if (positioned && (off_t)frame->args[3] < 0)
        return -EINVAL;
    if (flags & O_PATH || (mode != O_RDWR && mode != (write ? O_WRONLY : O_RDONLY)))
        return -EBADF;
    return ret;
}

static long run_vector(const struct dfi_frame *frame, int fd, bool positioned, bool write,
                       enum df_placing placing)
{
    off_t offset = positioned ? (off_t)frame->args[3] : AT_POSITION;
    int count = (int)frame->args[2];
    struct iovec iov[IOV_MAX];
    long ret = take_vector(frame, iov);

    if (ret < 0)
        return judge_vector(frame, positioned, write, ret);
    if (positioned)
        return write ? df_call_pwritev_placed(fd, iov, count, offset, placing)
                     : df_call_preadv(fd, iov, count, offset);
    return write ? df_call_writev_placed(fd, iov, count, placing) : df_call_readv(fd, iov, count);
}

DFI_BY_FD(readv, run_vector(frame, fd, false, false, DF_PLACED_BY_FLAGS))
DFI_BY_FD(writev, run_vector(frame, fd, false, true, DF_PLACED_BY_FLAGS))
DFI_BY_FD(preadv, run_vector(frame, fd, true, false, DF_PLACED_BY_FLAGS))
DFI_BY_FD(pwritev, run_vector(frame, fd, true, true, DF_PLACED_BY_FLAGS))

/* do_loop_readv_writev(): a directory has no reading that knows them. */
static long judge_flags(const struct dfi_frame *frame)
{
    const struct df_ofd *ofd = ofd_of(frame);
    unsigned flags = (unsigned)frame->args[5];

    if (flags & ~(unsigned)RWF_HIPRI && ofd && ofd->kind == DF_KIND_DIRECTORY)
        return -EOPNOTSUPP;
    return dfi_rw_flags_judge(flags);
}

/* The bytes of the vector, or -errno: import_iovec() of the kernel. */
static long size_of_vector(const struct iovec *iov, unsigned count)
{
    size_t size = 0;

    for (unsigned i = 0; i < count; i++) {
        if ((ssize_t)iov[i].iov_len < 0)
            return -EINVAL;
        size += iov[i].iov_len < DF_RW_MAX - size ? iov[i].iov_len : DF_RW_MAX - size;
    }
    return (long)size;
}

/* Flags are looked at when everything else is right and there is something to do. */
static long refuse_flags(const struct dfi_frame *frame, bool positioned, bool write)
{
    struct iovec iov[IOV_MAX];
    long ret = judge_vector(frame, positioned, write, take_vector(frame, iov)), end;

    if (ret == 0)
        ret = size_of_vector(iov, (unsigned)frame->args[2]);
    if (ret <= 0)
        return ret;
    if (positioned && __builtin_add_overflow((long)frame->args[3], ret, &end))
        return -EINVAL; /* rw_verify_area() */
    return judge_flags(frame);
}

static long run_vector_flags(const struct dfi_frame *frame, int fd, bool write)
{
    unsigned flags = (unsigned)frame->args[5];
    bool positioned = (off_t)frame->args[3] != AT_POSITION;
    long ret;

    if (judge_flags(frame) < 0)
        return refuse_flags(frame, positioned, write);
    ret = run_vector(frame, fd, positioned, write, dfi_rw_flags_placing(flags));
    if (ret > 0 && write && flags & DFI_RWF_SYNCS) {
        int synced = df_call_fdatasync(fd);

        return synced < 0 && synced != -EBADF ? synced : ret; /* EBADF: closed since the write */
    }
    return ret;
}

DFI_BY_FD(preadv2, run_vector_flags(frame, fd, false))
DFI_BY_FD(pwritev2, run_vector_flags(frame, fd, true))
