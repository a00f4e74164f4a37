/*
 * pollhandle.h - struct fuse_pollhandle, shared by both lanes: how a plugin tells that readiness
 * of an open file may have changed.
 *
 * As in the kernel a notification belongs to the open file, not to one handle: one
 * fuse_notify_poll() on any handle wakes everyone who waits on that file, and destroying a handle
 * wakes nobody. So handles point at the file's df_pollnode, which keeps the list of wakes.
 *
 * A host's poll op:
 *     unsigned seen = df_pollnode_seen(node);
 *     ask the plugin with df_pollnode_handle(node)
 *     nothing ready: df_pollnode_wait(node, wake, seen)   wakes at once if notified since `seen`
 *     something ready: `wake` was not touched
 */
#ifndef DF_HOST_POLLHANDLE_H
#define DF_HOST_POLLHANDLE_H

#include <stdatomic.h>

#include "core/export.h"

struct df_pollnode;
struct df_wake;
struct fuse_pollhandle;

/* The node of an open file, kept in *slot (NULL before); made when there is none. Any thread. NULL
 * when memory is short. The slot owns a reference until df_pollnode_release(). */
struct df_pollnode *df_pollnode_of(_Atomic(void *) *slot);

/* The file is released: wakes who still waits, drops the file's reference. NULL is allowed. */
void df_pollnode_release(struct df_pollnode *node);

/* A handle for one ops->poll, which has to destroy it. NULL when memory is short: the plugin then
 * will not notify. */
struct fuse_pollhandle *df_pollnode_handle(struct df_pollnode *node);

/* Count of notifications so far. */
unsigned df_pollnode_seen(struct df_pollnode *node);

/* Consumes `wake`: at the next notification, or now when there was one since `seen` or memory is
 * short. */
void df_pollnode_wait(struct df_pollnode *node, struct df_wake *wake, unsigned seen);

/* fuse_notify_poll(), fuse_lowlevel_notify_poll(): wakes all who wait on the file. Returns 0. */
DF_PRIVATE_EXPORT int df_pollhandle_notify(struct fuse_pollhandle *handle);

/* fuse_pollhandle_destroy(). NULL is allowed. */
DF_PRIVATE_EXPORT void df_pollhandle_destroy(struct fuse_pollhandle *handle);

#endif
