/*
 * steps.h - a path walked one component at a time, as path_openat() of the kernel walks it: for
 * what can only be said of each step. Those are the flags of openat2(2), and a root of the process
 * (root.h), at which absolute paths and links begin and ".." ends. Who else has to know where a
 * path ends walks so, too. Only the mount that a real path leads to is looked for by core/walk.h.
 *
 * The walk makes a name without links and dots. In mounts it asks those, outside the kernel.
 */
#ifndef DF_WAYS_STEPS_H
#define DF_WAYS_STEPS_H

#include "client/record.h"

#define DFI_STEPS_OUTSIDE (-1) /* dfi_steps.mount */

struct dfi_steps {
    struct dfi_record *record;
    uint64_t resolve;    /* RESOLVE_* */
    bool follows;        /* a link at the end of the path */
    bool makes;          /* a file at the end, if there is none */
    bool entry;          /* what is at the end is not looked at: it is to be made, removed or moved,
                            or is known to be no link */
    bool rooted;         /* the process has a root in a mount: record->root */
    bool nested;         /* other mounts lie below it */
    bool entered;        /* the way has been in a mount: the kernel cannot walk it */
    int mount;           /* that `done` is in */
    int dirfd;           /* of ours, that `done` begins at; AT_FDCWD: it is absolute */
    uint32_t links;      /* followed so far */
    size_t len, floor;   /* of done; and of the part that is not gone above */
    char done[PATH_MAX]; /* without links and dots: "", or "/a/b" */
    char rest[PATH_MAX]; /* still to go */
};

/* Takes the record, whether dfi_root_begin() has found a root, and the flags of openat2(2); a link
 * at the end of the path is to be followed. */
void dfi_steps_init(struct dfi_steps *s, struct dfi_record *record, bool rooted, uint64_t resolve);

/*
 * Walks a path from the root (that of the process, or of all), the working directory (AT_FDCWD) or
 * a descriptor (one of ours, DF_FD_BASE + n, or the kernel's). 0: to `done`, of which the last
 * component may be missing; in `rest` the slash is left that the path ended with. DF_NOT_OURS: the
 * kernel is to say; or -errno.
 */
long dfi_steps_walk(struct dfi_steps *s, int dirfd, const char *path);

/* After DF_NOT_OURS: the absolute path that is left for the kernel to go. 0 or -ENAMETOOLONG. */
long dfi_steps_left(const struct dfi_steps *s, char out[PATH_MAX]);

/* Whether it has come to a place below the root of the process. */
bool dfi_steps_inside(const struct dfi_steps *s);

/* `done` for native/core, which begins at dirfd. */
const char *dfi_steps_name(const struct dfi_steps *s);

#endif
