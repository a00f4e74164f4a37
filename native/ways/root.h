/*
 * root.h - the root directory of the process when it is in a mount: chroot(2).
 *
 * It is an open directory of the client, held as a working directory by its handle is (cwd.h): fork
 * and threads share it as they share that, execve(2) tells the next program the handle. The
 * kernel's root is another one, and stays as it was: what the core itself needs is found as ever.
 *
 * Every path of the program is walked by steps.h then, from the root (DFI_FD_ROOT) or from where it
 * begins, so that no link and no ".." leads past the root; what comes out begins at that
 * descriptor. Names of directories, as of the working directory, are the same for all processes of
 * the run; they are told with the root's taken off.
 */
#ifndef DF_WAYS_ROOT_H
#define DF_WAYS_ROOT_H

#include "client/record.h"
#include "ways/way.h"

/* The handle of the root; 0: that of the kernel. */
static inline uint64_t dfi_root_of(const struct dfi_files *files)
{
    return __atomic_load_n(&files->root.handle, __ATOMIC_RELAXED);
}

/* From here on to dfi_root_end() DFI_FD_ROOT is it, whatever other threads do. False, and nothing
 * to end: that of the kernel. */
bool dfi_root_begin(struct dfi_record *record);
void dfi_root_end(struct dfi_record *record);

/* The same until the end of the way. */
bool dfi_root_begin_way(struct dfi_way *way);

/* An open directory of this client, by whose handle the root goes from now on; the reference is the
 * root's. 0: back to that of the kernel. False: there is no memory. */
bool dfi_root_set(struct dfi_files *files, uint64_t handle);

/* For a child that shares our memory; for the next program. After dfi_fd_room(). */
void dfi_root_inherit(struct dfi_files *files, uint64_t handle);

/* How much of a physical absolute name is that of the root: all of it is below or at the root. 0:
 * it is outside. After dfi_root_begin(). */
size_t dfi_root_covers(struct dfi_record *record, const char *name, size_t len);

/* The name of what is called `below` from the root ("" or "/a/b"); how much of it is the root's. 0:
 * it has none. */
long dfi_root_join(struct dfi_record *record, const char *below, char out[PATH_MAX]);

/* Whether other mounts lie below it. */
bool dfi_root_has_mounts(struct dfi_record *record);

/* What the program is to see of such a name, in place; its length. */
long dfi_root_show(struct dfi_record *record, char name[PATH_MAX], size_t len);

/* ---- way_root.c: paths of a process with such a root ---- */

/* What the leg's text leads to, after dfi_root_begin_way(). 0 or -errno. */
int dfi_way_take_root(struct dfi_way *way, struct dfi_leg *leg);

/* A path from that directory (AT_FDCWD, the kernel's or one of ours): what it leads to, in terms of
 * native/core. `follows`: through a link at its end. After dfi_root_begin(). 0, DF_NOT_OURS: the
 * kernel's, as it is; or -errno. */
long dfi_root_place(struct dfi_record *record, int *dirfd, char path[PATH_MAX], bool follows);

/* The same by itself, as an absolute name of all processes, from the working directory. Without a
 * root in a mount DF_NOT_OURS. */
long dfi_root_name(struct dfi_record *record, char path[PATH_MAX], bool follows);

#endif
