/*
 * private.h - what the files of the node lane share: the file system, its nodes, open files, ops.
 *
 *   lowlevel.c   life: new, init, free; the table of ops
 *   request.c    a request: sent, waited for; fuse_req_*
 *   reply.c      fuse_reply_*
 *   target.c     what operations by name have in common
 *   changes.c    what is told of changes
 *   node.c       what node_*.c asks of a plugin: LOOKUP, READLINK, FORGET; permissions
 *   attr.c       getattr, statx, setattr, access, readlink, statfs
 *   xattr.c      extended attributes
 *   name.c       mknod, mkdir, symlink, link, unlink, rmdir
 *   rename.c     rename
 *   open.c       open, flush, release
 *   create.c     open with O_CREAT, with O_TMPFILE
 *   io.c         read, write
 *   space.c      lseek, fsync, fallocate, copy_file_range
 *   dir.c        readdir
 *   control.c    ioctl, poll, locks
 *   notify.c     fuse_lowlevel_notify_*
 */
#ifndef DF_LOWLEVEL_PRIVATE_H
#define DF_LOWLEVEL_PRIVATE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/call.h"
#include "core/file.h"
#include "host/serial.h"
#include "lowlevel/lowlevel.h"
#include "nodes/evict.h"
#include "nodes/lookup.h"
#include "nodes/node.h"
#include "nodes/walk.h"

/* Requests that a plugin does not know: ENOSYS is remembered, as the kernel does. */
enum {
    DF_LACKS_OPEN = 1 << 0, /* no handles: no RELEASE either */
    DF_LACKS_OPENDIR = 1 << 1,
    DF_LACKS_CREATE = 1 << 2, /* MKNOD and OPEN instead */
    DF_LACKS_FLUSH = 1 << 3,  /* this and the next three: success */
    DF_LACKS_FSYNC = 1 << 4,
    DF_LACKS_FSYNCDIR = 1 << 5,
    DF_LACKS_ACCESS = 1 << 6,
    DF_LACKS_LSEEK = 1 << 7,        /* no holes */
    DF_LACKS_POLL = 1 << 8,         /* always ready */
    DF_LACKS_RENAME_FLAGS = 1 << 9, /* EINVAL */
    DF_LACKS_GETXATTR = 1 << 10,    /* this and the next six: EOPNOTSUPP */
    DF_LACKS_SETXATTR = 1 << 11,
    DF_LACKS_LISTXATTR = 1 << 12,
    DF_LACKS_REMOVEXATTR = 1 << 13,
    DF_LACKS_FALLOCATE = 1 << 14,
    DF_LACKS_COPY = 1 << 15,
    DF_LACKS_STATX = 1 << 16,   /* GETATTR instead */
    DF_LACKS_TMPFILE = 1 << 17, /* EOPNOTSUPP */
};

/* Fixed after df_lowlevel_init(), but for `lacks` and what `nodes` says of itself. */
struct df_lowlevel {
    struct df_fs fs; /* first */
    struct fuse_lowlevel_ops ops;
    struct df_lowlevel_later later;
    void *userdata;
    const struct df_session *session; /* may be NULL */
    struct df_plugin *plugin;         /* may be NULL */
    struct df_ops table;              /* fs.ops */

    bool initialised;         /* ops.destroy is due */
    bool serial;              /* one operation at a time, under serial_lock */
    bool guarded;             /* only the owner of the mount enters */
    bool default_permissions; /* we check mode bits; and lists, with fs.acls */
    bool dont_mask;           /* the plugin applies the umask */
    bool atomic_truncate;     /* O_TRUNC goes into OPEN */
    bool handles_killpriv;    /* the plugin clears setuid and setgid bits */
    bool plus, plus_auto;     /* READDIRPLUS, adaptively */
    uint32_t want;            /* FUSE_CAP_* agreed on */
    bool posix_locks, flock_locks;
    bool ioctl_dir;
    uint32_t max_read; /* bytes */
    uint32_t max_write;

    _Atomic uint32_t lacks;       /* DF_LACKS_*; only ever grows */
    struct df_serial serial_lock; /* held while an operation of the plugin runs, not until it is
                                     answered: a single-threaded loop goes on as well */
    struct df_nodes nodes;
};

static inline struct df_lowlevel *df_lowlevel_of(struct df_fs *fs)
{
    return (struct df_lowlevel *)fs;
}

static inline struct df_lowlevel *df_lowlevel_of_nodes(struct df_nodes *nodes)
{
    return (struct df_lowlevel *)((char *)nodes - offsetof(struct df_lowlevel, nodes));
}

static inline bool df_lowlevel_lacks(const struct df_lowlevel *lane, uint32_t what)
{
    return (atomic_load_explicit(&lane->lacks, memory_order_relaxed) & what) != 0;
}

static inline void df_lowlevel_note_lack(struct df_lowlevel *lane, uint32_t what)
{
    atomic_fetch_or_explicit(&lane->lacks, what, memory_order_relaxed);
}

/* 0, or -EACCES for somebody who may not enter (no allow_other). */
static inline int df_lowlevel_enter(const struct df_lowlevel *lane, const struct df_call *call)
{
    const struct df_session *session = lane->session;

    if (DF_LIKELY(!lane->guarded) ||
        (call->caller->uid == session->owner_uid && call->caller->gid == session->owner_gid))
        return 0;
    return session->allow_root && call->caller->uid == 0 ? 0 : -EACCES;
}

/* What every operation by name does last: keeps the number of entries bounded. */
static inline void df_lowlevel_leave(struct df_lowlevel *lane)
{
    if (DF_UNLIKELY(atomic_load_explicit(&lane->nodes.crowded, memory_order_relaxed)))
        df_node_evict(&lane->nodes);
}

/* ---- permit.c ---- */

/* With default_permissions: may the caller read, write, execute (R_OK ...)? Else 0. The node is
 * referenced. */
int df_lowlevel_permit(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                       int mask);

/* ... remove this entry of this directory? */
int df_lowlevel_permit_remove(struct df_lowlevel *lane, struct df_call *call, struct df_node *dir,
                              struct df_node *victim);

/* df_node_source.search, with default_permissions. */
int df_lowlevel_permit_search(struct df_nodes *nodes, struct df_call *call, struct df_node *dir);

/* ---- xattr.c ---- */

/* GETXATTR: bytes in `value`, or -errno; without room (`size` is 0) how many there are. The node is
 * referenced. */
ssize_t df_lowlevel_ask_xattr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                              const char *name, void *value, size_t size);

/* ---- node.c ---- */

extern const struct df_node_source df_lowlevel_source;

/* The same with a search of directories that asks for permission. */
extern const struct df_node_source df_lowlevel_guarded_source;

/* GETATTR, with the handle of `file` if it has one; NULL: none. The node is referenced, or its
 * directory locked. Believes the answer. */
int df_lowlevel_ask_attr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                         struct df_file *file, struct stat *st);

/* The attributes, those in `need` from the cache if they are believed, else asked for. */
int df_lowlevel_attr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                     struct df_file *file, uint32_t need, struct stat *st);

/* The mode that MKNOD, MKDIR, CREATE send. */
static inline mode_t df_lowlevel_mode(const struct df_lowlevel *lane, const struct df_call *call,
                                      mode_t mode)
{
    return lane->dont_mask ? mode : mode & ~call->caller->umask;
}

/* ---- open files: df_file.host[] ---- */

enum {
    DF_FILE_NODE = DF_NODE_FILE_WORD, /* struct df_node *, referenced */
    DF_FILE_FH,                       /* fuse_file_info.fh */
    DF_FILE_BITS,                     /* DF_FILE_HAS_* */
    DF_FILE_FLAGS,                    /* as OPEN was sent with */
    DF_FILE_FLOCK_OWNER,              /* of the plugin's flock lock, with DF_FILE_HAS_FLOCK */
    DF_FILE_POLL,                     /* _Atomic(void *): df_pollnode */
};

enum {                              /* df_file.host[DF_FILE_BITS] */
       DF_FILE_HAS_HANDLE = 1 << 0, /* RELEASE is due */
       DF_FILE_HAS_FLOCK = 1 << 1,  /* flock(2) went to the plugin */
};

/* A program built with the longer structure may write all of it. */
union df_file_info {
    struct fuse_file_info fi;
    char room[DF_FILE_INFO_4];
};

/* A copy for one request: what the plugin writes into it does not stay. */
static inline struct fuse_file_info *df_lowlevel_handle(union df_file_info *info,
                                                        const struct df_file *file)
{
    memset(info, 0, sizeof(*info));
    info->fi.fh = file->host[DF_FILE_FH];
    return &info->fi;
}

/* READ and WRITE tell the file's flags and whose call it is as well. */
static inline struct fuse_file_info *df_lowlevel_file_info(union df_file_info *info,
                                                           const struct df_call *call,
                                                           const struct df_file *file)
{
    df_lowlevel_handle(info, file);
    info->fi.flags = atomic_load_explicit(&file->flags, memory_order_relaxed);
    info->fi.lock_owner = call->caller->lock_owner;
    return &info->fi;
}

/* The bits grow while the file is in use by other threads. */
static inline bool df_lowlevel_file_has(const struct df_file *file, uint64_t bit)
{
    return (__atomic_load_n(&file->host[DF_FILE_BITS], __ATOMIC_RELAXED) & bit) != 0;
}

/* ---- the ops (core/ops.h), all but advise and borrow, which the core answers ---- */

#define DF_OP_CALL(type, name, parameters, arguments, bytes) type df_lowlevel_##name parameters;
#include "core/ops_calls.def"
#undef DF_OP_CALL
void df_lowlevel_release(struct df_fs *fs, struct df_call *call, struct df_file *file);
ssize_t df_lowlevel_lend(struct df_fs *fs, struct df_call *call, struct df_file *file, void *buffer,
                         size_t size, off_t offset, const char **at);
int df_lowlevel_known(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct stat *st);

#endif
