/*
 * use.c - begins and ends a call by descriptor.
 */
#include "core/use.h"

int df_use_enter(struct df_use *use, int fd, bool any)
{
    int error;
    struct df_thread *thread = df_gate_enter(&error);
    struct df_file *file;

    if (DF_UNLIKELY(!thread))
        return error;
    file = df_fd_use(thread, fd);
    if (DF_UNLIKELY(!file)) {
        df_gate_leave(thread);
        return -EBADF;
    }
    use->thread = thread;
    use->file = file;
    use->fs = file->fs;
    df_call_start(&use->call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    if (DF_UNLIKELY(file->far != NULL))
        file->far->look(file);
    if (DF_UNLIKELY(df_use_flags(use) & O_PATH) && !any)
        return (int)df_use_end(use, -EBADF);
    return 0;
}

ssize_t df_use_end(struct df_use *use, ssize_t ret)
{
    ret = df_call_result(&use->call, ret);
    df_gate_leave(use->thread);
    return ret;
}
