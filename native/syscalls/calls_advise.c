/*
 * calls_advise.c - what is said of memory that may be a private copy of a file: madvise(2),
 * process_madvise(2).
 */
#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "shadows/map_copies.h"
#include "syscalls/map_request.h"

long dfi_do_madvise(struct dfi_frame *frame)
{
    uintptr_t start = frame->args[0], end = start + dfi_map_whole_pages(frame->args[1]);

    if (start % DFI_PAGE != 0 || end <= start)
        return DFI_PASS;
    return dfi_copies_advise(dfi_process()->files, start, end, (int)frame->args[2]);
}

/* Whether memory that is told of is a copy. What cannot be read is the kernel's to say. */
static bool tells_of_copies(struct dfi_files *files, const struct iovec *iov, size_t count)
{
    struct iovec one;

    for (size_t i = 0; i < count && i < IOV_MAX; i++) {
        uintptr_t start, end;

        if (dfi_copy_from(&one, &iov[i], sizeof(one)) < 0)
            return false;
        start = (uintptr_t)one.iov_base;
        if (!__builtin_add_overflow(start, one.iov_len, &end) && end > start &&
            dfi_copies_in(files, start, end))
            return true;
    }
    return false;
}

/* What drops memory a process may be told of its own only, and that since Linux 6.13: before, and
 * of another's, EINVAL, as here where a copy would be dropped. */
long dfi_do_process_madvise(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    struct dfi_files *files = dfi_process()->files;

    if (dfi_other_fd(a[0]) != DFI_PASS)
        return -EBADF;
    return dfi_copies_drops((int)a[3]) && tells_of_copies(files, (const struct iovec *)a[1], a[2])
               ? -EINVAL
               : DFI_PASS;
}
