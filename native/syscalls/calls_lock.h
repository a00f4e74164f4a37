/*
 * calls_lock.h - record locks, for fcntl's handler in calls_fd.c; flock has its own.
 */
#ifndef DF_SYSCALLS_CALLS_LOCK_H
#define DF_SYSCALLS_CALLS_LOCK_H

#include "client/files.h"

/* F_GETLK, F_SETLK, F_SETLKW and their F_OFD_ forms, with the arguments of fcntl(2) in the frame,
 * on a descriptor of the file. 0 or -errno as there; -EFAULT: no struct flock can be read or
 * written, -EIO: the mount server has gone. */
long dfi_fcntl_lock(struct dfi_frame *frame, struct dfi_files *files, struct df_ofd *ofd);

#endif
