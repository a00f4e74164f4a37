/*
 * proc_link.h - the name by which the kernel is asked for what a descriptor is.
 */
#ifndef DF_INTERCEPT_PROC_LINK_H
#define DF_INTERCEPT_PROC_LINK_H

#include "intercept/text.h"

#define DFI_PROC_LINK_MAX 32 /* bytes */

/* The name /proc/self/fd/<fd>. */
static inline void dfi_proc_link(int fd, char out[DFI_PROC_LINK_MAX])
{
    struct dfi_text text = {.start = out, .size = DFI_PROC_LINK_MAX};

    dfi_text_add(&text, "/proc/self/fd/");
    dfi_text_add_number(&text, (unsigned)fd);
}

#endif
