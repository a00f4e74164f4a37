/*
 * route.h - from (dirfd, path) to the mount and a df_where; and the loop of a call by path, which
 * goes on when the way leads out of one mount into another.
 *
 *     struct df_way way;
 *     ssize_t ret = df_way_begin(&way, dirfd, path, DF_ROUTE_NOFOLLOW);
 *     while (df_way_next(&way, &ret))
 *         ret = way.fs->ops->getattr(way.fs, &way.call, &way.leg.where, st);
 *     return df_way_end(&way, ret);
 */
#ifndef DF_CORE_ROUTE_H
#define DF_CORE_ROUTE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/call.h"
#include "core/export.h"
#include "core/gate.h"
#include "core/ops.h"

enum {                             /* how a path is meant */
       DF_ROUTE_NOFOLLOW = 1 << 0, /* a final symlink is the object */
       DF_ROUTE_PARENT = 1 << 1,   /* the last component is an entry to make, remove or move */
       DF_ROUTE_EMPTY = 1 << 2,    /* AT_EMPTY_PATH: "" is dirfd itself */
};

enum df_last { /* what the last component is; matters to those that make, remove or move it */
               DF_LAST_NAME,
               DF_LAST_DOT,
               DF_LAST_DOTDOT,
               DF_LAST_ROOT, /* the root of a mount: a mountpoint */
};

/* One path of a call. */
struct df_leg {
    struct df_mount *mount;
    struct df_where where; /* name points into path, joined or text */
    int dirfd;
    const char *path; /* where to go on: the caller's string or joined */
    unsigned flags;   /* DF_ROUTE_* */
    uint32_t links;   /* symlinks followed up to `path` */
    enum df_last last;
    enum df_last walked;   /* DOT or DOTDOT if the caller's path ended so, also when it goes on
                              elsewhere; else NAME */
    bool slash;            /* the path ended in '/' or "." */
    bool left;             /* path is the rest of a way that left a mount */
    struct df_file *base;  /* the file of a virtual dirfd, with a reference, or (of a call with
                              one path) in use */
    char joined[PATH_MAX]; /* a path the core has put together; uninitialised */
    char text[PATH_MAX];   /* canonical form when path is not; uninitialised */
};

struct df_way {
    struct df_thread *thread; /* NULL: df_way_begin() failed */
    struct df_fs *fs;         /* of leg.mount; NULL: not routed yet */
    struct df_leg leg;
    struct df_call call;
};

/* For rename and link. */
struct df_way_pair {
    struct df_thread *thread;
    struct df_fs *fs; /* of the mount both legs are in; NULL: not routed yet */
    struct df_leg from, to;
    struct df_call call;
};

/* Enters the gate. Returns 0 or -errno, which df_way_next() takes as the end of the loop. */
ssize_t df_way_begin(struct df_way *way, int dirfd, const char *path, unsigned flags);

/* Slow half of df_way_next(): first routing, late completion, leaving. */
bool df_way_step(struct df_way *way, ssize_t *ret);

/* True: way->fs and way->leg.where are ready for the op. False: *ret is the call's result. */
static inline bool df_way_next(struct df_way *way, ssize_t *ret)
{
    if (DF_LIKELY(way->fs && *ret != DF_LEAVE && *ret != DF_PENDING))
        return false;
    return df_way_step(way, ret);
}

/* Leaves the gate, gives references back. Returns ret. */
ssize_t df_way_end(struct df_way *way, ssize_t ret);

/* As df_way_begin(); no second path is found when it is routed, after the first. */
ssize_t df_way_pair_begin(struct df_way_pair *way, int from_dirfd, const char *from,
                          unsigned from_flags, int to_dirfd, const char *to, unsigned to_flags);
/* As df_way_next; -EXDEV when the two lead to different file systems. */
bool df_way_pair_next(struct df_way_pair *way, ssize_t *ret);

/*
 * After -EXDEV: looks whether the directory of one of the two (the object itself, if a final
 * symlink is to be followed) lies outside the mount its path leads to at first. True: it does;
 * *ret is 0 and the loop goes on from there.
 */
bool df_way_pair_settle(struct df_way_pair *way, ssize_t *ret);
ssize_t df_way_pair_end(struct df_way_pair *way, ssize_t ret);

/* ---- for doors ---- */

/*
 * After DF_NOT_OURS: the absolute path to give to the kernel in place of the call's first
 * (which == 0) or second (1) path, with AT_FDCWD as its dirfd; NULL: the caller's own. It is set
 * when a symlink or ".." led from a mount to the real file system. Valid until this thread's next
 * call.
 */
DF_PRIVATE_EXPORT const char *df_left_path(int which);

/*
 * A real symlink may lead into a mount. The kernel does not know and says ENOENT or ENOTDIR. A
 * door whose real call failed with `error` (positive) calls this; if it returns true the door makes
 * the same df_call_* again, in which real symlinks are followed by components, then
 * df_retry_end(). DF_NOT_OURS from the second call means: the first error stands. Pairs nest: a
 * signal's handler of Python may run within the second call.
 */
DF_PRIVATE_EXPORT bool df_retry_begin(int error);
DF_PRIVATE_EXPORT void df_retry_end(void);

#endif
