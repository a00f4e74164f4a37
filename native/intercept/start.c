/*
 * start.c - the core comes to life in a process: what both doors do.
 */
#include "intercept/start.h"

#include "intercept/exec.h"
#include "intercept/rewrite.h"
#include "intercept/run.h"
#include "intercept/signal.h"
#include "intercept/thread.h"

static struct dfi_thread *first_thread(long *error)
{
    struct dfi_process *process = dfi_process_new();
    struct dfi_thread *self = process == NULL ? NULL : dfi_thread_new(process);
    *error = self == NULL ? -ENOMEM : dfi_thread_adopt(self);
    if (*error < 0)
        return NULL;
    self->shares_process = 1;
    dfi_counts_take_again(self);
    return self;
}

struct dfi_thread *dfi_start(int run_fd, const char *text, size_t size, long *error)
{
    *error = dfi_run == NULL ? dfi_run_open(run_fd) : 0;
    if (*error < 0)
        return NULL;
    struct dfi_thread *self = first_thread(error);
    if (self == NULL)
        return NULL;
    dfi_hidden_add(self->process, run_fd);
    if (dfi_loader_fd >= 0)
        dfi_hidden_add(self->process, dfi_loader_fd);
    *error = dfi_signals_begin(self->process);
    if (*error == 0) {
        const char *config = (const char *)dfi_run + dfi_run->config_offset;
        *error = dfi_files_begin(self->process, config, dfi_run->config_size, text, size);
    }
    dfi_rewrite_on = !dfi_run_has(DFI_RUN_NOREWRITE);
    return *error == 0 ? self : NULL;
}

const char *dfi_start_refusal(long error)
{
    switch (error) {
    case -EROFS:
        return "the directory of its run, in /dev/shm, is read-only here";
    case -ENOENT:
        return "the directory of its run, in /dev/shm, is gone, or is not to be seen from here";
    case -ECONNREFUSED:
        return "the mount server of its run has ended";
    case -ENOSPC:
        return "/dev/shm has no room for its run (df /dev/shm; df -i /dev/shm)";
    case -EPROTO:
        return "the run that it belongs to is of another build of directfuse: begin it again";
    case -ENOMEM:
        return "no room for the run's memory (RLIMIT_AS, `ulimit -v`; RLIMIT_DATA, `ulimit -d`)";
    default:
        return "the run that it belongs to cannot be joined";
    }
}
