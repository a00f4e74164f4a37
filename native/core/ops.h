/*
 * ops.h - the one interface between callers and plugins.
 *
 * Everything that can be mounted is a `struct df_fs`: a host adapter (native/host) that knows one
 * kind of plugin, or a wrapper (native/wrap) that has another df_fs below it. The core calls a
 * df_fs only through this table and knows nothing of what stands behind it.
 *
 * Rules that hold for every op
 *   - The result is a count or 0, or a negative errno; never -1, never errno. A plugin's error is
 *     handed through as it is.
 *   - Ops are called from any thread, several at a time, also on the same file. A host that has to
 *     serialise its plugin does so itself.
 *   - An op may be missing (NULL). df_ops_complete() fills the gap with the default named at the
 *     op, so neither the core nor a wrapper ever tests for NULL.
 *   - The table is append-only. `size` is sizeof(struct df_ops) as the implementer saw it: what
 *     lies behind it is missing. A change of meaning needs a new `version`.
 *   - The core pins the mount for the length of the call (gate.h): `fs` and `file` cannot go away.
 *   - "size" is bytes, "count" is elements, an offset is bytes from the start of the file.
 *
 * Naming an object: `struct df_where`
 *   Every op that names an object takes one df_where: a start (the mount's root, or an open file)
 *   and a name relative to it. An empty name is the open file itself, as AT_EMPTY_PATH is; so
 *   fstat is getattr, fchmod is setattr, and openat needs no second set of ops. Resolving the name
 *   inside the mount - whole path or node by node, symlinks, "..", permissions to search - is the
 *   host's duty, for only the host knows what is cheap and right for its plugin.
 *   When the walk leaves the mount (absolute symlink, ".." above the root) the op stores the rest
 *   of the way with df_call_leave() and returns DF_LEAVE; the core routes again.
 *
 * Late completion
 *   Any op may return DF_PENDING after it has arranged that df_call_complete(call, result) will be
 *   called exactly once, from any thread. The core sleeps in df_call_wait(). `call`, `where`,
 *   buffers and iovecs stay valid until then.
 */
#ifndef DF_CORE_OPS_H
#define DF_CORE_OPS_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

#define DF_OPS_VERSION 1

struct df_call;
struct df_file;
struct df_fs;
struct df_mount;
struct df_wake;

/* Results beside 0, counts and negative errnos (the kernel uses errnos up to 4095). */
enum {
    DF_LEAVE = -5001,    /* the path leads out of the mount; see df_call_leave() */
    DF_PENDING = -5002,  /* df_call_complete() will tell */
    DF_NOT_OURS = -5003, /* core to door only: path or descriptor belongs to the kernel */
};

enum { DF_PLAIN_STAT = 1 }; /* result of statx alone: ask getattr */

#define DF_NAME_MAX (PATH_MAX - 1) /* bytes in a component: FUSE_NAME_MAX of fs/fuse/fuse_i.h */

/* ---- naming an object ------------------------------------------------------------------- */

enum {
    DF_WHERE_NOFOLLOW = 1 << 0,  /* a final symlink is the object itself (lstat, O_NOFOLLOW) */
    DF_WHERE_DIRECTORY = 1 << 1, /* the caller wrote a trailing slash or ".": must be a directory */
    DF_WHERE_DOTDOT = 1 << 2,    /* `name` has ".." components */
    DF_WHERE_PARENT = 1 << 3,    /* the last component names an entry to make, remove or move */
    DF_WHERE_DOT = 1 << 4,       /* the path ended in ".": the caller must be allowed to search the
                                    directory itself, as for any name in it */
};

/*
 * `name` is NUL-terminated, has no "//", no "." component, no trailing slash. From the root it
 * begins with '/' ("/" is the root itself); from `base` it does not. It may keep ".." components
 * (flagged): collapsing them before symlinks are resolved would be wrong. len < PATH_MAX, and that
 * is all that a component is limited by: how long its names may be says the file system.
 */
struct df_where {
    struct df_file *base; /* NULL: the root of the mount */
    const char *name;
    uint32_t len;   /* strlen(name), bytes */
    uint32_t flags; /* DF_WHERE_* */
};

/* It is the open file `base`, which no name leads away from. */
static inline bool df_where_is_itself(const struct df_where *where)
{
    return where->base && where->len == 0;
}

/* ---- arguments -------------------------------------------------------------------------- */

enum { /* df_setattr.valid: which fields to set */
       DF_SET_MODE = 1 << 0,
       DF_SET_UID = 1 << 1,
       DF_SET_GID = 1 << 2,
       DF_SET_SIZE = 1 << 3,
       DF_SET_ATIME = 1 << 4,
       DF_SET_MTIME = 1 << 5,
       DF_SET_ATIME_NOW = 1 << 6, /* with DF_SET_ATIME: the server's "now", UTIME_NOW */
       DF_SET_MTIME_NOW = 1 << 7,
};

struct df_setattr {
    uint32_t valid; /* DF_SET_* */
    mode_t mode;    /* permission bits only, 07777 */
    uid_t uid;
    gid_t gid;
    off_t size; /* bytes, never negative */
    struct timespec atime;
    struct timespec mtime;
};

/* What FUSE can tell of a file: struct fuse_statx of <linux/fuse.h> has more fields, the kernel
 * takes over these. */
struct df_statx {
    struct stat st;
    uint32_t mask; /* what is true of it: of STATX_BASIC_STATS and STATX_BTIME */
    struct timespec btime;
};

/*
 * A buffer of struct linux_dirent64 records (getdents64(2)) that readdir fills with df_dirbuf_add.
 * d_off of a record is the opaque offset that continues BEHIND it.
 */
struct df_dirbuf {
    char *data;
    size_t size; /* capacity, bytes */
    size_t used; /* bytes filled so far */
    off_t next;  /* d_off of the last record; set by df_dirbuf_add */
};

/* One piece of a batch read: result is the count of bytes read or a negative errno. */
struct df_extent {
    struct df_file *file;
    void *buf;
    size_t size;
    off_t offset;
    ssize_t result;
};

/* Byte-range lock owners: a POSIX lock belongs to a process, OFD and flock locks to a file. */
struct df_lock {
    uint64_t owner; /* opaque, equal for locks that never conflict */
    int16_t type;   /* F_RDLCK, F_WRLCK, F_UNLCK */
    bool wait;      /* F_SETLKW: sleep until granted (EINTR, EDEADLK) */
    bool test;      /* F_GETLK: report the first conflict in place, F_UNLCK if none */
    off_t start;    /* absolute, bytes */
    off_t end;      /* last byte, inclusive; INT64_MAX: to the end of the file */
    pid_t pid;      /* holder, filled by test */
};

/* ---- the interface ---------------------------------------------------------------------- */

/*
 * Errors common to all ops that take a where, in the order they are checked: ENAMETOOLONG,
 * ENOENT (a component, or an empty name where none is allowed), ENOTDIR, EACCES (search), ELOOP
 * (40 links in one path of a call: df_call.links), then those of the op. Unless it returns DF_LEAVE
 * an op leaves df_call.links as it was, so that the core may look before it calls.
 */
struct df_ops {
    uint32_t version; /* DF_OPS_VERSION */
    uint32_t size;    /* sizeof(struct df_ops) */

    /* --- by name or, with an empty name, by open file --- */

    /* Attributes as stat(2). st_dev is filled in by the core. No default: mandatory. */
    int (*getattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   struct stat *st);

    /* Sets the attributes in set->valid and stores the new ones in *st; st may be NULL (nobody
     * wants them). chmod, chown, utimensat, truncate. EISDIR/EINVAL for truncating what is no
     * regular file; EPERM, EROFS. Default: EROFS. */
    int (*setattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   const struct df_setattr *set, struct stat *st);

    /* access(2) for the caller's ids; mask is F_OK or R_OK|W_OK|X_OK. Default: getattr, then mode
     * bits against the caller. */
    int (*access)(struct df_fs *fs, struct df_call *call, const struct df_where *where, int mask);

    /* Target bytes without NUL, truncated to size; EINVAL when it is no link. Default: EINVAL. */
    ssize_t (*readlink)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        char *buf, size_t size);

    /* Value size when size is 0; ERANGE when it does not fit. Default: EOPNOTSUPP. */
    ssize_t (*getxattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        const char *name, void *value, size_t size);
    ssize_t (*listxattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         char *list, size_t size);
    /* flags: 0, XATTR_CREATE, XATTR_REPLACE. The host knows what xattr(7) allows on which object.
     * Default: EOPNOTSUPP. */
    int (*setxattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                    const char *name, const void *value, size_t size, int flags);
    int (*removexattr)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       const char *name);

    /* Default: zeros but f_namemax 255 and f_bsize 512, as libfuse. */
    int (*statfs)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                  struct statvfs *out);

    /* --- entries of a directory (DF_WHERE_PARENT is set) --- default of all: EROFS --- */

    /* mode carries the type for mknod; the host applies call's umask as FUSE says. EEXIST. */
    int (*mknod)(struct df_fs *fs, struct df_call *call, const struct df_where *where, mode_t mode,
                 dev_t rdev);
    int (*mkdir)(struct df_fs *fs, struct df_call *call, const struct df_where *where, mode_t mode);
    int (*symlink)(struct df_fs *fs, struct df_call *call, const char *target,
                   const struct df_where *where);
    int (*unlink)(struct df_fs *fs, struct df_call *call, const struct df_where *where);
    int (*rmdir)(struct df_fs *fs, struct df_call *call, const struct df_where *where);
    /* Both in this mount; the core has answered EXDEV otherwise. flags: those that Linux knows, in
     * a combination that it allows; RENAME_WHITEOUT is the plugin's to refuse. A leave says which
     * of the two with df_call.leave_second. */
    int (*rename)(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                  const struct df_where *to, unsigned flags);
    /* `from` may be an open file with an empty name (AT_EMPTY_PATH). */
    int (*link)(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                const struct df_where *to);

    /* --- open files --- */

    /*
     * open(2): flags as the caller's, O_CREAT, O_EXCL, O_TRUNC, O_DIRECTORY, O_NOFOLLOW, O_PATH
     * included; mode for O_CREAT. Opens directories too. On success the host has filled
     * file->host[], file->kind and any DF_FILE_* flags, and file->ino unless that would take a
     * question of its own: then getattr tells it when it is needed. Default: EOPNOTSUPP.
     */
    int (*open)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                struct df_file *file, int flags, mode_t mode);

    /* Each close(2) of each duplicate; its error is close's. `owner` is the POSIX lock owner that
     * closes. Default: 0. */
    int (*flush)(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner);

    /* The last reference is gone; called once, cannot fail. Default: nothing. */
    void (*release)(struct df_fs *fs, struct df_call *call, struct df_file *file);

    /* Up to the sum of iov bytes from offset; fewer only at the end of the file or on an error
     * after some bytes. Default: EINVAL. */
    ssize_t (*read)(struct df_fs *fs, struct df_call *call, struct df_file *file,
                    const struct iovec *iov, int iovcnt, off_t offset);

    /* Like read. Where df_call_appends(), as with O_APPEND in file->flags, the offset is ignored:
     * the host writes at the size it has at that moment, atomically against other appends, and
     * stores the offset used in *offset. Default: EBADF. */
    ssize_t (*write)(struct df_fs *fs, struct df_call *call, struct df_file *file,
                     const struct iovec *iov, int iovcnt, off_t *offset);

    /* Many extents, of any files of this fs, in one call; fills each result. Returns 0. Default:
     * read, one after the other. */
    int (*read_batch)(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                      size_t count);

    /* Whence SEEK_DATA or SEEK_HOLE only. Default: no holes (ENXIO past the end). */
    off_t (*lseek)(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                   int whence);

    int (*fsync)(struct df_fs *fs, struct df_call *call, struct df_file *file,
                 bool datasync); /* files and directories. Default: 0 */

    /* mode: FALLOC_FL_*. Default: EOPNOTSUPP. */
    int (*fallocate)(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                     off_t offset, off_t length);

    /* Within this fs. Default: EOPNOTSUPP, and the core copies through a buffer. */
    ssize_t (*copy_file_range)(struct df_fs *fs, struct df_call *call, struct df_file *in,
                               off_t offset_in, struct df_file *out, off_t offset_out, size_t size,
                               unsigned flags);

    /* Fills buf from the opaque offset on (0: the start). 0 with buf->used == 0: the end. "." and
     * ".." are included. EINVAL when not even one record fits. Default: ENOTDIR. */
    int (*readdir)(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                   struct df_dirbuf *buf);

    /* Sizes and direction are those encoded in request (_IOC). Default: ENOTTY. */
    int (*ioctl)(struct df_fs *fs, struct df_call *call, struct df_file *file,
                 unsigned long request, void *arg);

    /* POLL* events of `events` ready now (never sleeps). `wake` (NULL: nobody waits) is consumed in
     * any case. If none is ready, or it is to be told always (wake.h): by df_wake() once that may
     * have changed, or df_wake_drop_over() if that is true before. Else by df_wake_drop(). Default:
     * always ready for reading and writing. */
    int (*poll)(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                struct df_wake *wake);

    /* Byte-range locks and flock(2). Default of both: DF_NOT_OURS, and the core keeps the locks
     * itself (lock.h), as the kernel does for a FUSE file system without them. */
    int (*lock)(struct df_fs *fs, struct df_call *call, struct df_file *file, struct df_lock *lock);
    int (*flock)(struct df_fs *fs, struct df_call *call, struct df_file *file, int operation,
                 uint64_t owner);

    /* A hint: POSIX_FADV_* for a range. Default: 0. */
    int (*advise)(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                  off_t length, int advice);

    /* Lends resident bytes: *ptr stays readable until unborrow. Returns the count of bytes lent,
     * from offset on. Default: EOPNOTSUPP, and the core copies. */
    ssize_t (*borrow)(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                      size_t size, const void **ptr);
    void (*unborrow)(struct df_fs *fs, struct df_call *call, struct df_file *file, const void *ptr,
                     size_t size);

    /* --- life --- */

    /* The mount is gone from the table, no call is in flight, every file is released. Frees fs.
     * Default: nothing. */
    void (*destroy)(struct df_fs *fs);

    /* --- later ones, in the order they came --- */

    /* Attributes with those that stat(2) does not show: asked for when statx(2) wants the time of
     * birth. DF_PLAIN_STAT: it knows no more than getattr, now and later. Default: that. */
    int (*statx)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                 struct df_statx *out);

    /* open(2) with O_TMPFILE: makes a regular file without a name in the directory and opens it,
     * *file as by open. Writing is among `flags`; without O_EXCL, link may give it a name. ENOTDIR,
     * EACCES, then EOPNOTSUPP. Default: these, but for EACCES. */
    int (*tmpfile)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                   struct df_file *file, int flags, mode_t mode);

    /* getattr as far as its answer is known: the plugin is not asked, nothing is waited for, and
     * what is found does not count as used. df_call.valid_ns is told as if asked for. -EAGAIN: it
     * is not known. Default: -EAGAIN. */
    int (*known)(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                 struct stat *st);

    /* The name of an open file by now: its path from the root of the mount, in which no component
     * is a link, without a NUL. The count of bytes; ENOENT: it has none (it was removed), or none
     * that is known; ENAMETOOLONG. Slow. Default: EOPNOTSUPP. */
    ssize_t (*path)(struct df_fs *fs, struct df_call *call, struct df_file *file, char *buf,
                    size_t size);

    /* As read, to one buffer. But bytes that are lent (lend.h), all in one piece, stay where they
     * are, and *at says where; else *at is the buffer. They may be another file's as soon as this
     * returns: whoever uses them has to see that they are not. Default: read. */
    ssize_t (*lend)(struct df_fs *fs, struct df_call *call, struct df_file *file, void *buffer,
                    size_t size, off_t offset, const char **at);
};

/* The start of every host's and wrapper's own struct. `ops` is always a completed table. */
struct df_fs {
    const struct df_ops *ops;
    bool writes_back; /* its writes may be kept and made later: FUSE_CAP_WRITEBACK_CACHE */
    bool acls;        /* with access control lists: FUSE_CAP_POSIX_ACL */
    bool polls;       /* it can tell whether files are ready: FUSE has its operation poll */
    bool shortens;    /* its copy_file_range copies what the source has, if asked for more */
};

/* Of a wrapper: what it states is what the wrapped one does. */
static inline struct df_fs df_fs_around(const struct df_fs *below, const struct df_ops *ops)
{
    struct df_fs fs = *below;

    fs.ops = ops;
    return fs;
}

/* ---- helpers for implementers ----------------------------------------------------------- */

/* Copies `given` to `full` and fills each missing op with its default.
 * Returns 0, or -EINVAL for an unknown version or a missing mandatory op. */
int df_ops_complete(struct df_ops *full, const struct df_ops *given);

/* Appends one record; returns false when it does not fit. type is DT_*. */
bool df_dirbuf_add(struct df_dirbuf *buf, const char *name, size_t len, ino_t ino, off_t next,
                   unsigned char type);

/* Wakes the poller behind `wake` (any thread; consumes it). */
void df_wake(struct df_wake *wake);

/* Consumes `wake`, which may be NULL: what it waits for will not come. */
void df_wake_drop(struct df_wake *wake);

/* Consumes the wake if its poller sleeps no more, and never will; false: it may. */
bool df_wake_drop_over(struct df_wake *wake);

#endif
