/*
 * rw_flags.h - the flags of one read or write: preadv2(2), pwritev2(2) and requests of Linux AIO.
 */
#ifndef DF_SYSCALLS_RW_FLAGS_H
#define DF_SYSCALLS_RW_FLAGS_H

#include <errno.h>
#include <sys/uio.h>

#include "core/call.h"

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif
#define DFI_RWF_WITHOUT_SIGNAL 0x100 /* RWF_NOSIGNAL: of what a file of no mount is, a pipe */
#define DFI_RWF_SYNCS          (RWF_DSYNC | RWF_SYNC) /* what fdatasync does */
#define DFI_RWF_PLACES         (RWF_APPEND | RWF_NOAPPEND)
#define DFI_RWF_KNOWN          (RWF_HIPRI | DFI_RWF_SYNCS | DFI_RWF_PLACES | DFI_RWF_WITHOUT_SIGNAL)

/* kiocb_set_rw_flags(): as they are, they are refused. 0 or -errno. */
static inline long dfi_rw_flags_judge(unsigned flags)
{
    if (flags & ~(unsigned)DFI_RWF_KNOWN)
        return -EOPNOTSUPP;
    return (flags & DFI_RWF_PLACES) == DFI_RWF_PLACES ? -EINVAL : 0;
}

/* Where what is written with them goes. */
static inline enum df_placing dfi_rw_flags_placing(unsigned flags)
{
    return flags & RWF_APPEND     ? DF_PLACED_LAST
           : flags & RWF_NOAPPEND ? DF_PLACED_THERE
                                  : DF_PLACED_BY_FLAGS;
}

#endif
