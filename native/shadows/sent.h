/*
 * sent.h - files whose descriptors were sent by messages: the sender has them until they have
 * arrived.
 */
#ifndef DF_SHADOWS_SENT_H
#define DF_SHADOWS_SENT_H

#include "client/files.h"

/* Of the file one descriptor more is about to be sent. The caller's use of it (dfi_fd_take()) is
 * that of what is sent from now on. */
void dfi_sent_hold(struct dfi_files *files, uint64_t handle);

/* One descriptor of it less is on its way: it has arrived, or was not sent. */
void dfi_sent_arrived(struct dfi_files *files, uint64_t handle);

/* In a child, which has sent nothing. */
void dfi_sent_forget(struct dfi_files *files);

/* The server keeps for a while, beyond the end of this program, what is on its way. */
void dfi_sent_leave(struct dfi_files *files);

#endif
