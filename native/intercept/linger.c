/*
 * linger.c - placeholders that are closed a little later.
 *
 * df_ofd.door[1] is the descriptor that was opened for the file and its close-on-exec flag, as long
 * as nothing was done to either; else 0.
 */
#include "intercept/linger.h"

#include <fcntl.h>
#include <sys/mman.h>

static uint64_t as_opened(int fd, int flags)
{
    return ((uint64_t)fd + 1) << 1 | ((flags & O_CLOEXEC) != 0);
}

/* Nobody else makes and closes descriptors. */
static bool is_alone(void)
{
    const struct dfi_thread *self = dfi_self();

    return self->process->threads == 1 && !self->shares_memory;
}

static uint64_t bit_of(const struct df_ofd *ofd)
{
    return UINT64_C(1) << ofd->number % 64;
}

void dfi_linger_opened(struct dfi_files *files, int fd, struct df_ofd *ofd, int flags)
{
    __atomic_store_n(&ofd->door[1], as_opened(fd, flags), __ATOMIC_RELAXED);
    files->linger.used = is_alone() ? fd + 1 : 0;
}

void dfi_linger_freed(struct dfi_files *files, unsigned fd)
{
    if (fd < (unsigned)files->linger.used)
        files->linger.used = is_alone() ? (int)fd : 0;
}

static bool may_linger(const struct dfi_files *files, int fd, const struct df_ofd *ofd,
                       uint64_t handle)
{
    return __atomic_load_n(&ofd->door[1], __ATOMIC_RELAXED) >> 1 == (uint64_t)fd + 1 &&
           files->uses[df_handle_index(handle)] == 1 && files->linger.used >= fd &&
           !(files->linger.locked & bit_of(ofd)) && is_alone();
}

bool dfi_linger_closed(struct dfi_files *files, int fd, uint64_t handle)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);

    if (!ofd || !may_linger(files, fd, ofd, handle))
        return false;
    dfi_linger_end(files); /* it has a higher number */
    files->linger.fd = fd;
    files->linger.number = ofd->number;
    files->linger.flags = (int)atomic_load_explicit(&ofd->flags, memory_order_relaxed) & O_ACCMODE;
    if (ofd->door[1] & 1)
        files->linger.flags |= O_CLOEXEC;
    dfi_process()->lingers = 1;
    return true;
}

long dfi_linger_take(struct dfi_files *files, const struct df_ofd *ofd, int flags)
{
    if (!dfi_process()->lingers)
        return -ENOENT;
    if (!ofd || files->linger.number != ofd->number || files->linger.flags != flags) {
        dfi_linger_end(files);
        return -ENOENT;
    }
    dfi_process()->lingers = 0;
    return files->linger.fd;
}

void dfi_linger_end(struct dfi_files *files)
{
    if (!dfi_process()->lingers)
        return;
    dfi_process()->lingers = 0;
    dfi_kernel(__NR_close, files->linger.fd);
}

void dfi_linger_never_at(const struct dfi_files *files, uint64_t handle)
{
    struct df_ofd *ofd = handle ? dfi_ofd(files, handle) : NULL;

    if (ofd)
        dfi_linger_never(ofd);
}

void dfi_linger_shared(const struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top; fd++)
        dfi_linger_never_at(files, files->map[fd]);
}

void dfi_linger_inherited(struct dfi_files *files)
{
    int top = atomic_load(&files->top);
    const struct df_ofd *ofd;

    dfi_linger_shared(files);
    for (int fd = 0; fd < top; fd++)
        if (files->map[fd] && (ofd = dfi_ofd(files, files->map[fd])))
            dfi_linger_locked(files, ofd);
}

void dfi_linger_locked(struct dfi_files *files, const struct df_ofd *ofd)
{
    files->linger.locked |= bit_of(ofd);
}

/* ---- before a call --------------------------------------------------------------------------- */

/* The kernel's calls that neither know descriptors nor last, and the end, which closes all. */
static bool is_blind(const struct dfi_frame *frame)
{
    switch (frame->nr) {
    case __NR_mmap:
        return frame->args[3] & MAP_ANONYMOUS;
    case __NR_munmap:
    case __NR_mremap:
    case __NR_mprotect:
    case __NR_madvise:
    case __NR_brk:
    case __NR_rt_sigaction:
    case __NR_rt_sigprocmask:
    case __NR_clock_gettime:
    case __NR_gettimeofday:
    case __NR_time:
    case __NR_getpid:
    case __NR_getuid:
    case __NR_geteuid:
    case __NR_getgid:
    case __NR_getegid:
    case __NR_umask:
    case __NR_exit_group:
        return true;
    default:
        return false;
    }
}

/* Calls that mounts answer for their files, without a look at other descriptors. Where a path is
 * the kernel's after all, way.c asks it. */
static bool is_answered(long nr)
{
    switch (nr) {
    case __NR_open:
    case __NR_openat:
    case __NR_creat:
    case __NR_close:
    case __NR_read:
    case __NR_pread64:
    case __NR_readv:
    case __NR_preadv:
    case __NR_write:
    case __NR_pwrite64:
    case __NR_writev:
    case __NR_pwritev:
    case __NR_lseek:
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_ftruncate:
    case __NR_fallocate:
    case __NR_fadvise64:
    case __NR_getdents64:
    case __NR_fstat:
    case __NR_stat:
    case __NR_lstat:
    case __NR_newfstatat:
    case __NR_statx:
    case __NR_access:
    case __NR_faccessat:
    case __NR_faccessat2:
    case __NR_readlink:
    case __NR_readlinkat:
    case __NR_chmod:
    case __NR_fchmod:
    case __NR_fchmodat:
    case __NR_chown:
    case __NR_lchown:
    case __NR_fchown:
    case __NR_fchownat:
    case __NR_utimensat:
    case __NR_truncate:
    case __NR_mkdir:
    case __NR_mkdirat:
    case __NR_rmdir:
    case __NR_unlink:
    case __NR_unlinkat:
    case __NR_rename:
    case __NR_renameat:
    case __NR_renameat2:
    case __NR_link:
    case __NR_linkat:
    case __NR_symlink:
    case __NR_symlinkat:
    case __NR_getxattr:
    case __NR_lgetxattr:
    case __NR_fgetxattr:
    case __NR_listxattr:
    case __NR_llistxattr:
    case __NR_flistxattr:
        return true;
    default:
        return false;
    }
}

long dfi_files_lingering(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    long ret;

    if (!is_blind(frame) && !is_answered(frame->nr))
        dfi_linger_end(files);
    ret = dfi_calls[frame->nr].handler(frame);
    if (ret == DFI_PASS && !is_blind(frame))
        dfi_linger_end(files);
    return ret;
}
