/*
 * linger.c - placeholders that are closed a little later.
 *
 * df_ofd.placeholder is the descriptor that was opened for the file and its close-on-exec flag, as
 * long as nothing was done to either; else 0.
 */
#include "syscalls/linger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "intercept/run.h"

static uint64_t as_opened(int fd, int flags)
{
    return ((uint64_t)fd + 1) << 1 | ((flags & O_CLOEXEC) != 0);
}

static uint64_t bit_of(const struct df_ofd *ofd)
{
    return UINT64_C(1) << ofd->number % 64;
}

void dfi_linger_opened(struct dfi_files *files, int fd, struct df_ofd *ofd, int flags)
{
    __atomic_store_n(&ofd->placeholder, as_opened(fd, flags), __ATOMIC_RELAXED);
    files->linger.used = dfi_is_alone() ? fd + 1 : 0;
}

/* The one that the next open(2) is to take. */
static const struct dfi_lingerer *last_of(const struct dfi_files *files)
{
    return &files->linger.at[dfi_process()->lingers - 1];
}

void dfi_linger_freed(struct dfi_files *files, unsigned fd)
{
    if (dfi_process()->lingers && fd < (unsigned)last_of(files)->fd)
        dfi_linger_end(files); /* the next open is to get that number */
    if (fd < (unsigned)files->linger.used)
        files->linger.used = dfi_is_alone() ? (int)fd : 0;
}

static bool may_linger(const struct dfi_files *files, int fd, const struct df_ofd *ofd,
                       uint64_t handle)
{
    return __atomic_load_n(&ofd->placeholder, __ATOMIC_RELAXED) >> 1 == (uint64_t)fd + 1 &&
           dfi_uses(files)[df_handle_index(handle)] == 1 && files->linger.used >= fd &&
           !(files->linger.locked & bit_of(ofd)) && dfi_is_alone();
}

bool dfi_linger_closed(struct dfi_files *files, int fd, uint64_t handle)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);
    struct dfi_lingerer *one;

    if (!ofd || !may_linger(files, fd, ofd, handle))
        return false;
    if (dfi_process()->lingers == DFI_LINGER_MAX)
        dfi_linger_end(files);
    if (dfi_process()->lingers == 0)
        files->linger.stored = -1;
    one = &files->linger.at[dfi_process()->lingers++]; /* the others have higher numbers */
    one->fd = fd;
    one->number = ofd->number;
    one->flags = (int)atomic_load_explicit(&ofd->flags, memory_order_relaxed) & O_ACCMODE;
    if (ofd->placeholder & 1)
        one->flags |= O_CLOEXEC;
    return true;
}

long dfi_linger_take(struct dfi_files *files, const struct df_ofd *ofd, int flags)
{
    if (!dfi_process()->lingers)
        return -ENOENT;
    if (!ofd || last_of(files)->number != ofd->number || last_of(files)->flags != flags) {
        dfi_linger_end(files);
        return -ENOENT;
    }
    return files->linger.at[--dfi_process()->lingers].fd;
}

void dfi_linger_end(struct dfi_files *files)
{
    while (dfi_process()->lingers > 0)
        dfi_kernel(__NR_close, files->linger.at[--dfi_process()->lingers].fd);
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
        dfi_linger_never_at(files, dfi_file_of(files, fd));
}

void dfi_linger_inherited(struct dfi_files *files)
{
    int top = atomic_load(&files->top);
    const struct df_ofd *ofd;

    dfi_linger_shared(files);
    for (int fd = 0; fd < top; fd++)
        if ((ofd = dfi_ofd(files, dfi_file_of(files, fd))))
            dfi_linger_locked(files, ofd);
}

void dfi_linger_locked(struct dfi_files *files, const struct df_ofd *ofd)
{
    files->linger.locked |= bit_of(ofd);
}

/* ---- before a call --------------------------------------------------------------------------- */

static bool is_blind(const struct dfi_frame *frame)
{
    return (dfi_calls[frame->nr].traits & DFI_BLIND) != 0 &&
           (frame->nr != __NR_mmap || (frame->args[3] & MAP_ANONYMOUS) != 0);
}

/* Where a path is the kernel's after all, dfi_way_ask() ends what lingers first. */
static bool is_answered(const struct dfi_frame *frame)
{
    return (dfi_calls[frame->nr].traits & DFI_ANSWERED) != 0;
}

static bool lingers(const struct dfi_files *files, int fd)
{
    for (int i = 0; i < dfi_process()->lingers; i++)
        if (files->linger.at[i].fd == fd)
            return true;
    return false;
}

/* A file of the kernel's that has blocks. Those of proc and its like have none: they may tell of
 * our descriptors, or wait for events. Not asked where a filter may end who calls fstat(2). */
static bool is_stored(struct dfi_files *files, int fd)
{
    struct stat st;

    if (lingers(files, fd) || !dfi_run_has(DFI_RUN_OPENAT2))
        return false;
    if (files->linger.stored != fd && dfi_kernel(__NR_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_blocks > 0)
        files->linger.stored = fd;
    return files->linger.stored == fd;
}

/* It looks at one descriptor, and waits for a disk at most. */
static bool is_of_stored_file(const struct dfi_frame *frame)
{
    return is_answered(frame) && dfi_calls[frame->nr].arguments[0] == 'f' &&
           frame->nr != __NR_close && is_stored(dfi_process()->files, (int)frame->args[0]);
}

long dfi_files_lingering(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    long ret;

    if (!is_blind(frame) && !is_answered(frame))
        dfi_linger_end(files);
    ret = dfi_handle(frame);
    if (ret == DFI_PASS && !is_blind(frame) && !is_of_stored_file(frame))
        dfi_linger_end(files);
    return ret;
}
