/*
 * dispatch.c - from the number of a system call to its handler: the table of syscalls.def.
 */
#include "intercept/intercept.h"

/* Declares a handler by the name that its row gives; the same declaration may come twice. Weak: a
 * door may be built that has not all of them; what has no handler is the kernel's, and counted. */
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    long handler(struct dfi_frame *frame) __attribute__((weak));
#include "intercept/syscalls.def"
#undef DFI_CALL

const struct dfi_call dfi_calls[DFI_CALLS_MAX] = {
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    [number] = {#name, arguments, handler, error, DFI_##level, traits},
#include "intercept/syscalls.def"
#undef DFI_CALL
};

long dfi_pass(struct dfi_frame *frame)
{
    (void)frame;
    return DFI_PASS;
}

long dfi_refuse(struct dfi_frame *frame)
{
    return -dfi_calls[frame->nr].error;
}

/* A process with something that a call may have to find done. */
static long dispatch_watched(struct dfi_frame *frame, const struct dfi_process *process)
{
    if (process->late)
        dfi_files_touch(frame);
    return process->lingers ? dfi_files_lingering(frame) : dfi_calls[frame->nr].handler(frame);
}

long dfi_dispatch(struct dfi_frame *frame)
{
    const struct dfi_process *process = dfi_process();
    unsigned long nr = (unsigned long)frame->nr;

    if (nr >= DFI_CALLS_MAX || dfi_calls[nr].handler == NULL) {
        dfi_count(DFI_EVENT_UNKNOWN);
        return DFI_PASS;
    }
    if (__builtin_expect((process->late | process->lingers) != 0, 0))
        return dispatch_watched(frame, process);
    return dfi_calls[nr].handler(frame);
}
