/*
 * open_traits.h - what a plugin's open says of the file, for both lanes.
 */
#ifndef DF_HOST_OPEN_TRAITS_H
#define DF_HOST_OPEN_TRAITS_H

#include "core/file.h"
#include "host/libfuse.h"

enum { DF_OPEN_TRAITS_OF_FILES = DF_FILE_NONSEEKABLE | DF_FILE_NOFLUSH }; /* regular ones alone */

/* FUSE_CAP_DIRECT_IO_ALLOW_MMAP of libfuse 3.16. */
#define DF_CAP_DIRECT_IO_ALLOW_MMAP (1u << 28)

/* Bits of df_file.traits; `want`: what the plugin has chosen of FUSE_CAP_*. */
static inline uint8_t df_open_traits(const struct fuse_file_info *fi, unsigned want)
{
    unsigned traits = want & DF_CAP_DIRECT_IO_ALLOW_MMAP ? DF_FILE_SHARES : 0;

    if (fi->direct_io)
        traits |= DF_FILE_DIRECT;
    if (fi->keep_cache)
        traits |= DF_FILE_KEEP;
    if (fi->cache_readdir)
        traits |= DF_FILE_LISTS;
    if (fi->nonseekable)
        traits |= DF_FILE_NONSEEKABLE;
    if (fi->noflush)
        traits |= DF_FILE_NOFLUSH;
    return (uint8_t)traits;
}

#endif
