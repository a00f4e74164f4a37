/*
 * xattr.h - what the kernel makes of a file system's answer to a request for extended attributes.
 * For both lanes.
 */
#ifndef DF_HOST_XATTR_H
#define DF_HOST_XATTR_H

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#ifndef XATTR_SIZE_MAX
#define XATTR_SIZE_MAX 65536 /* linux/limits.h; XATTR_LIST_MAX is the same */
#endif

/* A count or -errno. Who asked for a size (`room` is 0) is told no more than a value can have; more
 * bytes than there is room are no answer. */
static inline ssize_t df_xattr_answer(ssize_t result, size_t room)
{
    if (result > 0 && room && (size_t)result > room)
        return -EIO;
    return result > XATTR_SIZE_MAX ? XATTR_SIZE_MAX : result;
}

/* The same of a list in `names`, whose names end with NUL and are not empty, or the caller would
 * read past it. */
static inline ssize_t df_xattr_list_answer(ssize_t result, const char *names, size_t room)
{
    result = df_xattr_answer(result, room);
    if (!room)
        return result;
    for (ssize_t at = 0; at < result;) {
        size_t len = strnlen(names + at, (size_t)(result - at));

        if (len == 0 || (ssize_t)len == result - at)
            return -EIO;
        at += (ssize_t)len + 1;
    }
    return result;
}

#endif
