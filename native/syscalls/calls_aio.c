/*
 * calls_aio.c - Linux AIO (io_submit(2), what libaio calls) on files of mounts.
 *
 * Contexts are the kernel's, and so are waiting, order, eventfds and the ring that libaio reads
 * without a call. A request that names a file of a mount is carried out while it is submitted; the
 * kernel is then given, under the same iocb, a request that has the same result: a write of as many
 * bytes to /dev/null, which looks at no memory. What fails is an error of io_submit(2) itself:
 * there is no request that the kernel would complete with any error one likes.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>

#include "client/record.h"
#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "shadows/map.h"
#include "syscalls/rw_flags.h"

/* ---- one request -------------------------------------------------------------------------------
 */

static int fd_of(const struct iocb *io)
{
    return DF_FD_BASE + (int)io->aio_fildes;
}

static const struct df_ofd *ofd_of(const struct iocb *io)
{
    const struct dfi_files *files = dfi_process()->files;

    return dfi_ofd(files, dfi_file_of(files, (int)io->aio_fildes));
}

/* Its flags; O_PATH: of no use to any request. */
static int flags_of(const struct df_ofd *ofd)
{
    return ofd ? (int)atomic_load(&ofd->flags) : O_PATH;
}

/* What Linux finds before it looks at the buffer: aio_read(), aio_write(). */
static long judge(const struct iocb *io, bool write)
{
    const struct df_ofd *ofd = ofd_of(io);
    int mode = flags_of(ofd) & O_ACCMODE;
    long ret = dfi_rw_flags_judge((unsigned)io->aio_rw_flags);

    if (ret < 0)
        return ret;
    if (mode != O_RDWR && mode != (write ? O_WRONLY : O_RDONLY))
        return -EBADF;
    return ofd && ofd->kind == DF_KIND_DIRECTORY ? -EINVAL : 0;
}

/* The number of buffers, or -errno. */
static long take_buffers(const struct iocb *io, bool many, struct iovec iov[IOV_MAX])
{
    iov[0] = (struct iovec){(void *)io->aio_buf, io->aio_nbytes};
    if (!many)
        return 1;
    if (io->aio_nbytes > IOV_MAX)
        return -EINVAL;
    if (dfi_copy_from(iov, (const void *)io->aio_buf, io->aio_nbytes * sizeof(iov[0])) < 0)
        return -EFAULT;
    return (long)io->aio_nbytes;
}

static long read_or_write(const struct iocb *io, bool write, bool many)
{
    struct iovec iov[IOV_MAX];
    long count = judge(io, write), ret, synced;

    if (count == 0)
        count = take_buffers(io, many, iov);
    if (count < 0)
        return count;
    if (!write)
        return df_call_preadv(fd_of(io), iov, (int)count, io->aio_offset);
    ret = df_call_pwritev_placed(fd_of(io), iov, (int)count, io->aio_offset,
                                 dfi_rw_flags_placing((unsigned)io->aio_rw_flags));
    if (ret <= 0 || !(io->aio_rw_flags & DFI_RWF_SYNCS))
        return ret;
    synced = df_call_fdatasync(fd_of(io));
    return synced < 0 ? synced : ret;
}

/* aio_fsync(): all of the file, and nothing else is asked for. */
static long sync_file(const struct iocb *io, int (*sync)(int fd))
{
    if (io->aio_buf || io->aio_offset || io->aio_nbytes || io->aio_rw_flags)
        return -EINVAL;
    return dfi_maps_sync_file(dfi_process()->files, fd_of(io), sync);
}

static long run(const struct iocb *io)
{
    if (flags_of(ofd_of(io)) & O_PATH)
        return -EBADF;
    switch (io->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV:
        return read_or_write(io, false, io->aio_lio_opcode == IOCB_CMD_PREADV);
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV:
        return read_or_write(io, true, io->aio_lio_opcode == IOCB_CMD_PWRITEV);
    case IOCB_CMD_FSYNC:
        return sync_file(io, df_call_fsync);
    case IOCB_CMD_FDSYNC:
        return sync_file(io, df_call_fdatasync);
    default: /* poll of a regular file too */
        return -EINVAL;
    }
}

/* Has the kernel complete the program's iocb with that result. It reads the iocb now and never
 * again. */
static long complete(unsigned long context, struct iocb *program, const struct iocb *io,
                     long result)
{
    long ret, null = dfi_brief(__NR_open, "/dev/null", O_WRONLY | O_CLOEXEC, 0);
    struct iocb stand_in = *io;

    if (null < 0)
        return -EAGAIN;
    stand_in.aio_lio_opcode = IOCB_CMD_PWRITE;
    stand_in.aio_fildes = (unsigned)null;
    stand_in.aio_buf = 0; /* so that no end of the buffer is beyond the program's addresses */
    stand_in.aio_nbytes = (unsigned long)result;
    stand_in.aio_offset = 0;
    stand_in.aio_rw_flags = 0;
    ret = dfi_copy_to(program, &stand_in, sizeof(stand_in));
    if (ret == 0) {
        ret = dfi_kernel(__NR_io_submit, context, 1, &program);
        dfi_copy_to(program, io, sizeof(*io));
    }
    dfi_brief_close(null);
    return ret;
}

/* ---- io_submit ---------------------------------------------------------------------------------
 */

/* The i-th iocb of the program's array. 0 or -EFAULT. */
static long take(const struct dfi_frame *frame, unsigned long i, struct iocb **program,
                 struct iocb *io)
{
    struct iocb *const *list = (struct iocb *const *)frame->args[2];

    if (dfi_copy_from(program, list + i, sizeof(*program)) < 0)
        return -EFAULT;
    return dfi_copy_from(io, *program, sizeof(*io));
}

static bool is_ours(const struct iocb *io)
{
    return dfi_fd_is_ours(io->aio_fildes);
}

/* Whether any names a file of a mount; what cannot be read is the kernel's to refuse. */
static bool any_ours(const struct dfi_frame *frame)
{
    struct iocb *program, io;

    for (unsigned long i = 0; i < frame->args[1]; i++) {
        if (take(frame, i, &program, &io) < 0)
            return false;
        if (is_ours(&io))
            return true;
    }
    return false;
}

static long submit_one(const struct dfi_frame *frame, unsigned long i)
{
    struct iocb *program, io;
    long ret = take(frame, i, &program, &io);

    if (ret < 0)
        return ret;
    if (!is_ours(&io))
        return dfi_kernel(__NR_io_submit, frame->args[0], 1, &program);
    ret = run(&io);
    return ret < 0 ? ret : complete(frame->args[0], program, &io, ret);
}

/* In the program's order; as the kernel, the first that fails ends it. */
static long submit_all(const struct dfi_frame *frame)
{
    for (unsigned long i = 0; i < frame->args[1]; i++) {
        long ret = submit_one(frame, i);

        if (ret < 1)
            return i > 0 ? (long)i : ret;
    }
    return (long)frame->args[1];
}

long dfi_do_io_submit(struct dfi_frame *frame)
{
    struct dfi_record record;
    long ret;

    if ((long)frame->args[1] <= 0 || atomic_load(&dfi_process()->files->top) == 0 ||
        !any_ours(frame))
        return DFI_PASS;
    ret = dfi_kernel(__NR_io_submit, frame->args[0], 0, frame->args[2]); /* is it a context? */
    if (ret < 0)
        return ret;
    dfi_record_begin(&record);
    ret = submit_all(frame);
    dfi_record_end(&record);
    return ret;
}
