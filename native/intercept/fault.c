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

typedef uint64_t word __attribute__((may_alias, aligned(1)));

/* Where the NUL is, or `size`; by words, for each call with a path comes by here. */
static size_t find_end(const char *text, size_t size)
{
    const word ones = UINT64_C(0x0101010101010101);
    size_t at = 0;
    for (; size - at >= sizeof(word); at += sizeof(word)) {
        word bytes = *(const word *)(text + at);
        word zeros = (bytes - ones) & ~bytes & ones << 7; /* its lowest bit is of the first NUL */
        if (zeros != 0)
            return at + (size_t)(__builtin_ctzll(zeros) / 8);
    }
    while (at < size && text[at] != '\0')
        at++;
    return at;
}

#define PATH_SHORT 32 /* most are; more would be copied in vain */
#define PATH_PART  128

/* Page by page: the bytes behind the NUL need not be there. */
long dfi_copy_path(char *to, const char *program, size_t size)
{
    size_t done = 0;
    while (done < size) {
        size_t part = DFI_PAGE - ((uintptr_t)(program + done) & (DFI_PAGE - 1));
        size_t most = done == 0 ? PATH_SHORT : PATH_PART;
        if (part > size - done)
            part = size - done;
        if (part > most)
            part = most;
        if (dfi_copy_from(to + done, program + done, part) < 0)
            return -EFAULT;
        size_t end = find_end(to + done, part);
        if (end < part)
            return (long)(done + end);
        done += part;
    }
    return -ENAMETOOLONG;
}
