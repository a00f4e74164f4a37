/*
 * dispatch.c - from the number of a system call to its handler: the table of syscalls.def.
 */
#include "intercept/intercept.h"

/* Declares a handler by the name that its row gives; the same declaration may come twice. */
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    long handler(struct dfi_frame *frame);
#include "syscalls/syscalls.def"
#undef DFI_CALL

const struct dfi_call dfi_calls[DFI_CALLS_MAX] = {
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    [number] = {#name, arguments, error, DFI_##level, traits},
#include "syscalls/syscalls.def"
#undef DFI_CALL
};

__attribute__((noinline)) static long handle_unknown(struct dfi_frame *frame)
{
    (void)frame;
    dfi_count(DFI_EVENT_UNKNOWN);
    return DFI_PASS;
}

/* No table of functions: their addresses would be written into every program at its start. And no
 * switch: gcc cuts that up where a few cases in a row are alike, and each call takes longer. */
long dfi_handle(struct dfi_frame *frame)
{
    static const int32_t places[DFI_CALLS_MAX] = {
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    [number] = &&at_##name - &&at_none,
#include "syscalls/syscalls.def"
#undef DFI_CALL
    };

    if ((unsigned long)frame->nr < DFI_CALLS_MAX)
        goto *(&&at_none + places[frame->nr]);
at_none:
    return handle_unknown(frame);
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    at_##name : return handler(frame);
#include "syscalls/syscalls.def"
#undef DFI_CALL
}

static bool is_known(long nr)
{
    return nr >= 0 && nr < DFI_CALLS_MAX && dfi_calls[nr].name[0] != '\0';
}

long dfi_pass(struct dfi_frame *frame)
{
    (void)frame;
    return DFI_PASS;
}

long dfi_refuse(struct dfi_frame *frame)
{
    return -dfi_calls[frame->nr].error;
}

static long handle(struct dfi_frame *frame, const struct dfi_process *process)
{
    return process->lingers ? dfi_files_lingering(frame) : dfi_handle(frame);
}

/* Its arguments point to memory that may be given up again: not before the call is done. */
static long handle_pinned(struct dfi_frame *frame, const struct dfi_process *process,
                          struct dfi_pins *pins)
{
    const unsigned long *a = frame->args;
    long ret = handle(frame, process);

    if (ret == DFI_PASS)
        ret = dfi_kernel_wait(frame->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    dfi_files_untouch(pins);
    return ret;
}

/* A process with something that a call may have to find done. Apart: other calls need no stack. */
__attribute__((noinline)) static long handle_watched(struct dfi_frame *frame,
                                                     const struct dfi_process *process)
{
    struct dfi_pins pins;

    if (!is_known(frame->nr))
        return dfi_handle(frame);
    if (process->late && dfi_files_touch(frame, &pins))
        return handle_pinned(frame, process, &pins);
    return handle(frame, process);
}

long dfi_dispatch(struct dfi_frame *frame)
{
    const struct dfi_process *process = dfi_process();

    if (__builtin_expect((process->late | process->lingers) != 0, 0))
        return handle_watched(frame, process);
    return dfi_handle(frame);
}
