/*
 * linger.h - a placeholder outlives its close(2) for a moment, for the next open(2) to take it.
 *
 * To open, to place and to close a placeholder costs the kernel more than a file of a mount costs
 * the mount server. So the last close(2) of a file leaves its descriptor at its number. The next
 * open of a mount that would get this number takes it over. Before anybody could tell, it is
 * closed: before a call goes to the kernel that knows descriptors, or that may last. One that reads
 * or writes a file on disk knows no other descriptor than its own, and does not last.
 *
 * At most DFI_LINGER_MAX linger, in a process of one thread, each at the lowest number that was
 * free when it was closed, and only if its open file description in the kernel belongs to nothing
 * else: not to a child, a receiver or another descriptor, with no lock (of it, or of the process on
 * its file) and no property that was set.
 */
#ifndef DF_SHADOWS_LINGER_H
#define DF_SHADOWS_LINGER_H

#include "client/files.h"

/* A placeholder has been made, or taken over, by an open(2) with these flags. */
void dfi_linger_opened(struct dfi_files *files, int fd, struct df_ofd *ofd, int flags);

/* Whether the last descriptor of the file may linger in place of being closed; it does then. */
bool dfi_linger_closed(struct dfi_files *files, int fd, uint64_t handle);

/* The program has closed the descriptor of a file, or of the kernel's. */
void dfi_linger_freed(struct dfi_files *files, unsigned fd);

/* The placeholder that lingers at the lowest number, if an open(2) with these flags can use it;
 * else all are closed, and -ENOENT. */
long dfi_linger_take(struct dfi_files *files, const struct df_ofd *ofd, int flags);

/* All that lingers is closed. */
void dfi_linger_end(struct dfi_files *files);

/* The file's open file description has got something that outlasts the descriptor: it will not
 * linger. */
static inline void dfi_linger_never(struct df_ofd *ofd)
{
    __atomic_store_n(&ofd->placeholder, 0, __ATOMIC_RELAXED);
}

/* The same by handle; 0: of no file. */
void dfi_linger_never_at(const struct dfi_files *files, uint64_t handle);

/* The same of all files of the process: another process is to have them, too. */
void dfi_linger_shared(const struct dfi_files *files);

/* The same for a process that was executed: what it finds open may have record locks, too. */
void dfi_linger_inherited(struct dfi_files *files);

/* The process is to hold, or may hold, a record lock on the file, its own or that of a description:
 * every close(2) of it has to drop that at once. */
void dfi_linger_locked(struct dfi_files *files, const struct df_ofd *ofd);

#endif
