/*
 * mount.h - the life of mounts: attach, detach, wrap, end.
 *
 * Life of a mount:   LIVE --detach--> CLOSING --no file, no call--> gone (ops->destroy)
 *                                        \--files open, calls that do not end--> LIVE, -EBUSY
 *                    LIVE --lazy detach--> DETACHED --last file, last call--> gone
 * While a mount is CLOSING new calls wait for the verdict.
 */
#ifndef DF_CORE_MOUNT_H
#define DF_CORE_MOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/export.h"
#include "core/ops.h"

enum {                               /* df_mount_spec.flags */
       DF_ATTACH_READONLY = 1 << 0,  /* calls that would change something: EROFS */
       DF_ATTACH_WRITEBACK = 1 << 1, /* df_fs.writes_back of the file system */
       DF_ATTACH_PERMITS = 1 << 2,   /* default_permissions: what access answers follows from what
                                        getattr does, by df_caller_may(), */
       DF_ATTACH_ACLS = 1 << 3,      /* df_fs.acls: but not where df_caller_is_for_acl() */
};

enum {                          /* df_mount_detach flags */
       DF_DETACH_LAZY = 1 << 0, /* leave the table at once, end with the last file: MNT_DETACH */
};

struct df_mount_spec {
    const char *point;   /* mountpoint; relative: to the working directory. Need not exist */
    const char *fsname;  /* what is mounted, for listings; may be NULL */
    const char *subtype; /* kind of file system, for listings; may be NULL */
    unsigned flags;      /* DF_ATTACH_* */
};

/* Type-stable: reused for another mount, never freed, so a reader that lost a race may look at
 * `live` of a dead one. All but `live` and `fs` is fixed while the mount lives. */
struct df_mount {
    _Atomic int live;           /* its id while LIVE, else 0 */
    _Atomic(struct df_fs *) fs; /* top of the stack of wrappers */
    int id;                     /* > 0, never used again */
    unsigned flags;             /* DF_ATTACH_* */
    dev_t dev;                  /* st_dev of every file; a major number no kernel hands out */
    uint32_t point_len;         /* bytes; 0 for "/" */
    char *point;                /* canonical, no trailing slash; "" for "/" */
    char *alias;                /* as the caller spelled it, if symlinks made that differ */
    char *fsname;
    char *subtype;
    mode_t covers;               /* type (S_IFDIR ...) of what was at the mountpoint; 0: nothing */
    _Atomic uint32_t lock_count; /* core-kept locks on its files (lock.c) */
    atomic_bool plain_stat;      /* its statx has said DF_PLAIN_STAT */
    _Atomic ino_t root;          /* st_ino at the mountpoint; 0: not asked for yet */
    bool prompt;                 /* df_mount_set_prompt(); under the table lock */
    bool listed;                 /* paths lead to it; under the table lock */
    int state;                   /* mount.c; under the table lock */
    struct df_mount *next;       /* list of all or of free ones; under the table lock */
};

/*
 * Attaches fs. On success the mount owns it and ends with fs->ops->destroy(fs); *out stays valid
 * until then. Returns 0 or -errno: EBUSY (a mount is there), EINVAL (empty), ENAMETOOLONG, ENOMEM;
 * fs is then the caller's.
 */
DF_PRIVATE_EXPORT int df_mount_attach(const struct df_mount_spec *spec, struct df_fs *fs,
                                      struct df_mount **out);

/*
 * Detaches by id. Waits for calls in flight, for five seconds, unless lazy. Returns 0 when
 * ops->destroy has returned (lazy: when the mount has left the table), or -errno: EINVAL (no such
 * mount), EBUSY (not lazy: files are open, calls are in flight still, or it is called from inside
 * one of the mount's own).
 */
DF_PRIVATE_EXPORT int df_mount_detach(int id, unsigned flags);

/* Sleeps until the mount `id` has ended: its destroy has returned. At once if there is none. */
DF_PRIVATE_EXPORT void df_mount_wait(int id);

/* Whether files of the mount `id` are open; it may have left the table. False if there is none. */
DF_PRIVATE_EXPORT bool df_mount_has_files(int id);

/* Whether no call is in it any more, and none comes: its file system is being destroyed, or was. */
DF_PRIVATE_EXPORT bool df_mount_is_ending(int id);

/* Puts a wrapper on top of a live mount. make() gets the present top and returns the new one, or
 * NULL (-ENOMEM). Calls that have begun end below it. Returns 0, -EINVAL (no such mount). */
DF_PRIVATE_EXPORT int df_mount_wrap(int id, struct df_fs *(*make)(struct df_fs *below, void *arg),
                                    void *arg);

/*
 * Whoever made the mount knows that its file system never waits for anything but its own short
 * locks: no network, no disk, no other thread's reply. Doors that hold something while they call
 * (Python its GIL) may then go on holding it. Returns 0, -EINVAL (no such mount).
 */
DF_PRIVATE_EXPORT int df_mount_set_prompt(int id);

/* True if some mount is not known to be prompt. Costs one load. */
DF_PRIVATE_EXPORT bool df_mount_any_may_wait(void);

/* Calls visit for each mount in the table, the oldest first, under the table lock (visit must not
 * mount). Stops when it returns false. */
DF_PRIVATE_EXPORT void df_mount_each(bool (*visit)(const struct df_mount *mount, void *arg),
                                     void *arg);

/* ---- for the core ---- */

/* Sleeps while the mount `id` is CLOSING. */
void df_mount_await_verdict(int id);

/* Something that kept a mount has gone: wakes who waits for it. */
void df_mount_notify(void);

/* Ends the detached mounts that nothing keeps any more. Outside the gate only. */
void df_mount_reap(void);

void df_mount_lock(void); /* the table lock, for fork.c */
void df_mount_unlock(void);
void df_mount_after_fork(void); /* in the child: who was closing a mount is gone */

#endif
