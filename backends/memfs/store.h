/*
 * store.h - the file system itself, without FUSE: inodes, directories, data, extended attributes.
 *
 * The door (door*.c) turns FUSE requests into these calls; tests call them directly. A function's
 * prefix names its file. Results are a count or 0, or a negative errno. All functions may be called
 * from any thread unless they say which lock the caller holds.
 *
 * Lock order, complete; a thread takes locks only downwards in this list
 *   1. store->rename           held by renames from one directory to another: the tree stands still
 *   2. parent directories      ancestor before descendant; two unrelated ones by address (only
 *                              under 1, where nobody else can want them the other way round)
 *   3. directories named by the entries, by address
 *   4. other inodes, by address
 *   5. a shard of inodes, the quotas, the pools of memory, whoever lends it: leaves, nothing is
 *      taken below them
 *
 * What protects what
 *   - inode->lock of a directory: its table of entries, its extended attributes.
 *   - inode->lock of a file: its data and extended attributes.
 *   - inode->attr is written under inode->lock held for writing; it is read under the lock, or
 *     through inode_attr(), which does without while no writer is at work. So stat(2) writes to no
 *     shared memory.
 *   - inode->refs keeps the inode: one for every lookup the kernel has not forgotten, one while
 *     the inode has a name, one for each child directory that points to it as its parent. FUSE
 *     forgets a file only after it has released it (<fuse_lowlevel.h>, forget), so open files
 *     need no count of their own. Requests do not need one either, until they are replied to. A
 *     READ, READDIR or GETXATTR replies while it holds the lock, and by then another thread may
 *     have the FORGET: the last reference waits for the lock (lock_drain()).
 */
#ifndef MEMFS_STORE_H
#define MEMFS_STORE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "data.h"
#include "lock.h"

#pragma GCC visibility push(hidden)

enum {
    CACHE_LINE = 64,
    NAME_LIMIT = 255, /* NAME_MAX */
};

struct inode;

/* ---- types ------------------------------------------------------------------------------ */

/* What changes about an inode and is told by stat(2). Copied as 64-bit words, see inode_attr(). */
struct attr {
    int64_t size; /* bytes; of a directory as tmpfs counts, 20 for each entry */
    int64_t used; /* bytes charged to the quota */
    struct timespec atime, mtime, ctime;
    uint32_t mode; /* type and permissions */
    uint32_t nlink;
    uint32_t uid, gid;
};

enum { ATTR_WORDS = sizeof(struct attr) / 8 };
_Static_assert(sizeof(struct attr) % 8 == 0, "attributes are copied in whole words");

struct inode {
    struct lock lock;
    _Atomic uint32_t version; /* odd while attr is being written */
    uint64_t ino;             /* st_ino, and the FUSE generation: never used twice */
    _Atomic uint64_t refs;    /* see above; 0 in a free inode */
    uint8_t type;             /* DT_*, never changes */
    _Atomic bool seen;        /* attr has been told since it changed; see stamp.c */
    int16_t born_high;        /* inode_born(): two parts, for there is just so much room */
    uint32_t born_low;
    union {
        struct attr attr;
        uint64_t attr_words[ATTR_WORDS];
    };
    union {
        struct dir *dir;    /* DT_DIR */
        char *target;       /* DT_LNK, NUL-terminated, never changes */
        dev_t rdev;         /* DT_CHR, DT_BLK; never changes */
        struct map chunks;  /* DT_REG: struct chunk by offset / CHUNK; never an empty chunk */
        struct inode *next; /* of a free inode */
    };
    struct xattr *xattrs; /* singly linked */
} __attribute__((aligned(2 * CACHE_LINE)));

_Static_assert(sizeof(struct inode) == 128, "an inode is two cache lines");

struct dentry {
    struct inode *inode;
    uint8_t len;
    char name[]; /* len bytes and a NUL */
};

/* A name that is looked for. */
struct name {
    const char *text;
    uint32_t len;
    uint32_t hash;
};

/* An entry's place in the order of readdir. The cookie shrinks along the array. */
struct slot {
    struct dentry *dentry; /* NULL: unlinked */
    uint64_t cookie;
};

struct cell {
    uint32_t hash;
    uint32_t slot; /* plus one; 0: free */
};

/* Entries of a directory: in the order of their creation, and by hash. */
struct dir {
    struct inode *parent; /* holds a reference; the root's is itself, without one */
    struct slot *slots;   /* `used` of `cap`, `live` of them with an entry */
    struct cell *cells;   /* open addressing, `mask` + 1 */
    uint32_t used, cap, live, mask;
    uint64_t next_cookie;
};

struct xattr {
    struct xattr *next;
    uint32_t size;
    uint8_t len;
    char data[]; /* name of len bytes, NUL, value of size bytes */
};

/* A limited amount, handed out by batches to the CPUs so that they share no cache line. */
struct quota_shard {
    _Atomic int64_t credit;
} __attribute__((aligned(CACHE_LINE)));

struct quota {
    int64_t limit;        /* INT64_MAX / 2: none */
    int64_t batch;        /* what a shard fetches or returns at once */
    struct lock lock;     /* whoever takes from pool holds it */
    _Atomic int64_t pool; /* in no shard and not taken */
    struct quota_shard *shards;
    unsigned mask; /* shards - 1 */
};

/* Inodes of a CPU. Whoever finds a shard busy takes the next one instead of waiting. */
struct shard {
    atomic_bool busy;          /* protects the rest */
    struct inode *free;        /* singly linked */
    struct inode *fresh, *end; /* of the newest slab, never used */
    uint64_t ino, ino_end;     /* numbers reserved for this shard */
} __attribute__((aligned(CACHE_LINE)));

struct store {
    struct inode *root;
    int64_t born; /* microseconds since the epoch */
    struct lock rename;
    bool noatime;
    bool huge;     /* large files from huge pages */
    uint64_t seed; /* of name hashes, random */
    struct quota bytes, inodes;
    struct pool pools[2]; /* small pages, huge pages */
    struct shard *shards;
    unsigned shard_mask;
    struct lock slabs_lock; /* protects slabs */
    struct slab *slabs;     /* all memory of inodes */
    _Atomic uint64_t next_ino __attribute__((aligned(CACHE_LINE)));
    _Atomic int64_t floor __attribute__((aligned(CACHE_LINE))); /* see stamp.c */
};

struct store_options {
    int64_t size;   /* bytes of data, 0: no limit */
    int64_t inodes; /* inodes and further links, 0: no limit */
    mode_t mode;    /* permissions of the root */
    uid_t uid;
    gid_t gid;
    bool noatime;
    bool huge;
};

/* ---- store.c ---------------------------------------------------------------------------- */

/* NULL when there is no memory. */
struct store *store_new(const struct store_options *options);
/* Nobody may be inside or come back. */
void store_free(struct store *store);
void store_statfs(struct store *store, struct statvfs *out);

/* ---- quota.c ---------------------------------------------------------------------------- */

/* A limit of 0 means none. -ENOMEM */
int quota_init(struct quota *quota, int64_t limit, int64_t batch);
void quota_free(struct quota *quota);
/* False when less than `amount` is left. */
bool quota_take(struct quota *quota, int64_t amount);
void quota_give(struct quota *quota, int64_t amount);
/* What is left; exact when nobody takes or gives at the moment. */
int64_t quota_left(struct quota *quota);
/* The number of CPUs rounded up to a power of two: how many shards things have. */
unsigned quota_shards(void);

/* ---- stamp.c ---------------------------------------------------------------------------- */

/* The time for a change; `distinct`: finer than the clock tick. */
struct timespec stamp_now(struct store *store, bool distinct);
/* The time for a change of `inode`, whose lock is held for writing: later than any told before. */
struct timespec stamp_for(struct store *store, const struct inode *inode);

/* ---- inode.c ---------------------------------------------------------------------------- */

/* One reference, for its name; nlink is 1. NULL and *error is -ENOSPC or -ENOMEM. */
struct inode *inode_new(struct store *store, mode_t mode, uid_t uid, gid_t gid,
                        const struct timespec *now, int *error);
/* The caller holds a reference, or a lock that keeps the inode's name. */
static inline void inode_get(struct inode *inode)
{
    atomic_fetch_add_explicit(&inode->refs, 1, memory_order_relaxed);
}
/* Gives up `count` references; the last one frees the inode. No lock of an inode may be held. */
void inode_put(struct store *store, struct inode *inode, uint64_t count);
/* When it was made, to the microsecond below. Never changes. */
struct timespec inode_born(const struct store *store, const struct inode *inode);
/* A consistent copy of the attributes, nearly always without the lock; they count as seen. */
static inline struct attr inode_attr(struct inode *inode);
struct attr inode_attr_locked(struct inode *inode);
/* Replaces the attributes. The lock is held for writing. */
static inline void inode_set_attr(struct inode *inode, const struct attr *attr);
/* Takes the lock for reading on behalf of somebody who reads the contents, by a file of these
 * flags: atime by relatime, and never for O_NOATIME. */
void inode_lock_accessed(struct store *store, struct inode *inode, int flags);
/* Frees all inodes whatever their references, and the slabs. For store_free(). */
void inode_free_all(struct store *store);

/* ---- attr.c ----------------------------------------------------------------------------- */

enum { /* attr_change.valid; without ..._CTIME the ctime is now */
       ATTR_MODE = 1 << 0,
       ATTR_UID = 1 << 1,
       ATTR_GID = 1 << 2,
       ATTR_SIZE = 1 << 3,
       ATTR_ATIME = 1 << 4,
       ATTR_MTIME = 1 << 5,
       ATTR_CTIME = 1 << 6,
       ATTR_ATIME_NOW = 1 << 7,
       ATTR_MTIME_NOW = 1 << 8,
};

struct attr_change {
    unsigned valid; /* ATTR_* */
    struct attr to;
    uid_t caller; /* a change of size by others than root clears suid and sgid */
};

/* -EISDIR, -EINVAL: a size for what has none. -EFBIG, -ENOSPC, -ENOMEM. All or nothing. */
int attr_set(struct store *store, struct inode *inode, const struct attr_change *change);
/* Clears suid and, where the group may execute, sgid of a file; chown(2), write(2). */
void attr_drop_suid(struct attr *attr);

/* ---- dir.c: all under the directory's lock ---------------------------------------------- */

struct dir *dir_new(struct inode *parent);
void dir_free(struct dir *dir);
/* -ENAMETOOLONG, -ENOENT (an empty name), -EINVAL ("." and "..") */
int dir_name(const struct store *store, const char *text, struct name *name);
struct dentry *dir_find(const struct dir *dir, const struct name *name);
/* The name is not there yet. -ENOMEM */
int dir_insert(struct dir *dir, const struct name *name, struct inode *inode);
/* The name is there. Never fails. */
void dir_remove(struct dir *dir, const struct name *name);
/* Position of the entries whose cookies are larger than `cookie` (0: all), of which the newest
 * comes first. */
uint32_t dir_seek(const struct dir *dir, uint64_t cookie);
/* The next entry from *pos on, NULL at the end; *pos goes past it, *cookie becomes its own. */
const struct dentry *dir_step(const struct dir *dir, uint32_t *pos, uint64_t *cookie);

/* Cookies of "." and ".."; those of entries are larger. */
enum { DIR_DOT = 1, DIR_DOTDOT = 2 };

/* ---- tree.c ----------------------------------------------------------------------------- */

/*
 * Parents that are no directory: -ENOTDIR; removed ones: -ENOENT. An inode handed out carries a
 * reference that the caller gives back with inode_put().
 */

struct tree_new { /* what to create */
    mode_t mode;  /* type and permissions */
    uid_t uid;
    gid_t gid; /* unless the parent is setgid */
    dev_t rdev;
    const char *target; /* of a symlink */
    mode_t umask;       /* where the kernel has left it to us, and the parent has no default list */
};

/* -ENOENT, -ENAMETOOLONG */
int tree_lookup(struct store *store, struct inode *parent, const char *name, struct inode **out);
/* -EEXIST, -ENAMETOOLONG, -ENOSPC, -ENOMEM, -EMLINK */
int tree_create(struct store *store, struct inode *parent, const char *name,
                const struct tree_new *what, struct inode **out);
/* A file without a name. -ENOSPC, -ENOMEM */
int tree_nameless(struct store *store, struct inode *parent, const struct tree_new *what,
                  struct inode **out);
/* -EEXIST, -ENAMETOOLONG, -EPERM (a directory), -ENOSPC, -EMLINK. A file without a name gets one:
 * for one whose last name was removed the kernel does not ask (vfs_link()). */
int tree_link(struct store *store, struct inode *inode, struct inode *parent, const char *name);
/* -ENOENT, -EISDIR */
int tree_unlink(struct store *store, struct inode *parent, const char *name);
/* -ENOENT, -ENOTDIR, -ENOTEMPTY */
int tree_rmdir(struct store *store, struct inode *parent, const char *name);

/*
 * For rename.c. An inode loses one of its names, a directory its only one; its lock is held for
 * writing. tree_put_link() follows when no lock is held, with what this returned.
 */
bool tree_drop_link(struct store *store, struct inode *inode, const struct timespec *now);
void tree_put_link(struct store *store, struct inode *inode, bool last);
/* For rename.c. Entries of `parent` change by `entries`, subdirectories by `subdirs`. */
void tree_parent_changed(struct inode *parent, int entries, int subdirs,
                         const struct timespec *now);

/* ---- rename.c --------------------------------------------------------------------------- */

/* `flags`: 0, RENAME_NOREPLACE or RENAME_EXCHANGE. Errors as rename(2). */
int rename_entry(struct store *store, struct inode *from, const char *old, struct inode *to,
                 const char *new, unsigned flags);

/* ---- xattr.c ---------------------------------------------------------------------------- */

/* `flags`: 0, XATTR_CREATE, XATTR_REPLACE. Errors as setxattr(2). */
int xattr_set(struct store *store, struct inode *inode, const char *name, const void *value,
              size_t size, int flags);
/* The file's lock is held as long as the value is used. -ENODATA, -EOPNOTSUPP */
int xattr_get(const struct inode *inode, const char *name, const void **value, size_t *size);
/* Bytes of all names, each with its NUL, copied to `list` if not NULL. The lock is held. */
size_t xattr_list(const struct inode *inode, char *list, bool privileged);
/* -ENODATA, -EOPNOTSUPP */
int xattr_remove(struct store *store, struct inode *inode, const char *name);
/* For acl.c: sets one; removes one, true if it was there. The lock is held for writing, or nobody
 * else sees the inode; the ctime is the caller's to change. */
int xattr_put(struct store *store, struct inode *inode, const char *name, const void *value,
              size_t size, int flags);
bool xattr_drop(struct store *store, struct inode *inode, const char *name);
void xattr_free_all(struct store *store, struct inode *inode);

/* ---- acl.c ------------------------------------------------------------------------------ */

/* Is the attribute an access control list, or a directory's default one? */
bool acl_is_name(const char *name);
/* Sets one, and the mode bits by it. `keeps_sgid`: the caller may set that bit, see chmod(2).
 * -EACCES: only directories have a default one. -EOPNOTSUPP: a symlink. Errors as xattr_set(). */
int acl_set(struct store *store, struct inode *inode, const char *name, const void *list,
            size_t size, bool keeps_sgid);
/* The mode is going to be this one: so is what the list says of it. The lock is held for writing.
 */
void acl_chmod(const struct inode *inode, uint32_t mode);
/* Gives a new inode, which nobody else sees yet, the lists and mode that it has from `parent`,
 * whose lock is held. -ENOSPC, -ENOMEM */
int acl_inherit(struct store *store, struct inode *inode, const struct inode *parent, mode_t umask);

/* ---- inline ----------------------------------------------------------------------------- */

static inline struct attr inode_attr(struct inode *inode)
{
    union {
        struct attr attr;
        uint64_t words[ATTR_WORDS];
    } copy;

    if (!atomic_load_explicit(&inode->seen, memory_order_relaxed))
        atomic_store_explicit(&inode->seen, true, memory_order_relaxed);
    uint32_t version = atomic_load_explicit(&inode->version, memory_order_acquire);
#pragma GCC unroll 16
    for (int i = 0; i < ATTR_WORDS; i++)
        copy.words[i] = __atomic_load_n(&inode->attr_words[i], __ATOMIC_ACQUIRE);
    if ((version & 1) || atomic_load_explicit(&inode->version, memory_order_relaxed) != version)
        return inode_attr_locked(inode); /* changed meanwhile */
    return copy.attr;
}

static inline void inode_set_attr(struct inode *inode, const struct attr *attr)
{
    union {
        struct attr attr;
        uint64_t words[ATTR_WORDS];
    } copy = {.attr = *attr};
    uint32_t version = atomic_load_explicit(&inode->version, memory_order_relaxed);

    lock_assert_write(&inode->lock);
    if (attr->ctime.tv_nsec != inode->attr.ctime.tv_nsec ||
        attr->ctime.tv_sec != inode->attr.ctime.tv_sec)
        atomic_store_explicit(&inode->seen, false, memory_order_relaxed);
    atomic_store_explicit(&inode->version, version + 1, memory_order_relaxed);
#pragma GCC unroll 16
    for (int i = 0; i < ATTR_WORDS; i++)
        __atomic_store_n(&inode->attr_words[i], copy.words[i], __ATOMIC_RELEASE);
    atomic_store_explicit(&inode->version, version + 2, memory_order_release);
}

#pragma GCC visibility pop
#endif
