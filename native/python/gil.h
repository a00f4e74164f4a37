/*
 * gil.h - when a hot call keeps the GIL.
 *
 * Giving the GIL up and taking it again costs 30 ns when nobody wants it, and up to a switch
 * interval (5 ms) when another thread computes: a reader beside one such thread is 3 to 5 times
 * slower. Keeping it while a plugin sleeps stops every Python thread, and for ever if the plugin
 * waits for one of them (a network file system whose server is a thread of this process). So:
 *
 *   The GIL is kept for calls of less than DF_GIL_LARGE bytes while every mount of the process is
 *   known to be prompt: its plugin never waits for anything but its own short locks. memfs is;
 *   _fast.declare_prompt() says so for a mount. Every other mount makes all calls release it.
 *
 * A thread that keeps the GIL may wait for a lock of the core or of a prompt plugin whose holder
 * has released the GIL (a large copy): that one gets it back only after it has left the core, and
 * nothing below a hot call ever takes the GIL, so neither waits for the other.
 *
 * A mount that may wait must not appear between the test and the call. Mounts made through this
 * package announce themselves while they hold the GIL (expect_mount); one that C code of the same
 * process makes in that very instant may cost one call with the GIL kept.
 */
#ifndef DF_PYTHON_GIL_H
#define DF_PYTHON_GIL_H

#include <errno.h>

#include "core/mount.h"
#include "python/fast.h"

enum { DF_GIL_LARGE = 64 << 10 }; /* bytes; a copy of that size takes some microseconds */

/* Who needs the GIL given up whatever the mounts are: df_mount() calls of Python that run now, and
 * forks, which close the gate and have to get the GIL back. Protected by the GIL. */
extern int df_gil_wanted;

static inline bool df_gil_keep(size_t size)
{
    return size < DF_GIL_LARGE && !df_gil_wanted && !df_mount_any_may_wait();
}

/*
 * result = expression, again after a signal whose handler raised nothing (PEP 475). When it raised,
 * result is -EINTR and the exception is set. `size`: bytes that are copied.
 */
#define DF_GIL_CALL(result, size, expression)                                                      \
    do {                                                                                           \
        if (df_gil_keep(size)) {                                                                   \
            result = (expression);                                                                 \
        } else {                                                                                   \
            PyThreadState *df_gil_state = PyEval_SaveThread();                                     \
            result = (expression);                                                                 \
            PyEval_RestoreThread(df_gil_state);                                                    \
        }                                                                                          \
    } while (DF_UNLIKELY(result == -EINTR) && PyErr_CheckSignals() == 0)

#endif
