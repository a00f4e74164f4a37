/*
 * proc_link.h - the name by which the kernel is asked for what a descriptor is.
 */
#ifndef DF_CLIENT_PROC_LINK_H
#define DF_CLIENT_PROC_LINK_H

#include <string.h>

#include "client/number.h"

#define DFI_PROC_LINK_MAX 32 /* bytes */

/* The name /proc/self/fd/<fd>. */
static inline void dfi_proc_link(int fd, char out[DFI_PROC_LINK_MAX])
{
    static const char directory[] = "/proc/self/fd/";

    *dfi_number_put(mempcpy(out, directory, sizeof(directory) - 1), (unsigned)fd) = '\0';
}

#endif
