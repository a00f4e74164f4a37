/*
 * calls_lock.c - fcntl's record locks, and flock. A file system that keeps locks is asked; else
 * they are the kernel's, on the placeholder, with absolute offsets.
 */
#include "syscalls/calls_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/flock.h"
#include "shadows/linger.h"

/* ---- where they are kept --------------------------------------------------------------------- */

/* The file system is known to keep no locks of such files itself. */
static bool is_left(const struct dfi_files *files, const struct df_ofd *ofd, bool flock)
{
    const struct df_segment *segment = files->link.segment;
    unsigned index = df_segment_mount_index(segment, ofd->mount);

    return index == DF_MOUNT_COUNT ||
           atomic_load_explicit(&df_segment_mounts(segment)[index].left, memory_order_relaxed) &
               df_left_bit(ofd->kind, flock);
}

/* DF_NOT_OURS: it does not keep them. */
static long there(struct dfi_files *files, const struct df_ofd *ofd, struct df_lock *range,
                  int operation)
{
    struct df_trip trip = {.link = &files->link, .caller = dfi_caller(files), .mount = ofd->mount};
    uint64_t handle = atomic_load(&ofd->handle);
    int ret =
        range ? df_trip_lock(&trip, handle, range) : df_trip_flock(&trip, handle, operation, 0);

    return (int)dfi_as_told(ret);
}

/* Before the kernel locks the placeholder: no other file will have it (ledger/files_number.c). */
static void will_be_locked(struct df_ofd *ofd)
{
    if (!(__atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DF_OFD_LOCKED))
        __atomic_fetch_or(&ofd->marks, DF_OFD_LOCKED, __ATOMIC_ACQ_REL);
}

/* ---- record locks ---------------------------------------------------------------------------- */

/* What SEEK_CUR and SEEK_END mean the kernel does not know: both become SEEK_SET. */
static long make_absolute(int fd, struct flock *lock)
{
    off_t base = 0;
    struct stat st;
    int ret = 0;

    if (lock->l_whence == SEEK_CUR)
        base = df_call_lseek(DF_FD_BASE + fd, 0, SEEK_CUR);
    else if (lock->l_whence == SEEK_END && (ret = df_call_fstat(DF_FD_BASE + fd, &st)) == 0)
        base = st.st_size;
    else if (lock->l_whence != SEEK_SET)
        return ret < 0 ? ret : -EINVAL;
    if (base < 0)
        return base;
    lock->l_whence = SEEK_SET;
    return __builtin_add_overflow(base, lock->l_start, &lock->l_start) ? -EOVERFLOW : 0;
}

/* The locks of a file system that keeps them itself; DF_NOT_OURS: it is not one. */
static long lock_there(struct dfi_files *files, const struct df_ofd *ofd, int command,
                       struct flock *lock)
{
    bool ofd_lock = command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    int flags = (int)atomic_load(&ofd->flags), mode = flags & O_ACCMODE;
    bool both = mode == O_RDWR;
    struct df_lock range = {
        .type = lock->l_type,
        .test = command == F_GETLK || command == F_OFD_GETLK,
        .wait = command == F_SETLKW || command == F_OFD_SETLKW,
        .pid = ofd_lock ? -1 : files->caller.pid,
    };
    long ret;

    if (flags & O_PATH || is_left(files, ofd, false))
        return DF_NOT_OURS;
    ret = df_flock_take(lock, 0, &range, both || mode == O_RDONLY, both || mode == O_WRONLY);
    if (ret < 0)
        return ret;
    ret = there(files, ofd, &range, 0);
    if (ret == 0 && range.test)
        df_flock_show(lock, &range);
    return ret;
}

/* The kernel's, on the placeholder: for all that use the server. */
static long lock_here(struct dfi_files *files, struct df_ofd *ofd, int fd, int command,
                      struct flock *lock)
{
    dfi_linger_locked(files, ofd);
    will_be_locked(ofd);
    if (command == F_SETLKW || command == F_OFD_SETLKW)
        return dfi_kernel_wait(__NR_fcntl, fd, command, lock);
    return dfi_kernel(__NR_fcntl, fd, command, lock);
}

long dfi_fcntl_lock(struct dfi_frame *frame, struct dfi_files *files, struct df_ofd *ofd)
{
    int fd = (int)frame->args[0], command = (int)frame->args[1];
    void *program = (void *)frame->args[2];
    struct flock lock;
    long ret;

    if (atomic_load(&ofd->flags) & O_PATH)
        return -EBADF;
    if (dfi_copy_from(&lock, program, sizeof(lock)) < 0)
        return -EFAULT;
    if ((ret = make_absolute(fd, &lock)) < 0)
        return ret;
    ret = lock_there(files, ofd, command, &lock);
    if (ret == DF_NOT_OURS)
        ret = lock_here(files, ofd, fd, command, &lock);
    if (ret < 0 || (command != F_GETLK && command != F_OFD_GETLK))
        return ret;
    if (lock.l_type == F_UNLCK) /* nothing but the type, its first member, changes */
        return dfi_copy_to(program, &lock.l_type, sizeof(lock.l_type));
    return dfi_copy_to(program, &lock, sizeof(lock));
}

/* ---- flock ----------------------------------------------------------------------------------- */

/* DF_NOT_OURS: the kernel's, on the placeholder; so is what locks nothing (LOCK_MAND, EINVAL). */
static long flock_there(struct dfi_files *files, const struct df_ofd *ofd, int operation)
{
    int kind = operation & ~LOCK_NB;

    if ((kind != LOCK_SH && kind != LOCK_EX && kind != LOCK_UN) ||
        atomic_load(&ofd->flags) & O_PATH || is_left(files, ofd, true))
        return DF_NOT_OURS;
    return there(files, ofd, NULL, operation);
}

long dfi_do_flock(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, (int)frame->args[0]));
    long ret = ofd ? flock_there(files, ofd, (int)frame->args[1]) : DF_NOT_OURS;

    if (ret != DF_NOT_OURS)
        return ret;
    if (!ofd)
        return dfi_other_fd(frame->args[0]);
    dfi_linger_never(ofd);
    will_be_locked(ofd);
    return DFI_PASS;
}
