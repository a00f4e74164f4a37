/*
 * guarded.h - ops around the ops of an unmodified program: on its way in, the calling thread begins
 * to work for the program's guest (so that the hooks know whose directory and umask are meant); and
 * when the program exits or aborts in the middle of an op, the thread lands here with -EIO instead
 * of ending the host. From then on every op is -EIO: the program is gone.
 */
#ifndef DF_LOADER_GUARDED_H
#define DF_LOADER_GUARDED_H

#include "core/ops.h"
#include "loader/guest.h"

/* Owns `below`, which its destroy ends. NULL when memory is short. */
struct df_fs *df_guarded_new(struct df_fs *below, struct df_guest *guest);

/* Whether an op runs on this thread. */
bool df_guarded_inside(void);

/* From now on no op enters the file system whose op this thread is in, if any. */
void df_guarded_bar(void);

/* For the hooks of exit and abort: the op that runs on this thread ends with -EIO. Returns only
 * where none does. */
void df_guarded_leave(void);

#endif
