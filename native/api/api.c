/*
 * api.c - the C door: df_<name>() for each row of calls.def. Ours or the kernel's, then errno.
 */
#include "directfuse.h"

#include <errno.h>

#include "api/kernel.h"
#include "core/gate.h"
#include "core/route.h"

/* A real symlink may lead into a mount: then the kernel finds nothing and the core is asked again.
 */
#define DF_CALL(type, name, parameters, arguments, level, note)                                    \
    static __attribute__((noinline)) type pass_##name parameters                                   \
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
