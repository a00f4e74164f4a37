/*
 * linger.c - placeholders that are closed a little later.
 *
 * df_ofd.placeholder is the descriptor that was opened for the file and its close-on-exec flag, as
 * long as nothing was done to either; else 0.
 */
#include "shadows/linger.h"

#include <fcntl.h>

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
