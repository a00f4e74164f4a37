/*
 * replace.c - another text in the place of one that the kernel has opened.
 */
#include "shown/replace.h"

#include <fcntl.h>

#include "intercept/brief.h"
#include "intercept/proc_link.h"

long dfi_proc_replace(int fd, long memory, long error)
{
    char link[DFI_PROC_LINK_MAX];
    long flags = dfi_kernel(__NR_fcntl, fd, F_GETFD) > 0 ? O_CLOEXEC : 0, other = error;

    if (error >= 0) {
        dfi_kernel(__NR_fchmod, memory, 0444); /* whatever the umask has left of it */
        dfi_proc_link((int)memory, link);
        other = dfi_brief(__NR_open, link, O_RDONLY | flags, 0);
    }
    dfi_brief_close(memory);
    if (other >= 0) {
        error = dfi_kernel(__NR_dup3, other, fd, flags);
        dfi_brief_close(other);
        other = error;
    }
    if (other < 0)
        dfi_kernel(__NR_close, fd);
    return other;
}
