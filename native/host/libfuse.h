/*
 * libfuse.h - libfuse's headers as the programs of libfuse3.so.3 (3.0 to 3.16) were compiled with
 * them, whichever version is installed: what our code means by libfuse's names.
 *
 * What 3.17 changed is hidden while its headers are read, and declared in libfuse3.h. struct
 * fuse_file_info and struct fuse_conn_info have grown behind what both know, so theirs stay.
 */
#ifndef DF_HOST_LIBFUSE_H
#define DF_HOST_LIBFUSE_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312 /* FUSE_MAKE_VERSION(3, 12) */
#endif

#include <libfuse_config.h> /* has the version from 3.15 on */
#if defined(FUSE_MINOR_VERSION) && FUSE_MINOR_VERSION >= 17
#include "host/libfuse3.h"
#else
#include <cuse_lowlevel.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#endif

#include <stddef.h>

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 14)
#error "use headers of libfuse 3.14 or later"
#endif

/* Bytes of struct fuse_file_info that each program has; from 3.17 on it has 64. */
enum {
    DF_FILE_INFO_3 = offsetof(struct fuse_file_info, poll_events) + sizeof(uint64_t),
    DF_FILE_INFO_4 = 64,
};
_Static_assert(DF_FILE_INFO_3 <= sizeof(struct fuse_file_info) &&
                   sizeof(struct fuse_file_info) <= DF_FILE_INFO_4,
               "one of the two");

#endif
