/*
 * dispatch.c - from the number of a system call to its handler: the table of syscalls.def; and what
 * a process has that calls have to find done before they begin.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "intercept/intercept.h"
#include "intercept/run.h"
#include "shadows/linger.h"

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

/* ---- where a placeholder lingers: linger.h -------------------------------------------------- */

static bool is_blind(const struct dfi_frame *frame)
{
    return (dfi_calls[frame->nr].traits & DFI_BLIND) != 0 &&
           (frame->nr != __NR_mmap || (frame->args[3] & MAP_ANONYMOUS) != 0);
}

/* Where a path is the kernel's after all, dfi_way_ask() ends what lingers first. */
static bool is_answered(const struct dfi_frame *frame)
{
    return (dfi_calls[frame->nr].traits & DFI_ANSWERED) != 0;
}

static bool lingers(const struct dfi_files *files, int fd)
{
    for (int i = 0; i < dfi_process()->lingers; i++)
        if (files->linger.at[i].fd == fd)
            return true;
    return false;
}

/* A file of the kernel's that has blocks. Those of proc and its like have none: they may tell of
 * our descriptors, or wait for events. Not asked where a filter may end who calls fstat(2). */
static bool is_stored(struct dfi_files *files, int fd)
{
    struct stat st;

    if (lingers(files, fd) || !dfi_run_has(DFI_RUN_OPENAT2))
        return false;
    if (files->linger.stored != fd && dfi_kernel(__NR_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_blocks > 0)
        files->linger.stored = fd;
    return files->linger.stored == fd;
}

/* It looks at one descriptor, and waits for a disk at most. */
static bool is_of_stored_file(const struct dfi_frame *frame)
{
    return is_answered(frame) && dfi_calls[frame->nr].arguments[0] == 'f' &&
           frame->nr != __NR_close && is_stored(dfi_process()->files, (int)frame->args[0]);
}

__attribute__((noinline)) static long handle_lingering(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    long ret;

    if (!is_blind(frame) && !is_answered(frame))
        dfi_linger_end(files);
    ret = dfi_handle(frame);
    if (ret == DFI_PASS && !is_blind(frame) && !is_of_stored_file(frame))
        dfi_linger_end(files);
    return ret;
}

/* ---- all calls ------------------------------------------------------------------------------ */

static long handle(struct dfi_frame *frame, const struct dfi_process *process)
{
    return process->lingers ? handle_lingering(frame) : dfi_handle(frame);
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
