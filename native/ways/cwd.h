/*
 * cwd.h - the working directory when it is in a mount.
 *
 * The kernel's working directory is then <shadow>/t/<path>, a real directory made for it: fork,
 * exec and threads share it as always, and whoever asks the kernel where it is learns the path. A
 * directory of a mount that is renamed or removed takes its shadow along.
 *
 * One that is removed while somebody stands there is its shadow from then on, which is an empty
 * directory without a name, too; from it only its parent is reached.
 *
 * A directory whose name is too long for a shadow, or that has none when it is entered, is one by
 * its handle: the server has it open, the process counts as one that has, and the kernel's working
 * directory is <shadow>/c/0.<handle>, gone as soon as it is entered. Paths begin at it as at a
 * descriptor.
 *
 * Below <shadow>/t there are also the directories above a mountpoint that do not exist on disk;
 * what finds nothing on disk looks there (way_missing.c), so that they can be listed and entered.
 */
#ifndef DF_WAYS_CWD_H
#define DF_WAYS_CWD_H

#include "client/files.h"
#include "client/record.h"

/* At start: makes the directories above mountpoints. */
void dfi_cwd_begin(struct dfi_files *files);

/* The name of a directory as programs are to see it: without what is ours before it. Changes name
 * in place (no NUL is needed, one is not added); returns its length. */
size_t dfi_cwd_shown(const struct dfi_files *files, char *name, size_t len);

/* Relative to a working directory of ours: puts both into out (which may be where path lies) and
 * returns 1. 0: the kernel's, as what is asked of a directory that was removed. -ENOENT: above such
 * a one nothing is left; -ENAMETOOLONG: also where it is one by its handle. */
int dfi_cwd_join(struct dfi_files *files, const char *path, char out[PATH_MAX]);

/* What the kernel calls it, as programs are to see it: of one that was removed. The length or
 * -errno.
 */
long dfi_cwd_show(const struct dfi_files *files, char name[PATH_MAX]);

/* chdir(2) to an absolute path, in a mount or above one; physical. It has a shadow, and if that was
 * made just now, has been seen to be there since. 0 or -errno; -ENOENT: it was renamed. */
long dfi_cwd_set(struct dfi_files *files, const char *path, size_t len);

/* chdir(2) to an open directory of this client, which is the working directory's now. 0 or -errno.
 */
long dfi_cwd_set_open(struct dfi_files *files, uint64_t handle);

/* That directory has a shadow from now on, which follows when it, or one above it, is renamed, and
 * the run counts that. 1; 0: it had one; or -errno. */
long dfi_cwd_expect(const struct dfi_files *files, const char *path, size_t len);

/* Whether it is a directory of a mount, as far as other threads leave it alone. */
static inline bool dfi_cwd_is_ours(const struct dfi_files *files)
{
    return __atomic_load_n(&files->cwd.ours, __ATOMIC_RELAXED);
}

/* The handle by which the working directory is one; 0: it has a name. */
static inline uint64_t dfi_cwd_handle(const struct dfi_files *files)
{
    return __atomic_load_n(&files->cwd.handle, __ATOMIC_RELAXED);
}

/* Makes that directory DFI_FD_HERE of the record (record.h), for as long as this lasts: another
 * thread may be about to leave it. False: it has a name. */
bool dfi_cwd_take(struct dfi_record *record);

/* The kernel has changed it: where to, is asked. */
void dfi_cwd_changed(struct dfi_files *files);

/* For a child that shares our memory. */
void dfi_cwd_copy(struct dfi_cwd *to, struct dfi_cwd *from);

/* Whether a directory with the last name of the path, wherever it is, may have a shadow. False:
 * what that is called has none, and the next three need not be asked. */
bool dfi_cwd_may_have(const struct dfi_files *files, const char *path);

/* Around a rename after which shadows may have to follow. */
void dfi_cwd_moves(const struct dfi_files *files);
void dfi_cwd_has_moved(const struct dfi_files *files);

/* How many renames shadows have followed; and whether it was one more since, or is about to be,
 * which is waited for. */
uint32_t dfi_cwd_count_moved(const struct dfi_files *files);
bool dfi_cwd_moved_since(const struct dfi_files *files, uint32_t count);

/* Names of a mount have changed, absolute and physical paths: the shadows follow. */
void dfi_cwd_renamed(struct dfi_files *files, const char *from, const char *to, unsigned flags);

/* Before a directory is removed, by such a path: a descriptor of its shadow, which is the caller's
 * to close; -ENOENT: nobody has ever stood there. And after: who stands there goes on in the
 * shadow, which is removed, too, and has the directory's owner and mode. */
long dfi_cwd_leave(const struct dfi_files *files, const char *path);
void dfi_cwd_removed(struct dfi_files *files, const char *path, long shadow, const struct stat *st);

/* <shadow>/t/<path>. 0 or -ENAMETOOLONG. */
int dfi_cwd_shadow(const struct dfi_files *files, const char *path, size_t len, char out[PATH_MAX]);

#endif
