/*
 * calls_fd.c - what is done to descriptors: close, dup, fcntl, ioctl. The kernel does it to the
 * placeholder; here the process's map follows. Locks are in calls_lock.c.
 */
#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <string.h>

#include "client/files.h"
#include "client/record.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/ioctl.h"
#include "intercept/brief.h"
#include "shadows/linger.h"
#include "shadows/placeholder.h"
#include "syscalls/calls_lock.h"

/* ---- close ----------------------------------------------------------------------------------- */

long dfi_do_close(struct dfi_frame *frame)
{
    int fd = (int)frame->args[0];

    if (dfi_fd_is_of_mount(frame->args[0]))
        return dfi_placeholder_close(dfi_process()->files, fd);
    dfi_linger_freed(dfi_process()->files, (unsigned)fd);
    return dfi_brief_is(fd) ? -EBADF : dfi_other_fd(frame->args[0]);
}

/* The lowest descriptor of the core's own in the range; UINT_MAX: none. */
static unsigned next_hidden(unsigned first, unsigned last)
{
    const struct dfi_process *process = dfi_process();
    unsigned next = dfi_brief_next(first, last);

    for (int i = 0; i < process->hidden_count; i++) {
        unsigned fd = (unsigned)process->hidden[i];

        if (process->hidden[i] >= 0 && fd >= first && fd <= last && fd < next)
            next = fd;
    }
    return next;
}

static void forget_range(struct dfi_files *files, unsigned first, unsigned last)
{
    unsigned top = (unsigned)atomic_load(&files->top);

    for (unsigned fd = first; fd < top && fd <= last; fd++)
        if (dfi_file_of(files, fd))
            dfi_fd_replace(files, (int)fd, 0);
}

long dfi_do_close_range(struct dfi_frame *frame)
{
    unsigned first = (unsigned)frame->args[0], last = (unsigned)frame->args[1];
    unsigned flags = (unsigned)frame->args[2], hidden;
    long ret = 0;

    if (first > last || flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC))
        return -EINVAL;
    if (flags & CLOSE_RANGE_CLOEXEC) {
        dfi_linger_shared(dfi_process()->files); /* their flags are not those of their open(2) */
    } else {
        forget_range(dfi_process()->files, first, last);
        dfi_linger_freed(dfi_process()->files, first);
    }
    while (ret == 0 && (hidden = next_hidden(first, last)) != UINT_MAX) {
        if (hidden > first)
            ret = dfi_kernel(__NR_close_range, first, hidden - 1, flags);
        if (hidden == last)
            return ret;
        first = hidden + 1;
    }
    return ret < 0 ? ret : dfi_kernel(__NR_close_range, first, last, flags);
}

/* ---- dup ------------------------------------------------------------------------------------- */

static long enter_copy(struct dfi_files *files, long copy, uint64_t entry)
{
    if (copy >= DFI_FD_MAX) {
        dfi_kernel(__NR_close, copy);
        return -EMFILE;
    }
    if (copy >= 0) {
        dfi_linger_never_at(files, dfi_handle_in(entry));
        dfi_fd_enter(files, (int)copy, entry);
    }
    return copy;
}

/* dup(2) and F_DUPFD: by the kernel, of a file that stays open until its copy is entered. */
static long copy_lowest(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    uint64_t entry = dfi_fd_take(files, (int)a[0]);
    long copy;

    if (!entry)
        return dfi_other_fd(a[0]);
    copy = enter_copy(files, dfi_kernel(frame->nr, a[0], a[1], a[2]), entry);
    dfi_fd_drop(files, dfi_handle_in(entry), false);
    return copy;
}

long dfi_do_dup(struct dfi_frame *frame)
{
    return copy_lowest(frame);
}

static bool is_hidden(int fd)
{
    return dfi_is_hidden(dfi_process(), fd);
}

/* The kernel's call; DFI_PASS: it can make it outside of the core. */
static long dup_there(struct dfi_frame *frame, bool ours, bool claimed)
{
    int from = (int)frame->args[0], to = (int)frame->args[1];

    if (is_hidden(from) || is_hidden(to) || (ours && to >= DFI_FD_MAX))
        return -EBADF;
    return ours || claimed ? dfi_kernel(frame->nr, from, to, frame->args[2]) : DFI_PASS;
}

/* What takes a number of the kernel's has it before the kernel knows: a thread that uses it
 * meanwhile must not come to the placeholder, where what it writes would be lost. */
static bool enter_early(struct dfi_files *files, int from, int to, uint64_t entry)
{
    if (!entry || to < 0 || to >= DFI_FD_MAX || dfi_entry_of(files, to) || is_hidden(from) ||
        is_hidden(to))
        return false;
    dfi_fd_replace(files, to, entry);
    return true;
}

static long copy_to(struct dfi_frame *frame, struct dfi_files *files, uint64_t entry)
{
    int from = (int)frame->args[0], to = (int)frame->args[1];
    bool ours = entry || dfi_entry_of(files, to), early;
    long ret, claimed = dfi_brief_claim(to);

    if (claimed < 0)
        return claimed;
    early = enter_early(files, from, to, entry);
    ret = dup_there(frame, ours, claimed);
    if (claimed)
        dfi_brief_release();
    if (ret >= 0 && ours)
        dfi_linger_never_at(files, dfi_handle_in(entry));
    if (early ? ret < 0 : ret >= 0 && ours)
        dfi_fd_replace(files, to, early ? 0 : entry);
    return ret;
}

static long dup_to(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    int from = (int)frame->args[0];
    uint64_t entry;
    long ret;

    if (from == (int)frame->args[1])
        return is_hidden(from) ? -EBADF : DFI_PASS;
    entry = dfi_fd_take(files, from);
    ret = copy_to(frame, files, entry);
    if (entry)
        dfi_fd_drop(files, dfi_handle_in(entry), false);
    return ret;
}

long dfi_do_dup2(struct dfi_frame *frame)
{
    return dup_to(frame);
}

long dfi_do_dup3(struct dfi_frame *frame)
{
    return dup_to(frame);
}

/* ---- fcntl ----------------------------------------------------------------------------------- */

/* fcntl(2). Not O_ASYNC: no file system has files that send signals. */
#define SETTABLE (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)

/* O_NOATIME is for the owner: fcntl(2), EPERM. */
static long check_noatime(struct dfi_files *files, int fd, int change)
{
    struct stat st;
    int ret;

    if (!(change & O_NOATIME) || dfi_caller(files)->capable)
        return 0;
    ret = df_call_fstat(DF_FD_BASE + fd, &st);
    return ret < 0 ? ret : st.st_uid == dfi_caller(files)->uid ? 0 : -EPERM;
}

static long set_flags(struct dfi_files *files, int fd, struct df_ofd *ofd, int flags)
{
    uint32_t old = atomic_load(&ofd->flags);
    long ret = check_noatime(files, fd, flags & ~(int)old);

    if (ret < 0)
        return ret;
    if (flags & O_DIRECT && ofd->kind == DF_KIND_DIRECTORY) /* as at open(2) */
        return -EINVAL;
    while (!atomic_compare_exchange_weak(
        &ofd->flags, &old, (old & ~(uint32_t)SETTABLE) | ((uint32_t)flags & SETTABLE)))
        ;
    return 0;
}

static bool has_type(int fd, mode_t type)
{
    struct stat st;

    return df_call_fstat(DF_FD_BASE + fd, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

/* No lease is given and no directory watched: EINVAL. What is asked of those that there are not,
 * and what else is refused, is as on Linux. */
static long watch(struct dfi_frame *frame, int fd, int flags)
{
    if (flags & O_PATH)
        return -EBADF;
    switch ((int)frame->args[1]) {
    case F_GETLEASE:
        return F_UNLCK;
    case F_SETLEASE:
        return (int)frame->args[2] == F_UNLCK && has_type(fd, S_IFREG) ? -EAGAIN : -EINVAL;
    default: /* without events it ends watching: there is nothing to end */
        if (!((unsigned)frame->args[2] & ~DN_MULTISHOT))
            return 0;
        return has_type(fd, S_IFDIR) ? -EINVAL : -ENOTDIR;
    }
}

#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY 1028
#endif

/* Only files in memory are sealed: memfd_fcntl(). */
static long seal(int command, int flags)
{
    if (flags & O_PATH)
        return -EBADF;
    return command == F_ADD_SEALS && !(flags & (O_WRONLY | O_RDWR)) ? -EPERM : -EINVAL;
}

static long run_fcntl(struct dfi_frame *frame, struct dfi_files *files, int fd, uint64_t entry)
{
    struct df_ofd *ofd = dfi_ofd(files, dfi_handle_in(entry));
    int command = (int)frame->args[1];

    if (!ofd)
        return -EIO;
    if (entry & DFI_FIFO)
        return DFI_PASS;
    switch (command) {
    case F_GETFL:
        return (long)atomic_load(&ofd->flags);
    case F_SETFL:
        if (atomic_load(&ofd->flags) & O_PATH)
            return -EBADF;
        return set_flags(files, fd, ofd, (int)frame->args[2]);
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return dfi_fcntl_lock(frame, files, ofd);
    case F_SETLEASE:
    case F_GETLEASE:
    case F_NOTIFY:
        return watch(frame, fd, (int)atomic_load(&ofd->flags));
    case F_ADD_SEALS:
    case F_GET_SEALS:
        return seal(command, (int)atomic_load(&ofd->flags));
    case F_CREATED_QUERY: /* the placeholder may have been made just now */
        return 0;
    case F_GETFD:
        return DFI_PASS;
    default: /* sets something of the descriptor, or of its description */
        dfi_linger_never(ofd);
        return DFI_PASS;
    }
}

long dfi_do_fcntl(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    int fd = (int)frame->args[0];
    uint64_t entry = dfi_entry_of(files, fd);
    struct dfi_record record;
    long ret;

    if (!entry)
        return dfi_other_fd(frame->args[0]);
    if ((int)frame->args[1] == F_DUPFD || (int)frame->args[1] == F_DUPFD_CLOEXEC)
        return copy_lowest(frame);
    dfi_record_begin(&record);
    ret = run_fcntl(frame, files, fd, entry);
    dfi_record_end(&record);
    return ret;
}

/* ---- ioctl ----------------------------------------------------------------------------------- */

static long bytes_left(int fd, void *program)
{
    off_t position;
    struct stat st;
    int ret = df_call_fstat(DF_FD_BASE + fd, &st), left;

    if (ret < 0)
        return ret;
    if (!S_ISREG(st.st_mode))
        return -ENOTTY;
    position = df_call_lseek(DF_FD_BASE + fd, 0, SEEK_CUR);
    left = (int)(st.st_size - position);
    return position < 0 ? position : dfi_copy_to(program, &left, sizeof(left));
}

static long set_nonblock(struct dfi_files *files, int fd, const void *program)
{
    struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, fd));
    int on;

    if (dfi_copy_from(&on, program, sizeof(on)) < 0)
        return -EFAULT;
    if (!ofd)
        return -EBADF;
    if (on)
        atomic_fetch_or(&ofd->flags, O_NONBLOCK);
    else
        atomic_fetch_and(&ofd->flags, ~(uint32_t)O_NONBLOCK);
    return 0;
}

/* Where the blocks are to come from, as native/core numbers it. */
static long clone_from(int fd, unsigned long source)
{
    int from = dfi_fd_is_ours(source) ? DF_FD_BASE + (int)source : (int)source;

    if (from == (int)source && dfi_kernel(__NR_fcntl, source, F_GETFD) < 0)
        return -EBADF;
    return df_call_ioctl(DF_FD_BASE + fd, FICLONE, (void *)(intptr_t)from);
}

static long clone_range(int fd, const void *program)
{
    struct file_clone_range range;

    if (dfi_copy_from(&range, program, sizeof(range)) < 0)
        return -EFAULT;
    return clone_from(fd, (unsigned long)range.src_fd);
}

/* What native/core answers without the file system, to be copied to the program. */
static long copy_answer(int fd, unsigned long request, void *program, size_t size)
{
    loff_t answer;
    long ret = df_call_ioctl(DF_FD_BASE + fd, request, &answer);

    return ret < 0 ? ret : dfi_copy_to(program, &answer, size);
}

/* What native/core looks at before the file system does: chattr(1)'s. */
static long change_flags(int fd, unsigned long request, const void *program)
{
    struct fsxattr flags;

    if (dfi_copy_from(&flags, program, df_ioctl_size(request)) < 0)
        return -EFAULT;
    return df_call_ioctl(DF_FD_BASE + fd, request, &flags);
}

/* fdget(): of a file that is open for its place only, nothing can be asked. */
static bool is_place(int fd)
{
    const struct dfi_files *files = dfi_process()->files;
    const struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, fd));

    return ofd && atomic_load(&ofd->flags) & O_PATH;
}

static long run_ioctl(struct dfi_frame *frame, int fd)
{
    unsigned long request = (unsigned)frame->args[1];
    void *argument = (void *)frame->args[2];

    if (is_place(fd))
        return -EBADF;
    switch (request) {
    case FIOCLEX:
    case FIONCLEX:
    case FIOASYNC:
        dfi_linger_never_at(dfi_process()->files, dfi_file_of(dfi_process()->files, fd));
        return DFI_PASS;
    case FIONBIO:
        return set_nonblock(dfi_process()->files, fd, argument);
    case FIONREAD:
        return bytes_left(fd, argument);
    case FICLONE:
        return clone_from(fd, frame->args[2]);
    case FICLONERANGE:
        return clone_range(fd, argument);
    case FIBMAP:
    case FIGETBSZ:
        return copy_answer(fd, request, argument, sizeof(int));
    case FIOQSIZE:
        return copy_answer(fd, request, argument, sizeof(loff_t));
    case FS_IOC_SETFLAGS:
    case FS_IOC_FSSETXATTR:
        return change_flags(fd, request, argument);
    default:
        if (request >> 8 == 'T') /* terminals' */
            return -ENOTTY;
        return df_call_ioctl(DF_FD_BASE + fd, request, argument);
    }
}

long dfi_do_ioctl(struct dfi_frame *frame)
{
    int fd = (int)frame->args[0];
    struct dfi_record record;
    long ret;

    if (!dfi_fd_is_ours(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    dfi_record_begin(&record);
    ret = run_ioctl(frame, fd);
    dfi_record_end(&record);
    return ret;
}
