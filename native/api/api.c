/*
 * api.c - the C door: df_<name>() for each row of calls.def. Ours or the kernel's, then errno.
 */
#include "directfuse.h"

#include <errno.h>

#include "api/kernel.h"
#include "core/gate.h"
#include "core/route.h"

/* The hottest calls are one function with what they call in the core, where link-time optimisation
 * sees both. (Not all: what is cold would grow into it as well.) */
#define FLAT __attribute__((flatten))
FLAT int df_openat(int dirfd, const char *path, int flags, mode_t mode);
FLAT int df_close(int fd);
FLAT int df_fstatat(int dirfd, const char *path, struct stat *st, int flags);
FLAT int df_fstat(int fd, struct stat *st);
FLAT ssize_t df_pread(int fd, void *buf, size_t size, off_t offset);
FLAT ssize_t df_pwrite(int fd, const void *buf, size_t size, off_t offset);

/* A real symlink may lead into a mount: then the kernel finds nothing and the core is asked again.
 */
#define DF_CALL(type, name, parameters, arguments, level, note)                                    \
    static DF_COLD type pass_##name parameters                                                     \
    {                                                                                              \
        int saved = errno;                                                                         \
        type ret = df_kernel_##name arguments;                                                     \
                                                                                                   \
        df_gate_count_passed(DF_NR_##name);                                                        \
        if (ret < 0 && df_retry_begin((int)-ret)) {                                                \
            type again = df_call_##name arguments;                                                 \
                                                                                                   \
            df_retry_end();                                                                        \
            ret = again == DF_NOT_OURS ? ret : again;                                              \
        }                                                                                          \
        errno = saved;                                                                             \
        return ret;                                                                                \
    }                                                                                              \
                                                                                                   \
    type df_##name parameters                                                                      \
    {                                                                                              \
        type ret = df_call_##name arguments;                                                       \
                                                                                                   \
        if (DF_UNLIKELY(ret == DF_NOT_OURS))                                                       \
            ret = pass_##name arguments;                                                           \
        if (DF_LIKELY(ret >= 0))                                                                   \
            return ret;                                                                            \
        errno = (int)-ret;                                                                         \
        return -1;                                                                                 \
    }
#include "core/calls.def"
#undef DF_CALL
