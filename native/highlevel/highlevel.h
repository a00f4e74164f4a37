/*
 * highlevel.h - the path lane: serves a plugin written against libfuse's high-level API
 * (struct fuse_operations, FUSE 3) as a struct df_fs. The ABI library (native/libfuse) makes one
 * for each struct fuse.
 *
 *   fuse_new        fs = df_highlevel_new(ops, op_size, user_data, &session, plugin)
 *                   option parser fills *df_highlevel_config(fs)
 *   fuse_mount      session.mountpoint is known
 *   fuse_loop[_mt]  session.serial is known
 *                   df_highlevel_init(fs, fuse, &conn)     ops->init runs here, on this thread
 *                   df_plugin_serve(plugin, &session, fs)  returns when the mount has ended
 *   fuse_destroy    df_highlevel_free(fs)                  ops->destroy runs here, on this thread
 */
#ifndef DF_HIGHLEVEL_HIGHLEVEL_H
#define DF_HIGHLEVEL_HIGHLEVEL_H

#include <stddef.h>

#include "core/export.h"
#include "core/ops.h"
#include "host/libfuse.h"
#include "loader/plugin.h"

struct df_caller;

/* Bytes behind struct fuse_config as our <fuse.h> has it that a plugin built against a later
 * libfuse (up to 3.18: parallel_direct_writes, flags, 48 reserved words) may read and write. */
#define DF_HIGHLEVEL_CONFIG_RESERVE 512

/*
 * Copies op_size bytes of ops (fewer when it knows more operations than we do; what it lacks is
 * missing). Nothing of the plugin runs yet. `session` and `plugin` (may be NULL in tests) are kept
 * by reference; of the session nothing is read before df_highlevel_init(). The configuration
 * starts with libfuse's defaults: entry and attribute timeouts 1 s, negative 0, ac_attr_timeout
 * unset, intr_signal SIGUSR1.
 * Returns NULL when memory is short.
 */
DF_PRIVATE_EXPORT struct df_fs *df_highlevel_new(const struct fuse_operations *ops, size_t op_size,
                                                 void *user_data, const struct df_session *session,
                                                 struct df_plugin *plugin);

/* The configuration that the option parser fills and ops->init may change; fixed after
 * df_highlevel_init(). */
DF_PRIVATE_EXPORT struct fuse_config *df_highlevel_config(struct df_fs *fs);

/* The operation `statx` of libfuse 3.18; NULL: missing. Before df_highlevel_init(). */
typedef int df_highlevel_statx_op(const char *path, int flags, int mask, struct statx *stx,
                                  struct fuse_file_info *fi);
DF_PRIVATE_EXPORT void df_highlevel_set_statx(struct df_fs *fs, df_highlevel_statx_op *statx);

/* -o fmask= and dmask=: permission bits to hide of files and of directories, before config->umask
 * where they are not 0; config->set_mode must be set. Also from ops->init. */
DF_PRIVATE_EXPORT void df_highlevel_set_masks(struct df_fs *fs, unsigned fmask, unsigned dmask);

/* For a plugin whose chmod, chown and utimens take no handle (FUSE 2): they get a path also with
 * nullpath_ok. Before df_highlevel_init(). */
DF_PRIVATE_EXPORT void df_highlevel_need_paths(struct df_fs *fs);

/* For a plugin that wants paths beside handles, and can do without where the file has none any more
 * (FUSE 2's flag_nullpath_ok). Before df_highlevel_init(). */
DF_PRIVATE_EXPORT void df_highlevel_bear_null(struct df_fs *fs);

/*
 * FUSE_INIT: offers the plugin in conn->capable what this lane does, sets conn->want to libfuse's
 * defaults, calls ops->init(conn, config) and obeys conn->want, max_read, max_write afterwards.
 * The caller sets nothing in *conn but max_write, max_read (bytes, 0: no limit), max_readahead,
 * max_background and congestion_threshold as its options said.
 * `fuse` is what fuse_get_context()->fuse shows. Called once, before the fs is attached.
 * Returns 0, or -EPROTO when conn->want has a bit that was not offered.
 */
DF_PRIVATE_EXPORT int df_highlevel_init(struct df_fs *fs, struct fuse *fuse,
                                        struct fuse_conn_info *conn);

/* ops->destroy (only when ops->init's turn has come), then frees. The same function stands in
 * fs->ops->destroy for a user of the core without a plugin; df_plugin_serve() gives fs back. */
DF_PRIVATE_EXPORT void df_highlevel_free(struct df_fs *fs);

/*
 * fuse_get_context(): the operation running on this thread, NULL outside of any. The structure may
 * be written (a module stack swaps private_data) and is valid until the operation returns.
 */
DF_PRIVATE_EXPORT struct fuse_context *df_highlevel_context(void);

/* Who makes the call that runs on this thread (fuse_getgroups); NULL outside of an operation and
 * in init and destroy. */
DF_PRIVATE_EXPORT const struct df_caller *df_highlevel_caller(void);

/* fuse_interrupted(): the process for which the op on this thread is done has got a signal, has
 * died or waits no longer. False outside of an operation, and where the thread is the caller's own,
 * whose handlers run on it. */
DF_PRIVATE_EXPORT bool df_highlevel_interrupted(void);

/* fuse_invalidate_path(): forgets what is cached of `path`. 0, or -ENOENT when nothing was.
 * Any thread, also from inside an operation. */
DF_PRIVATE_EXPORT int df_highlevel_invalidate(struct df_fs *fs, const char *path);

/* fuse_notify_poll() and fuse_pollhandle_destroy() are in host/pollhandle.h. */

#endif
