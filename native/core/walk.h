/*
 * walk.h - asks the kernel where a path leads that its text alone does not tell.
 */
#ifndef DF_CORE_WALK_H
#define DF_CORE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* dir and rest, with one '/' between if there is a rest. Either may lie in out. 0 or
 * -ENAMETOOLONG. */
int df_walk_join(char out[PATH_MAX], const char *dir, size_t dir_len, const char *rest);

/* A physical name of *len bytes, "" or "/a/b", goes one component down (0 or -ENAMETOOLONG), or up.
 */
int df_walk_down(char done[PATH_MAX], size_t *len, const char *name, size_t name_len);
void df_walk_up(char done[PATH_MAX], size_t *len);

/*
 * Follows `path` (absolute, in no mount by its text) through real symlinks and ".."; a final
 * symlink if `follow`. Returns 0 when it came to a mount, with the path to go on with in out; else
 * DF_NOT_OURS, with out as it was, or -ELOOP. Counts in *links. `path` may be out. Inside the gate;
 * errno stays.
 */
int df_walk_real(const char *path, bool follow, char out[PATH_MAX], uint32_t *links);

/*
 * The same where it ends on disk, or at a directory above a mountpoint that is not there: its
 * length, with its name in out; else -1. `path` may be out.
 */
ssize_t df_walk_out(const char *path, bool follow, char out[PATH_MAX]);

/* readlink(2): the length of the link's text, at most PATH_MAX - 1 bytes without a NUL, or -errno
 * (EINVAL: no symlink). errno stays. */
ssize_t df_walk_link(const char *path, char target[PATH_MAX]);

/* Whether there is something real at that path; `flags` are AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH.
 * 0 or -errno. errno stays. */
int df_walk_real_entry(int dirfd, const char *path, int flags);

/* The same for the directory in which the path's last component is, or would be. */
int df_walk_real_parent(int dirfd, const char *path);

/* The kernel's name of a real directory (or AT_FDCWD). Returns its length, 0 for "/"; -1 when it
 * has none that can be used. errno stays. */
ssize_t df_walk_directory_name(int dirfd, char out[PATH_MAX]);

/* A path as an absolute one; one that is not begins at that directory. `path` does not lie in out.
 * 0, -ENAMETOOLONG, or -ENOENT: the directory has no such name. */
int df_walk_absolute(int dirfd, const char *path, char out[PATH_MAX]);

#endif
