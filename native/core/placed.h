/*
 * placed.h - locks that the kernel keeps on placeholders: of files that programs beside this
 * library lock too, on the same ones (docs/decisions/072).
 *
 * A placeholder of a df_file is a descriptor for its open file description alone: OFD locks and
 * flock(2) locks belong to that, and POSIX locks to the process, as with any real file; so waiting,
 * EDEADLK, l_pid, fork and the end of a process are the kernel's business. What is not: closing any
 * of our descriptors of a file drops the process's POSIX locks on it, which is done here.
 */
#ifndef DF_CORE_PLACED_H
#define DF_CORE_PLACED_H

#include "core/call.h"
#include "core/file.h"

struct df_lock_keeper;

/* True if locks of the file that are left to the core are the kernel's. */
static inline bool df_placed(const struct df_file *file)
{
    return file->far && file->far->place;
}

/* Of these. `range` and `flock` ask for the placeholder if there is none yet, and sleep outside the
 * gate: 0 or what fcntl(2) and flock(2) say; -ENOLCK: there is no placeholder to be had, -ENOTCONN.
 * `close`: the process's POSIX locks on this inode go. `release`: the placeholder goes, here. */
extern const struct df_lock_keeper df_placed_keeper;

void df_placed_lock(void); /* the list, for fork.c */
void df_placed_unlock(void);
void df_placed_after_fork(void);

#endif
