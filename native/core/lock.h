/*
 * lock.h - byte-range and flock(2) locks kept by the core, for file systems that have none of
 * their own: as the kernel does for FUSE. Keyed by mount and inode number. Those of files that have
 * placeholders are the kernel's (placed.h).
 */
#ifndef DF_CORE_LOCK_H
#define DF_CORE_LOCK_H

#include <stdint.h>

#include "core/file.h"
#include "core/ops.h"

struct df_call;

/* fcntl(2) locks: F_SETLK, F_SETLKW (lock->wait), F_GETLK (lock->test); POSIX and OFD differ only
 * in the owner. Sleeps outside the gate. Returns 0 or -EAGAIN, -EINTR, -EDEADLK, -ENOLCK, or what
 * getattr says. */
int df_lock_range(struct df_call *call, struct df_file *file, struct df_lock *lock);

/* flock(2): LOCK_SH, LOCK_EX, LOCK_UN, with LOCK_NB. 0, -EWOULDBLOCK, -EINTR, -ENOLCK, or what
 * getattr says. */
int df_lock_flock(struct df_call *call, struct df_file *file, int operation);

/* close(2): the POSIX locks of `owner` on this inode go. */
void df_lock_close(struct df_call *call, struct df_file *file, uint64_t owner);

/* The last reference is gone: OFD and flock locks of this file go. */
void df_lock_release(struct df_file *file);

void df_lock_lock_all(void); /* all shards, for fork.c */
void df_lock_unlock_all(void);
void df_lock_after_fork(uint64_t parent_owner); /* POSIX locks are not inherited: fork(2) */

/* The owner under which a file's OFD and flock locks stand. */
uint64_t df_lock_file_owner(const struct df_file *file);

#endif
