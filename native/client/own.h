/*
 * own.h - memory that is mapped in every program of a run and is none of the program's: the mount
 * server's segment, three quarters of a GiB of which little is ever touched, and what the processes
 * of the run share.
 */
#ifndef DF_CLIENT_OWN_H
#define DF_CLIENT_OWN_H

#include "client/files.h"

static inline unsigned long dfi_own_space(const struct dfi_files *files)
{
    const struct df_segment *segment = files->link.segment; /* NULL in a run without mounts */
    unsigned long size;

    dfi_run_memory(&size);
    return size + (segment ? segment->size : 0);
}

/* Whether the address is in it. */
static inline bool dfi_own_has(const struct dfi_files *files, uintptr_t at)
{
    const struct df_segment *segment = files->link.segment;
    unsigned long size;
    uintptr_t run = dfi_run_memory(&size);

    return at - run < size || (segment && at - (uintptr_t)segment < segment->size);
}

#endif
