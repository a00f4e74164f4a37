/*
 * result.h - from what the core answers to what C programs get: errno is set at this door only.
 */
#ifndef DF_API_RESULT_H
#define DF_API_RESULT_H

#include <errno.h>

/* A count or 0 as it is; a negative errno becomes -1 and errno. */
static inline int df_result(int ret)
{
    if (ret >= 0)
        return ret;
    errno = -ret;
    return -1;
}

#endif
