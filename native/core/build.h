/*
 * build.h - which build of directfuse this is: a mount server, its clients and the programs of a
 * run share memory and messages that have no version of their own, so they compare this, and who
 * finds another one than its own looks no further.
 *
 * It is the release and a digest of the sources of the rooms that take part (cmake/build.cmake):
 * the same for the same sources, wherever and whenever they are compiled.
 */
#ifndef DF_CORE_BUILD_H
#define DF_CORE_BUILD_H

#include "core/export.h"

#define DF_BUILD_SIZE 32 /* bytes; zeroes behind the text */

/* "0.1.0-1f2e3d4c5b6a7988", say. In libdirectfuse.so for the Python package, too. */
DF_PRIVATE_EXPORT extern const char df_build[DF_BUILD_SIZE];

#endif
