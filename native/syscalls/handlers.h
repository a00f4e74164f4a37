/*
 * handlers.h - the two shapes that most handlers of system calls have: by a path, and by a
 * descriptor. What is done for a mount has the arguments at hand as `a`.
 */
#ifndef DF_SYSCALLS_HANDLERS_H
#define DF_SYSCALLS_HANDLERS_H

#include "core/fd.h"
#include "ways/way.h"

/* dfi_do_<name>, and any `function` of that shape: what is done has the path as `leg`, of `way`. */
#define DFI_BY_PATH(name, ...) DFI_HANDLE_PATH(long dfi_do_##name, __VA_ARGS__)

#define DFI_HANDLE_PATH(function, ...)                                                             \
    function(struct dfi_frame *frame)                                                              \
    {                                                                                              \
        struct dfi_way way;                                                                        \
        const struct dfi_leg *leg = &way.leg[0];                                                   \
        const unsigned long *a = frame->args;                                                      \
        long ret = dfi_way_begin(&way, frame);                                                     \
                                                                                                   \
        (void)a, (void)leg;                                                                        \
        while (dfi_way_next(&way, &ret))                                                           \
            ret = __VA_ARGS__;                                                                     \
        return dfi_way_end(&way, ret);                                                             \
    }

/* dfi_do_<name>: what is done has the number that native/core knows the descriptor by as `fd`. */
#define DFI_BY_FD(name, ...) DFI_BY_FD_IF(name, dfi_fd_is_ours, dfi_other_fd, __VA_ARGS__)

/* The same of calls on what the file is, not on its data: of a FIFO they are ours, too. */
#define DFI_ATTR_BY_FD(name, other, ...) DFI_BY_FD_IF(name, dfi_fd_is_of_mount, other, __VA_ARGS__)

/* other: what becomes of a descriptor that is not. */
#define DFI_BY_FD_IF(name, is, other, ...)                                                         \
    long dfi_do_##name(struct dfi_frame *frame)                                                    \
    {                                                                                              \
        struct dfi_record record;                                                                  \
        const unsigned long *a = frame->args;                                                      \
        int fd = DF_FD_BASE + (int)a[0];                                                           \
        long ret;                                                                                  \
                                                                                                   \
        (void)fd;                                                                                  \
        if (!is(a[0]))                                                                             \
            return other(a[0]);                                                                    \
        dfi_record_begin(&record);                                                                 \
        ret = __VA_ARGS__;                                                                         \
        return dfi_record_end_of_fd(&record, ret);                                                 \
    }

#endif
