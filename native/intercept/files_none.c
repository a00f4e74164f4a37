/*
 * files_none.c - the handlers of paths and descriptors where there are none: every path is the
 * kernel's. The tests of the mechanism are built with it.
 */
#include "intercept/intercept.h"

#include <linux/fcntl.h>

#define S_IFMT_REGULAR 0100000

int dfi_files_begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                    size_t text_size)
{
    (void)text;
    (void)text_size;
    (void)process;
    (void)config;
    (void)size;
    return 0;
}

struct dfi_files *dfi_files_copy(const struct dfi_files *files)
{
    (void)files;
    return NULL;
}

void dfi_files_free(struct dfi_files *files)
{
    (void)files;
}

void dfi_files_fork_prepare(void)
{
}

void dfi_files_fork_parent(void)
{
}

void dfi_files_fork_child(struct dfi_process *process)
{
    (void)process;
}

long dfi_files_exec(struct dfi_process *process, char *text, size_t size)
{
    (void)process;
    (void)text;
    (void)size;
    return 0;
}

void dfi_files_end(struct dfi_process *process)
{
    (void)process;
}

int dfi_files_program(int dirfd, const char *path, int flags, bool *virtual)
{
    *virtual = false;
    return (int)dfi_program_open(dirfd, path, flags);
}

/* ---- descriptors that are ours stay, whatever the program closes ---- */

long dfi_do_close(struct dfi_frame *frame)
{
    return dfi_is_hidden(dfi_process(), (int)frame->args[0]) ? -EBADF : DFI_PASS;
}

static long refuse_target(int fd)
{
    return dfi_is_hidden(dfi_process(), fd) ? -EBADF : DFI_PASS;
}

long dfi_do_dup2(struct dfi_frame *frame)
{
    return refuse_target((int)frame->args[1]);
}

long dfi_do_dup3(struct dfi_frame *frame)
{
    return refuse_target((int)frame->args[1]);
}

/* The range but for what is hidden, piece by piece. */
long dfi_do_close_range(struct dfi_frame *frame)
{
    const struct dfi_process *process = dfi_process();
    unsigned first = (unsigned)frame->args[0], last = (unsigned)frame->args[1];
    if (first > last)
        return -EINVAL;
    for (;;) {
        unsigned stop = last;
        bool found = false;
        for (int i = 0; i < process->hidden_count; i++) {
            unsigned fd = (unsigned)process->hidden[i];
            if (fd >= first && fd <= stop) {
                stop = fd;
                found = true;
            }
        }
        if (!found)
            return dfi_kernel(__NR_close_range, first, last, frame->args[2]);
        if (stop > first)
            dfi_kernel(__NR_close_range, first, stop - 1, frame->args[2]);
        if (stop == last)
            return 0;
        first = stop + 1;
    }
}
