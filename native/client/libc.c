/*
 * libc.c - what else the calls of native/core ask of a libc: memory, device numbers; and the copy
 * that the channel makes from and to the program's memory.
 */
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "channel/sys.h"
#include "intercept/intercept.h"

void *malloc(size_t size)
{
    return dfi_alloc(size);
}

void free(void *memory)
{
    dfi_free(memory);
}

unsigned gnu_dev_major(dev_t device)
{
    return (unsigned)((device >> 8 & 0xfff) | (device >> 32 & ~UINT64_C(0xfff)));
}

unsigned gnu_dev_minor(dev_t device)
{
    return (unsigned)((device & 0xff) | (device >> 12 & ~UINT64_C(0xff)));
}

/* Bytes of the core itself are copied the same way: nothing tells them apart. */
size_t df_channel_user_copy_some(void *to, const void *from, size_t size)
{
    return dfi_copy_some(to, from, size);
}

/* Whatever the fault was: what has been copied is there for all before anybody is told. */
size_t df_channel_user_copy_past(void *to, const void *from, size_t size)
{
    size_t copied = dfi_copy_past(to, from, size);

    __asm__ volatile("sfence" ::: "memory");
    return copied;
}
