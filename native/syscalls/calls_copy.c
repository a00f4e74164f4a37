/*
 * calls_copy.c - sendfile, copy_file_range, splice: data between two descriptors, of which one or
 * both are files of mounts.
 */
#include <asm/ioctls.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>

#include "client/files.h"
#include "client/record.h"
#include "core/caller.h"
#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"

#define BUFFER_SIZE ((size_t)128 << 10)

/* One end: a file of a mount or what the kernel has. */
struct end {
    int fd;
    bool ours;
};

/* A descriptor of the core's own is none. */
static struct end end_of(unsigned long argument)
{
    int fd = dfi_other_fd(argument) == DFI_PASS ? (int)argument : -1;

    return (struct end){fd, dfi_fd_is_ours(argument)};
}

/* As F_GETFL of fcntl(2) gives them, or -EBADF. */
static long flags_of(struct end e)
{
    struct dfi_files *files = dfi_process()->files;
    const struct df_ofd *ofd;

    if (!e.ours)
        return dfi_kernel(__NR_fcntl, e.fd, F_GETFL);
    ofd = dfi_ofd(files, dfi_file_of(files, e.fd));
    return ofd ? (long)(unsigned)atomic_load(&ofd->flags) : -EBADF;
}

static bool is_open(struct end e)
{
    long flags = flags_of(e);

    return flags >= 0 && !(flags & O_PATH);
}

/* 0, or -EBADF: it is not open that way, but the other, or neither. */
static long check_mode(struct end e, int other)
{
    long flags = flags_of(e), mode = flags & O_ACCMODE;

    return flags < 0 || flags & O_PATH || mode == other || mode == O_ACCMODE ? -EBADF : 0;
}

static bool appends(struct end e)
{
    long flags = flags_of(e);

    return flags > 0 && flags & O_APPEND;
}

static long mode_of(struct end e, mode_t *mode)
{
    struct stat st;
    long ret = e.ours ? df_call_fstat(DF_FD_BASE + e.fd, &st) : dfi_kernel(__NR_fstat, e.fd, &st);

    *mode = st.st_mode;
    return ret;
}

static long position_of(struct end e)
{
    return e.ours ? df_call_lseek(DF_FD_BASE + e.fd, 0, SEEK_CUR)
                  : dfi_kernel(__NR_lseek, e.fd, 0, SEEK_CUR);
}

static void set_position(struct end e, off_t position)
{
    if (e.ours)
        df_call_lseek(DF_FD_BASE + e.fd, position, SEEK_SET);
    else
        dfi_kernel(__NR_lseek, e.fd, position, SEEK_SET);
}

/* The buffer is the core's: the kernel may take it as it is. */
static long read_at(struct end e, void *buffer, size_t size, off_t offset)
{
    return e.ours ? df_call_pread(DF_FD_BASE + e.fd, buffer, size, offset)
                  : dfi_kernel(__NR_pread64, e.fd, buffer, size, offset);
}

static long write_on(struct end e, const void *buffer, size_t size)
{
    return e.ours ? df_call_write(DF_FD_BASE + e.fd, buffer, size)
                  : dfi_kernel_wait(__NR_write, e.fd, buffer, size);
}

/* ---- sendfile -------------------------------------------------------------------------------- */

/*
 * The kernel sends only what it splices, and there: not from /dev/null, nor from and to most files
 * of /proc, though these can be read and written. Only a splice tells. Without a pipe for it,
 * reading and writing will.
 */
static bool make_pipe(int pipe[2])
{
    return dfi_brief_pipe(pipe, O_CLOEXEC | O_NONBLOCK) == 0;
}

static void close_pipe(const int pipe[2])
{
    dfi_brief_close(pipe[0]);
    dfi_brief_close(pipe[1]);
}

/* Files of other file systems, sockets and pipes are spliced: they are most of what is sent, and to
 * make a pipe costs 5 us. */
static bool is_plain(struct end e)
{
    struct statfs st;
    mode_t mode;

    if (mode_of(e, &mode) < 0)
        return false;
    return S_ISSOCK(mode) || S_ISFIFO(mode) ||
           (S_ISREG(mode) && dfi_kernel(__NR_fstatfs, e.fd, &st) == 0 &&
            st.f_type != PROC_SUPER_MAGIC);
}

/* Of what is sent first: no part of a page, with O_DIRECT. -EINVAL: nothing can be. */
static long check_source(struct end in, off_t from, size_t size)
{
    int pipe[2];
    long ret;

    if (is_plain(in) || !make_pipe(pipe))
        return 0;
    ret = dfi_kernel(__NR_sendfile, pipe[1], in.fd, &from, size < 4096 ? size : 4096);
    close_pipe(pipe);
    return ret == -EINVAL || ret == -ESPIPE ? -EINVAL : 0;
}

/* Of nothing. */
static long check_destination(struct end out)
{
    int pipe[2];
    long ret;

    if (is_plain(out) || !make_pipe(pipe))
        return 0;
    ret = dfi_kernel(__NR_splice, pipe[0], NULL, out.fd, NULL, 1, SPLICE_F_NONBLOCK);
    close_pipe(pipe);
    return ret == -EINVAL ? -EINVAL : 0;
}

static long send_all(struct end out, struct end in, char *buffer, off_t from, size_t size)
{
    size_t done = 0;
    long ret = 0;

    while (done < size) {
        size_t piece = size - done < BUFFER_SIZE ? size - done : BUFFER_SIZE;
        long got = read_at(in, buffer, piece, from + (off_t)done);

        if (got <= 0) {
            ret = got;
            break;
        }
        if (done == 0 && !out.ours && (ret = check_destination(out)) < 0)
            break;
        ret = write_on(out, buffer, (size_t)got);
        if (ret > 0)
            done += (size_t)ret;
        if (ret <= 0 || (ret < got && !out.ours)) /* a file says what is wrong when asked again */
            break;
    }
    return done > 0 ? (long)done : ret;
}

static bool is_directory(struct end e)
{
    mode_t mode;

    return mode_of(e, &mode) == 0 && S_ISDIR(mode);
}

/* rw_verify_area() of the kernel, before anything is moved. */
static bool is_range(off_t offset, size_t size)
{
    off_t end;

    return offset >= 0 && (off_t)size >= 0 && !__builtin_add_overflow(offset, (off_t)size, &end);
}

/* What do_sendfile() of the kernel finds before it reads; `from` may be -errno, -ESPIPE for what
 * has no position. */
static long check_send(struct end out, struct end in, off_t from, size_t size)
{
    if (check_mode(in, O_WRONLY) < 0)
        return -EBADF;
    if (from < 0 && from != -ESPIPE)
        return from;
    if (from != -ESPIPE && !is_range(from, size))
        return -EINVAL;
    if (check_mode(out, O_RDONLY) < 0)
        return -EBADF;
    if (from == -ESPIPE || appends(out) || (size > 0 && is_directory(in)))
        return -EINVAL;
    return size > 0 && !in.ours ? check_source(in, from, size) : 0;
}

static long send_from(struct end out, struct end in, off_t from, size_t size)
{
    long ret = check_send(out, in, from, size);
    char *buffer;

    if (ret < 0 || size == 0)
        return ret;
    if (!(buffer = dfi_alloc(BUFFER_SIZE)))
        return -ENOMEM;
    ret = send_all(out, in, buffer, from, size < DF_RW_MAX ? size : DF_RW_MAX);
    dfi_free(buffer);
    return ret;
}

/* Where there is an offset it must be one that could be read at: eventfds, which can be sought,
 * have none. */
static bool is_positioned(struct end e)
{
    return position_of(e) != -ESPIPE &&
           (e.ours || dfi_kernel(__NR_pread64, e.fd, NULL, 0, 0) != -ESPIPE);
}

/* The caller's offset is written in any case, as by the kernel. */
static long send(struct dfi_frame *frame, struct end out, struct end in)
{
    off_t *program = (off_t *)frame->args[2], from;
    size_t size = frame->args[3];
    long ret;

    if (!program) {
        from = position_of(in);
        ret = send_from(out, in, from, size);
        if (ret > 0)
            set_position(in, from + ret);
        return ret;
    }
    if (dfi_copy_from(&from, program, sizeof(from)) < 0)
        return -EFAULT;
    if (!is_positioned(in))
        ret = check_mode(in, O_WRONLY) < 0 ? -EBADF : -ESPIPE;
    else
        ret = send_from(out, in, from < 0 ? -EINVAL : from, size);
    if (ret > 0)
        from += ret;
    return dfi_copy_to(program, &from, sizeof(from)) < 0 ? -EFAULT : ret;
}

long dfi_do_sendfile(struct dfi_frame *frame)
{
    struct end out = end_of(frame->args[0]), in = end_of(frame->args[1]);
    struct dfi_record record;
    long ret;

    if (!out.ours && !in.ours)
        return dfi_pass_fd(frame);
    dfi_record_begin(&record);
    ret = send(frame, out, in);
    dfi_record_end(&record);
    return ret;
}

/* ---- copy_file_range ------------------------------------------------------------------------- */

/* Both are taken before anything is asked of the files but that they are open. */
static long take_offsets(const struct dfi_frame *frame, off_t offset[2])
{
    for (int i = 0; i < 2; i++) {
        const void *program = (void *)frame->args[2 * i + 1];

        if (program && dfi_copy_from(&offset[i], program, sizeof(offset[i])) < 0)
            return -EFAULT;
    }
    return 0;
}

static long copy_range(struct dfi_frame *frame, off_t offset[2])
{
    off_t *program[2] = {(off_t *)frame->args[1], (off_t *)frame->args[3]};
    long ret;

    ret = df_call_copy_file_range(DF_FD_BASE + (int)frame->args[0], program[0] ? &offset[0] : NULL,
                                  DF_FD_BASE + (int)frame->args[2], program[1] ? &offset[1] : NULL,
                                  frame->args[4], (unsigned)frame->args[5]);
    for (int i = 0; ret > 0 && i < 2; i++)
        if (program[i] && dfi_copy_to(program[i], &offset[i], sizeof(offset[i])) < 0)
            return -EFAULT;
    return ret;
}

/* What Linux finds before EXDEV: vfs_copy_file_range(). */
static long refuse_copy(const struct dfi_frame *frame, struct end in, struct end out)
{
    mode_t from, to;

    if (frame->args[5])
        return -EINVAL;
    if (mode_of(in, &from) < 0 || mode_of(out, &to) < 0)
        return -EBADF;
    if (S_ISDIR(from) || S_ISDIR(to))
        return -EISDIR;
    if (!S_ISREG(from) || !S_ISREG(to))
        return -EINVAL;
    if (check_mode(in, O_WRONLY) < 0 || check_mode(out, O_RDONLY) < 0 || appends(out))
        return -EBADF;
    return -EXDEV;
}

static long copy(struct dfi_frame *frame, struct end in, struct end out)
{
    off_t offset[2] = {0, 0};
    long ret;

    if (!is_open(in) || !is_open(out))
        return -EBADF;
    if ((ret = take_offsets(frame, offset)) < 0)
        return ret;
    return in.ours && out.ours ? copy_range(frame, offset) : refuse_copy(frame, in, out);
}

long dfi_do_copy_file_range(struct dfi_frame *frame)
{
    struct end in = end_of(frame->args[0]), out = end_of(frame->args[2]);
    struct dfi_record record;
    long ret;

    if (!in.ours && !out.ours)
        return dfi_pass_fd(frame);
    dfi_record_begin(&record);
    ret = copy(frame, in, out);
    dfi_record_end(&record);
    return ret;
}

/* ---- splice ---------------------------------------------------------------------------------- */

#define SPLICE_F_ALL (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)
#define PIPE_PIECE   ((size_t)64 << 10) /* what a pipe holds: a splice may move less than asked */

static bool is_pipe(int fd)
{
    struct stat st;

    return dfi_kernel(__NR_fstat, fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Waits for what is to be taken out of a pipe, or fails where the caller does not wait. */
static long await_piped(int fd, unsigned flags)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    long ret;

    if (!(flags & SPLICE_F_NONBLOCK))
        return 0;
    ret = dfi_kernel(__NR_poll, &p, 1, 0);
    return ret == 0 ? -EAGAIN : ret < 0 ? ret : 0;
}

/* Waits for room in a pipe, as a splice does before it looks at the file; where nobody reads there
 * it is EPIPE and SIGPIPE. Behind the end of the placeholder the kernel finds nothing to move. */
static long await_room(int placeholder, int pipe, unsigned flags)
{
    off_t behind = INT64_MAX - 1;

    return dfi_kernel_wait(__NR_splice, placeholder, &behind, pipe, NULL, 1, flags);
}

/* Bytes that a pipe takes at once, where it takes any: a splice moves what there is room for, and a
 * write would wait for room for all, perhaps for its own thread to make it. What lies in a pipe may
 * lie in pages that are not full, so of one that is not empty the room for a page is known alone.
 */
static size_t room_of_pipe(int fd, size_t size)
{
    int held = 0;
    long holds = dfi_kernel(__NR_fcntl, fd, F_GETPIPE_SZ);
    bool empty = dfi_kernel(__NR_ioctl, fd, FIONREAD, &held) == 0 && held == 0;
    size_t room = empty && holds > PIPE_BUF ? (size_t)holds : PIPE_BUF;

    return size < room ? size : room;
}

static long file_to_pipe(int file, off_t *offset, int pipe, char *buffer, size_t size,
                         unsigned flags)
{
    struct end in = {file, true};
    off_t from = offset ? *offset : position_of(in);
    long ret;

    if (from < 0)
        return from;
    if ((ret = await_room(file, pipe, flags)) < 0)
        return ret;
    ret = read_at(in, buffer, room_of_pipe(pipe, size), from);
    if (ret > 0)
        ret = dfi_kernel_wait(__NR_write, pipe, buffer, ret);
    if (ret > 0 && offset)
        *offset = from + ret;
    else if (ret > 0)
        set_position(in, from + ret);
    return ret;
}

/* The file may not grow: what comes stays in the pipe. 0 at its end. */
static long leave_piped(int pipe)
{
    struct pollfd p = {.fd = pipe, .events = POLLIN};
    long ret = dfi_kernel_wait(__NR_poll, &p, 1, -1);

    if (ret > 0)
        ret = p.revents & POLLIN ? df_caller_too_large() : 0;
    return ret;
}

/* Bytes that may be written under the limit of the process: what is taken out of a pipe cannot be
 * put back. */
static size_t room_of(int file, const off_t *offset, size_t size)
{
    off_t limit = dfi_process()->files->caller.size_limit;
    off_t from = limit == INT64_MAX ? 0 : offset ? *offset : position_of((struct end){file, true});

    if (from >= limit)
        return 0;
    return (off_t)size < limit - from ? size : (size_t)(limit - from);
}

static long write_piped(int file, off_t *offset, const char *buffer, size_t size)
{
    long ret;

    if (!offset)
        return df_call_write(DF_FD_BASE + file, buffer, size);
    ret = df_call_pwrite(DF_FD_BASE + file, buffer, size, *offset);
    if (ret > 0)
        *offset += ret;
    return ret;
}

/* A splice goes on for as long as there is something to be taken out, so it comes to the limit. */
static void tell_limit(int pipe)
{
    int held = 0;

    if (dfi_kernel(__NR_ioctl, pipe, FIONREAD, &held) == 0 && held > 0)
        df_caller_too_large();
}

static long pipe_to_file(int pipe, int file, off_t *offset, char *buffer, size_t size,
                         unsigned flags)
{
    long ret = await_piped(pipe, flags);
    size_t room = room_of(file, offset, size);

    if (ret == 0)
        ret = room > 0 ? dfi_kernel_wait(__NR_read, pipe, buffer, room) : leave_piped(pipe);
    if (ret <= 0)
        return ret;
    ret = write_piped(file, offset, buffer, (size_t)ret);
    if (room < size && ret == (long)room)
        tell_limit(pipe);
    return ret;
}

static bool is_piped(struct end e)
{
    return !e.ours && is_pipe(e.fd);
}

/* 0, or what Linux refuses, in its order: __do_splice() and do_splice(). */
static long check_splice(const struct dfi_frame *frame, struct end in, struct end out)
{
    const unsigned long *a = frame->args;
    char byte[sizeof(off_t)];

    if ((unsigned)a[5] & ~SPLICE_F_ALL)
        return -EINVAL;
    if (!is_open(in) || !is_open(out))
        return -EBADF;
    if ((is_piped(in) && a[1]) || (is_piped(out) && a[3]))
        return -ESPIPE;
    for (int i = 3; i > 0; i -= 2)
        if (a[i] && dfi_copy_from(byte, (void *)a[i], sizeof(byte)) < 0)
            return -EFAULT;
    if (check_mode(in, O_WRONLY) < 0 || check_mode(out, O_RDONLY) < 0)
        return -EBADF;
    if (is_directory(in))
        return -EINVAL;
    return is_piped(out) || (is_piped(in) && !appends(out)) ? 0 : -EINVAL;
}

static long splice_file(struct dfi_frame *frame, bool from_file)
{
    off_t *program = (off_t *)frame->args[from_file ? 1 : 3], offset;
    int in = (int)frame->args[0], out = (int)frame->args[2];
    size_t size = frame->args[4] < PIPE_PIECE ? frame->args[4] : PIPE_PIECE;
    unsigned flags = (unsigned)frame->args[5];
    char *buffer;
    long ret;

    if (program && dfi_copy_from(&offset, program, sizeof(offset)) < 0)
        return -EFAULT;
    if (!program)
        offset = position_of((struct end){from_file ? in : out, true});
    if (!is_range(offset, frame->args[4]))
        return -EINVAL;
    if (!(buffer = dfi_alloc(PIPE_PIECE)))
        return -ENOMEM;
    ret = from_file ? file_to_pipe(in, program ? &offset : NULL, out, buffer, size, flags)
                    : pipe_to_file(in, out, program ? &offset : NULL, buffer, size, flags);
    dfi_free(buffer);
    if (ret > 0 && program && dfi_copy_to(program, &offset, sizeof(offset)) < 0)
        return -EFAULT;
    return ret;
}

long dfi_do_splice(struct dfi_frame *frame)
{
    struct end in = end_of(frame->args[0]), out = end_of(frame->args[2]);
    struct dfi_record record;
    long ret;

    if (!in.ours && !out.ours)
        return dfi_pass_fd(frame);
    if (frame->args[4] == 0)
        return 0;
    dfi_record_begin(&record);
    ret = check_splice(frame, in, out);
    if (ret == 0)
        ret = splice_file(frame, in.ours);
    dfi_record_end(&record);
    return ret;
}
