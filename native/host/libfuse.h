/*
 * libfuse.h - libfuse's headers, as the hosts see them.
 */
#ifndef DF_HOST_LIBFUSE_H
#define DF_HOST_LIBFUSE_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312 /* FUSE_MAKE_VERSION(3, 12) */
#endif
#include <fuse.h>
#include <fuse_lowlevel.h>

#endif
