/*
 * pollhandle.h - struct fuse_pollhandle, shared by both lanes: how a plugin tells that readiness
 * of an open file may have changed.
 *
 * As in the kernel a notification belongs to the open file, not to one handle: one
 * fuse_notify_poll() on any handle wakes everyone who waits on that file, and destroying a handle
 * wakes nobody. So handles point at the file's df_pollnode, which keeps the list of wakes.
 */
#ifndef DF_HOST_POLLHANDLE_H
#define DF_HOST_POLLHANDLE_H

struct df_pollnode;
struct df_wake;
struct fuse_pollhandle;

/* A node with one reference, held by the open file; NULL when memory is short. */
struct df_pollnode *df_pollnode_new(void);

/* The file is released: wakes who still waits, drops the file's reference. NULL is allowed. */
void df_pollnode_release(struct df_pollnode *node);

/* Adds `wake` (consumed in every case) and makes the handle that ops->poll receives and must
 * destroy. NULL when memory is short; then `wake` was woken at once. */
struct fuse_pollhandle *df_pollnode_wait(struct df_pollnode *node, struct df_wake *wake);

/* fuse_notify_poll(), fuse_lowlevel_notify_poll(): wakes all who wait on the file. Returns 0. */
int df_pollhandle_notify(struct fuse_pollhandle *handle);

/* fuse_pollhandle_destroy(). NULL is allowed. */
void df_pollhandle_destroy(struct fuse_pollhandle *handle);

#endif
