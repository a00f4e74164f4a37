/*
 * calls.h - the core's side of every call in calls.def: df_call_<name>().
 *
 * Result: what the POSIX call returns on success, a negative errno, or DF_NOT_OURS when the path
 * or descriptor belongs to the kernel. errno is neither read nor set. The door that gets
 * DF_NOT_OURS makes the real call itself, with df_left_path() (route.h) in place of its own path
 * when that is not NULL.
 */
#ifndef DF_CORE_CALLS_H
#define DF_CORE_CALLS_H

#include <poll.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "core/call.h"
#include "core/export.h"
#include "core/ops.h" /* DF_NOT_OURS */

#define DF_RW_MAX ((size_t)0x7ffff000) /* bytes that one call moves at most: read(2), NOTES */

struct df_read; /* include/directfuse.h */
struct statx;   /* sys/stat.h, with _GNU_SOURCE */

#define DF_CALL(type, name, parameters, arguments, level, note)                                    \
    DF_PRIVATE_EXPORT type df_call_##name parameters;
#include "core/calls.def"
#undef DF_CALL

/* open(2) of a link of /proc/<pid>/fd that leads to that file (any, of O_PATH too): a new open file
 * description of the same object, whatever it is called by now. For doors that see /proc. */
int df_call_open_again(int fd, int flags, mode_t mode);

/* pwritev(2) and writev(2) that say where it goes, as pwritev2(2) does by RWF_APPEND. */
ssize_t df_call_pwritev_placed(int fd, const struct iovec *iov, int iovcnt, off_t offset,
                               enum df_placing placing);
ssize_t df_call_writev_placed(int fd, const struct iovec *iov, int iovcnt, enum df_placing placing);

/* fdopendir(3)'s question, which no file system is asked: 0, or -ENOTDIR, -EBADF, DF_NOT_OURS. */
DF_PRIVATE_EXPORT int df_call_is_directory(int fd);

/* A number for each call, in the order of the table: DF_NR_openat ... DF_NR_COUNT. */
enum df_call_number {
#define DF_CALL(type, name, parameters, arguments, level, note) DF_NR_##name,
#include "core/calls.def"
#undef DF_CALL
    DF_NR_COUNT
};

#endif
