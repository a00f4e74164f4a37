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

/* What the switch of all others would become slower by; and what is in no table. */
static long handle_seldom(struct dfi_frame *frame)
{
    if (frame->nr == __NR_remap_file_pages)
        return dfi_do_remap_file_pages(frame);
    dfi_count(DFI_EVENT_UNKNOWN);
    return DFI_PASS;
}

/* No table of functions: their addresses would be written into every program at its start. */
#define DFI_OFTEN
long dfi_handle(struct dfi_frame *frame)
{
    switch (frame->nr) {
#define DFI_CALL(number, name, arguments, traits, level, handler, error, note)                     \
    case number:                                                                                   \
        return handler(frame);
#include "syscalls/syscalls.def"
#undef DFI_CALL
    default:
        return handle_seldom(frame);
    }
}
#undef DFI_OFTEN

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
