/*
 * fault.c - copying between the core and the program's memory, which may not be there.
 *
 * The instructions of dfi_copy_some() (entry.S) may fault. dfi_signal_pick() knows them and says
 * where to go on.
 */
#include "intercept/intercept.h"
#include "intercept/mem.h"

/* Beyond what user addresses can be, a copy would fault with another signal (SI_KERNEL). */
static bool is_user(const void *start, size_t size)
{
    uintptr_t at = (uintptr_t)start;
    return at < DFI_USER_END && size <= DFI_USER_END - at;
}

long dfi_copy_from(void *to, const void *program, size_t size)
{
    return is_user(program, size) && dfi_copy_some(to, program, size) == size ? 0 : -EFAULT;
}

long dfi_copy_to(void *program, const void *from, size_t size)
{
    return is_user(program, size) && dfi_copy_some(program, from, size) == size ? 0 : -EFAULT;
}

/* Page by page: the bytes behind the NUL need not be there. */
long dfi_copy_path(char *to, const char *program, size_t size)
{
    size_t done = 0;
    while (done < size) {
        size_t part = DFI_PAGE - ((uintptr_t)(program + done) & (DFI_PAGE - 1));
        if (part > size - done)
            part = size - done;
        if (part > 128)
            part = 128;
        if (dfi_copy_from(to + done, program + done, part) < 0)
            return -EFAULT;
        for (size_t i = done; i < done + part; i++) {
            if (to[i] == '\0')
                return (long)i;
        }
        done += part;
    }
    return -ENAMETOOLONG;
}
