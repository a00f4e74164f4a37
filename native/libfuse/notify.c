/*
 * notify.c - fuse_lowlevel_notify_*: what a low-level file system tells of changes that did not
 * come through its mount. Any thread.
 */
#include <errno.h>

#include "host/pollhandle.h"
#include "libfuse/abi.h"
#include "lowlevel/lowlevel.h"

/*
 * Evaluates `call` with `fs`, the nodes of a session. -ENOENT when the file system has ended; a
 * session of the high-level API has no nodes that its program could name.
 */
#define WITH_NODES(se, call)                                                                       \
    ({                                                                                             \
        int result = -EINVAL;                                                                      \
        if (se && !se->fuse) {                                                                     \
            struct df_fs *fs = df_abi_session_enter(se);                                           \
            result = fs ? (call) : -ENOENT;                                                        \
            if (fs)                                                                                \
                df_abi_session_leave(se);                                                          \
        }                                                                                          \
        result;                                                                                    \
    })

int fuse_lowlevel_notify_poll(struct fuse_pollhandle *ph)
{
    return ph ? df_pollhandle_notify(ph) : 0;
}

int fuse_lowlevel_notify_inval_inode(struct fuse_session *se, fuse_ino_t ino, off_t off, off_t len)
{
    return WITH_NODES(se, df_notify_inval_inode(fs, ino, off, len));
}

int fuse_lowlevel_notify_inval_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
                                     size_t namelen)
{
    return WITH_NODES(se, df_notify_inval_entry(fs, parent, name, namelen));
}

int fuse_lowlevel_notify_delete(struct fuse_session *se, fuse_ino_t parent, fuse_ino_t child,
                                const char *name, size_t namelen)
{
    return WITH_NODES(se, df_notify_delete(fs, parent, child, name, namelen));
}

/* libfuse 3.18; not in the headers that we are built with. */
int fuse_lowlevel_notify_increment_epoch(struct fuse_session *se);

int fuse_lowlevel_notify_increment_epoch(struct fuse_session *se)
{
    return WITH_NODES(se, df_notify_increment_epoch(fs));
}

/* libfuse 3.19. */
int fuse_lowlevel_notify_prune(struct fuse_session *se, fuse_ino_t *nodeids, uint32_t count);

int fuse_lowlevel_notify_prune(struct fuse_session *se, fuse_ino_t *nodeids, uint32_t count)
{
    return WITH_NODES(se, df_notify_prune(fs, nodeids, count));
}

int df_abi_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
                        struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags)
{
    return WITH_NODES(se, df_notify_store(fs, ino, offset, bufv, flags));
}

int fuse_lowlevel_notify_retrieve(struct fuse_session *se, fuse_ino_t ino, size_t size,
                                  off_t offset, void *cookie)
{
    return WITH_NODES(se, df_notify_retrieve(fs, ino, size, offset, cookie));
}
