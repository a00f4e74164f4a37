/*
 * lowlevel.h - the node lane: serves a plugin written against libfuse's low-level API
 * (struct fuse_lowlevel_ops, FUSE 3) as a struct df_fs. Here we are both the kernel, which walks
 * names and sends requests, and libfuse, which hands replies back. The ABI library
 * (native/libfuse) makes one for each low-level struct fuse_session and forwards fuse_reply_*,
 * fuse_req_* and fuse_lowlevel_notify_* to the functions below.
 *
 *   fuse_session_new        fs = df_lowlevel_new(ops, op_size, userdata, &session, plugin)
 *   fuse_session_mount      session.mountpoint is known
 *   fuse_session_loop[_mt]  session.serial is known
 *                           df_lowlevel_init(fs, &conn)            ops->init runs here, this thread
 *                           df_plugin_serve(plugin, &session, fs)  returns at the mount's end
 *   fuse_session_destroy    df_lowlevel_free(fs)                   ops->destroy runs here
 *
 * Requests. A struct fuse_req lives on the stack of the thread that makes the call. The plugin
 * replies exactly once: inside the operation, which costs no atomic instruction, or later and from
 * any thread, while the caller sleeps. A second reply while the operation runs is refused; one
 * after the request is gone is the plugin's use after free, as it is with libfuse. A request that
 * is never answered hangs its caller, as it does in the kernel.
 *
 * Reply functions return 0, or a negative errno that says why the reply was not delivered: -EINVAL
 * for a kind or size of reply that the request does not take (the caller then gets EIO, as from the
 * kernel), -ENOENT for a second reply. Data are copied before they return, once, to where the
 * caller of the POSIX call wants them.
 *
 * Interrupts. A call is not ended by signals: the plugin is told and may end it, as with the
 * kernel. In a mount server that is any time after a signal of the client, its death, or the end of
 * its patience. Inline it is when a signal's handler has run in a thread that waits for a late
 * reply; a plugin that is at work in its caller's own thread hears nothing.
 */
#ifndef DF_LOWLEVEL_LOWLEVEL_H
#define DF_LOWLEVEL_LOWLEVEL_H

#include <stddef.h>

#include "core/export.h"
#include "core/ops.h"
#include "host/libfuse.h"
#include "loader/plugin.h"

struct statx;

/* ---- life ---- */

/* What follows in the struct fuse_lowlevel_ops of libfuse 3.18 on that of our headers. */
struct df_lowlevel_later {
    void (*tmpfile)(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi);
    void (*statx)(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi);
};

/* That of libfuse 3.18. */
struct df_lowlevel_ops {
    struct fuse_lowlevel_ops ops;
    struct df_lowlevel_later later;
};
_Static_assert(sizeof(struct df_lowlevel_ops) ==
                   sizeof(struct fuse_lowlevel_ops) + sizeof(struct df_lowlevel_later),
               "one lies behind the other");

/*
 * `ops` begins a struct df_lowlevel_ops of which op_size bytes are copied (fewer when it knows more
 * operations than we do; what it lacks is missing). Nothing of the plugin runs yet. `session` and
 * `plugin` (may be NULL in tests) are kept by reference; of the session nothing is read before
 * df_lowlevel_init(). Returns NULL when memory is short.
 */
DF_PRIVATE_EXPORT struct df_fs *df_lowlevel_new(const struct fuse_lowlevel_ops *ops, size_t op_size,
                                                void *userdata, const struct df_session *session,
                                                struct df_plugin *plugin);

/*
 * FUSE_INIT: offers in conn->capable what this lane honours, sets conn->want to libfuse's defaults,
 * calls ops->init(userdata, conn) and obeys conn->want, max_write and max_read afterwards. The
 * caller sets nothing in *conn but max_write, max_read (bytes, 0: no limit of its own),
 * max_readahead, max_background and congestion_threshold, as its options said; 0 asks for the
 * default. Called once, before the fs is attached.
 * Returns 0, or -EPROTO as libfuse does: conn->want has a bit that was not offered, or init changed
 * max_read to something else than the mount option said.
 */
DF_PRIVATE_EXPORT int df_lowlevel_init(struct df_fs *fs, struct fuse_conn_info *conn);

/*
 * FUSE_DESTROY: ops->destroy once (only when df_lowlevel_init() has run), after all RELEASEs.
 * Lookup counts that are left drop to zero without FORGETs, as at an unmount of the kernel. Then
 * frees. The same function stands in fs->ops->destroy for a user of the core without a plugin;
 * df_plugin_serve() gives fs back instead.
 */
DF_PRIVATE_EXPORT void df_lowlevel_free(struct df_fs *fs);

/* ---- fuse_reply_* ---- */

DF_PRIVATE_EXPORT int df_reply_err(fuse_req_t req, int err);
DF_PRIVATE_EXPORT void df_reply_none(fuse_req_t req);
DF_PRIVATE_EXPORT int df_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);
DF_PRIVATE_EXPORT int df_reply_create(fuse_req_t req, const struct fuse_entry_param *entry,
                                      const struct fuse_file_info *fi);
DF_PRIVATE_EXPORT int df_reply_attr(fuse_req_t req, const struct stat *attr, double attr_timeout);
DF_PRIVATE_EXPORT int df_reply_readlink(fuse_req_t req, const char *target);
DF_PRIVATE_EXPORT int df_reply_open(fuse_req_t req, const struct fuse_file_info *fi);
DF_PRIVATE_EXPORT int df_reply_write(fuse_req_t req, size_t size);
DF_PRIVATE_EXPORT int df_reply_buf(fuse_req_t req, const char *buf, size_t size);
DF_PRIVATE_EXPORT int df_reply_data(fuse_req_t req, struct fuse_bufvec *bufv,
                                    enum fuse_buf_copy_flags flags);
DF_PRIVATE_EXPORT int df_reply_iov(fuse_req_t req, const struct iovec *iov, int count);
DF_PRIVATE_EXPORT int df_reply_statfs(fuse_req_t req, const struct statvfs *stbuf);
DF_PRIVATE_EXPORT int df_reply_xattr(fuse_req_t req, size_t size);
DF_PRIVATE_EXPORT int df_reply_lock(fuse_req_t req, const struct flock *lock);
DF_PRIVATE_EXPORT int df_reply_bmap(fuse_req_t req, uint64_t idx);
DF_PRIVATE_EXPORT int df_reply_ioctl(fuse_req_t req, int result, const void *buf, size_t size);
DF_PRIVATE_EXPORT int df_reply_ioctl_iov(fuse_req_t req, int result, const struct iovec *iov,
                                         int count);
/* Of *from counts what stx_mask says; the fields of STATX_BASIC_STATS and STATX_BTIME at most. */
DF_PRIVATE_EXPORT int df_reply_statx(fuse_req_t req, const struct statx *from, double attr_timeout);
/* Only unrestricted ioctls may be retried, and FUSE has none of them: the caller gets EIO. */
DF_PRIVATE_EXPORT int df_reply_ioctl_retry(fuse_req_t req, const struct iovec *in_iov,
                                           size_t in_count, const struct iovec *out_iov,
                                           size_t out_count);
DF_PRIVATE_EXPORT int df_reply_poll(fuse_req_t req, unsigned revents);
DF_PRIVATE_EXPORT int df_reply_lseek(fuse_req_t req, off_t off);

/* fuse_add_direntry() and fuse_add_direntry_plus(): the kernel's records, which readdir parses. */
DF_PRIVATE_EXPORT size_t df_reply_direntry(fuse_req_t req, char *buf, size_t size, const char *name,
                                           const struct stat *st, off_t off);
DF_PRIVATE_EXPORT size_t df_reply_direntry_plus(fuse_req_t req, char *buf, size_t size,
                                                const char *name,
                                                const struct fuse_entry_param *entry, off_t off);

/* ---- fuse_req_* ---- */

DF_PRIVATE_EXPORT void *df_req_userdata(fuse_req_t req);
DF_PRIVATE_EXPORT const struct fuse_ctx *df_req_ctx(fuse_req_t req);
/* The caller's supplementary groups: their count, of which at most `count` are stored. */
DF_PRIVATE_EXPORT int df_req_getgroups(fuse_req_t req, int count, gid_t list[]);
DF_PRIVATE_EXPORT void df_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func,
                                             void *data);
DF_PRIVATE_EXPORT int df_req_interrupted(fuse_req_t req);

/* ---- fuse_lowlevel_notify_*; any thread, also from inside an operation ---- */

/* fuse_lowlevel_notify_poll() and fuse_pollhandle_destroy() are in host/pollhandle.h. */

/* Attributes of the node are stale from now on (off < 0 means nothing else; there is no page cache
 * to invalidate). -ENOENT when the node is not known. */
DF_PRIVATE_EXPORT int df_notify_inval_inode(struct df_fs *fs, fuse_ino_t ino, off_t off, off_t len);

/* The entry is looked up again before its next use, and the parent's attributes are stale.
 * fuse_lowlevel_notify_expire_entry() as well: without mounts on top of entries the two differ in
 * nothing. -ENOENT when parent or entry is not known, -ENOTDIR. */
DF_PRIVATE_EXPORT int df_notify_inval_entry(struct df_fs *fs, fuse_ino_t parent, const char *name,
                                            size_t len);

/* Every entry is looked up again before its next use. 0, or why the mount cannot be entered. */
DF_PRIVATE_EXPORT int df_notify_increment_epoch(struct df_fs *fs);

/* These nodes need not be known any more: the next calls forget those that nobody uses. 0. */
DF_PRIVATE_EXPORT int df_notify_prune(struct df_fs *fs, const fuse_ino_t *nodeids, uint32_t count);

/* The same for an entry whose removal is known. -ENOENT also when the entry is another child. */
DF_PRIVATE_EXPORT int df_notify_delete(struct df_fs *fs, fuse_ino_t parent, fuse_ino_t child,
                                       const char *name, size_t len);

/* Without a page cache the data go nowhere, which a cache may do with them at any time; the known
 * size grows as after a write. -ENOENT, -EINVAL. */
DF_PRIVATE_EXPORT int df_notify_store(struct df_fs *fs, fuse_ino_t ino, off_t offset,
                                      struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags);

/* -ENOSYS, as on a kernel without the request: there are no cached pages to retrieve. */
DF_PRIVATE_EXPORT int df_notify_retrieve(struct df_fs *fs, fuse_ino_t ino, size_t size,
                                         off_t offset, void *cookie);

#endif
