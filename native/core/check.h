/*
 * check.h - questions about an entry that a call must answer before it refuses: Linux reports a
 * missing directory or an existing entry before it says EROFS, EXDEV, EISDIR.
 * Only refusals ask; a call that goes well pays nothing.
 */
#ifndef DF_CORE_CHECK_H
#define DF_CORE_CHECK_H

#include <errno.h>

#include "core/call.h"
#include "core/mount.h"
#include "core/route.h"

/*
 * Looks at what `where` names, whatever its flags mean to the op: a final symlink is followed if
 * `follow`. Returns 0: it exists, *st is filled; 1: it does not, but its directory does; or the
 * error (or DF_LEAVE) of the way there.
 */
ssize_t df_check_entry(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       bool follow, struct stat *st);

/* 0 if the directory that holds the entry exists, else the error (or DF_LEAVE, to the entry). */
ssize_t df_check_parent(struct df_fs *fs, struct df_call *call, const struct df_where *where);

/* 0 if `where`, whose path ended in "." or "..", is a directory; else the error (or DF_LEAVE) of
 * the way into it, on which symlinks are followed. */
ssize_t df_check_walked(struct df_fs *fs, struct df_call *call, const struct df_where *where);

/*
 * The mode of a new file, without S_ISGID if that would give the file to a group the caller is not
 * in: vfs_prepare_mode(), mode_strip_sgid() of the kernel. Asks for the directory only if the mode
 * has S_ISGID and S_IXGRP. Directories keep it.
 */
mode_t df_check_new_mode(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         mode_t mode);

/* The same of a file that is made in `directory` without a name: vfs_tmpfile() of the kernel. */
mode_t df_check_nameless_mode(struct df_fs *fs, struct df_call *call,
                              const struct df_where *directory, mode_t mode);

/* The mode without the bits that writing, truncating or chown takes from it (setuid, and setgid
 * where the group may execute); equal to `mode` when there is nothing to take. */
mode_t df_check_strip(mode_t mode);

/*
 * What Linux finds wrong with the words of a call (flags, a mode, a size) it says before anything
 * of the path. `error` is that, or 0, and `ret` the result of the call by its path. Where the path
 * is not ours the kernel judges: it may know more flags.
 */
static inline ssize_t df_check_words(int error, ssize_t ret)
{
    return DF_LIKELY(error == 0) || ret == DF_NOT_OURS ? ret : error;
}

/* EINVAL if there are others than `known` among the flags. */
static inline int df_check_flags(int flags, int known)
{
    return DF_LIKELY(!(flags & ~known)) ? 0 : -EINVAL;
}

static inline bool df_check_read_only(const struct df_mount *mount)
{
    return (mount->flags & DF_ATTACH_READONLY) != 0;
}

#endif
