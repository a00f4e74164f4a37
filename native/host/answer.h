/*
 * answer.h - what a program's operation has returned, or replied, as what an op may return.
 *
 * What can be no error number becomes ERANGE, as in libfuse (fuse_send_reply_iov_nofree()). A
 * program that returns errno in place of -errno would else have succeeded, with a count; one far
 * below would say DF_LEAVE or DF_PENDING, which are for the host to say. Those from 512 on are the
 * kernel's own (ERESTARTSYS): no caller is told them. libfuse hands them on up to 1000; the kernel
 * does not take them, and the call never ends.
 */
#ifndef DF_HOST_ANSWER_H
#define DF_HOST_ANSWER_H

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/types.h>

#include "core/export.h"

#define DF_ANSWER_ERRORS 512 /* error numbers are below: fuse_dev_do_write()'s limit */

/* Of an operation that returns 0 or -errno. */
static inline int df_answer_error(int result)
{
    return DF_LIKELY(0u - (unsigned)result < DF_ANSWER_ERRORS) ? result : -ERANGE;
}

/* Of one that returns a count or -errno. */
static inline ssize_t df_answer_count(ssize_t result)
{
    return DF_LIKELY(result > -DF_ANSWER_ERRORS) ? result : -ERANGE;
}

/* What readlink has stored: the length, or -EIO for more than FUSE's answer has room for. */
static inline ssize_t df_answer_target(const char target[PATH_MAX])
{
    size_t len = strnlen(target, PATH_MAX);

    return len < PATH_MAX ? (ssize_t)len : -EIO;
}

#endif
