/*
 * ofd.h - open file descriptions shared by processes: the position and its lock. Freestanding.
 *
 * As the kernel's f_pos_lock: held for read, write, lseek and getdents64, so that two processes
 * that share a descriptor never read the same bytes. The server releases the locks of a process
 * that dies; the position is then where the last finished call left it.
 */
#ifndef DF_CHANNEL_OFD_H
#define DF_CHANNEL_OFD_H

#include "channel/link.h"

/* Holds the position for this process. 0; -EINTR: a signal came first, and `interruptible` is set;
 * -ENOTCONN: the server is gone, or this process is nobody to it, of whom it would release nothing.
 * Not recursive: a signal handler of the holder that takes it again would sleep for ever, as in the
 * kernel. */
int df_ofd_lock(struct df_link *link, struct df_ofd *ofd, bool interruptible);

/* Nothing, where the lock could not be had. */
void df_ofd_unlock(struct df_link *link, struct df_ofd *ofd);

/* Sets and clears marks of the description that `handle` is, if it still is: it may have been
 * closed, and its place be another's by now, whose marks stay as they are. Those that it had; of
 * another one, `set`. */
uint64_t df_ofd_mark(struct df_ofd *ofd, uint64_t handle, uint64_t set, uint64_t clear);

/* For the server: releases it if `client`, which is dead, holds it. */
void df_ofd_break(struct df_ofd *ofd, uint32_t client);

#endif
