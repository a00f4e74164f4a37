/*
 * fault.c - copying between the core and the program's memory, which may not be there.
 *
 * The instructions of copy.S may fault. dfi_signal_pick() knows them and says
 * where to go on.
 */
#include "intercept/intercept.h"
#include "intercept/mem.h"

/* Beyond what user addresses can be, a copy would fault with another signal (SI_KERNEL). One of
 * nothing is none, wherever it would go to, as copy_to_user() of the kernel. */
static bool is_user(const void *start, size_t size)
{
    uintptr_t at = (uintptr_t)start;
    return (at < DFI_USER_END && size <= DFI_USER_END - at) || size == 0;
}

long dfi_copy_from(void *to, const void *program, size_t size)
{
    return is_user(program, size) && dfi_copy_some(to, program, size) == size ? 0 : -EFAULT;
}

long dfi_copy_to(void *program, const void *from, size_t size)
{
    return is_user(program, size) && dfi_copy_some(program, from, size) == size ? 0 : -EFAULT;
}

static long check_later(const char *at, const char *end)
{
    for (; at < end; at++) {
        int byte = dfi_byte_at(at);
        if (byte != 0)
            return byte < 0 ? -EFAULT : -E2BIG;
    }
    return 0;
}

long dfi_copy_struct(void *to, size_t size, const void *program, size_t programs_size)
{
    const char *at = program;
    if (programs_size < size)
        return -EINVAL;
    if (programs_size > DFI_PAGE)
        return -E2BIG;
    long result = check_later(at + size, at + programs_size);
    return result < 0 ? result : dfi_copy_from(to, program, size);
}

long dfi_copy_path(char *to, const char *program, size_t size)
{
    long len = (uintptr_t)program < DFI_USER_END ? dfi_copy_text(to, program, size) : -1;

    if (len < 0)
        return -EFAULT;
    return (size_t)len < size ? len : -ENAMETOOLONG;
}
