/*
 * open_traits.h - what a plugin's open says of the file, for both lanes.
 */
#ifndef DF_HOST_OPEN_TRAITS_H
#define DF_HOST_OPEN_TRAITS_H

#include "core/file.h"
#include "host/libfuse.h"

enum { DF_OPEN_TRAITS_OF_FILES = DF_FILE_NONSEEKABLE | DF_FILE_NOFLUSH }; /* regular ones alone */

/* Bits of df_file.traits. */
static inline uint8_t df_open_traits(const struct fuse_file_info *fi)
{
    unsigned traits = 0;

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
