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

#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "syscalls/map.h"
#include "syscalls/record.h"

/* ---- one request -------------------------------------------------------------------------------
 */

#define FLAGS_KNOWN 0x7 /* RWF_HIPRI, RWF_DSYNC, RWF_SYNC */
#define FLAGS_SYNC  0x6

static long run_vector(const struct iocb *io, bool write)
{
    int fd = DF_FD_BASE + (int)io->aio_fildes;
    struct iovec iov[IOV_MAX];

    if (io->aio_nbytes > IOV_MAX)
        return -EINVAL;
    if (dfi_copy_from(iov, (const void *)io->aio_buf, io->aio_nbytes * sizeof(iov[0])) < 0)
        return -EFAULT;
    return write ? df_call_pwritev(fd, iov, (int)io->aio_nbytes, io->aio_offset)
                 : df_call_preadv(fd, iov, (int)io->aio_nbytes, io->aio_offset);
}

static long run_plain(const struct iocb *io)
{
    int fd = DF_FD_BASE + (int)io->aio_fildes;

    switch (io->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
        return df_call_pread(fd, (void *)io->aio_buf, io->aio_nbytes, io->aio_offset);
    case IOCB_CMD_PWRITE:
        return df_call_pwrite(fd, (const void *)io->aio_buf, io->aio_nbytes, io->aio_offset);
    case IOCB_CMD_PREADV:
        return run_vector(io, false);
    case IOCB_CMD_PWRITEV:
        return run_vector(io, true);
    case IOCB_CMD_FSYNC:
        return dfi_maps_sync_file(dfi_process()->files, fd, df_call_fsync);
    case IOCB_CMD_FDSYNC:
        return dfi_maps_sync_file(dfi_process()->files, fd, df_call_fdatasync);
    default: /* poll of a regular file too */
        return -EINVAL;
    }
}

static long run(const struct iocb *io)
{
    long ret, synced = 0;

    if (io->aio_rw_flags & ~FLAGS_KNOWN)
        return -EOPNOTSUPP;
    ret = run_plain(io);
    if (ret >= 0 && io->aio_rw_flags & FLAGS_SYNC)
        synced = df_call_fdatasync(DF_FD_BASE + (int)io->aio_fildes);
    return synced < 0 ? synced : ret;
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
