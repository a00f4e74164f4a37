/*
 * files_private.h - between files.c (start and end), files_child.c (children) and files_next.c (the
 * next program).
 */
#ifndef DF_SYSCALLS_FILES_PRIVATE_H
#define DF_SYSCALLS_FILES_PRIVATE_H

#include "client/files.h"

/* ---- files.c ---- */

/* Moves a descriptor out of the program's way, where the next program finds it. Its new number, or
 * a negative errno. */
int dfi_files_keep_fd(struct dfi_process *process, int fd);

/* df_link.meet: a process that is nobody becomes a client of the server. */
void dfi_files_meet(struct df_link *link);

/* Mappings that the server counts as uses of files. */
size_t dfi_files_count_mappings(const struct dfi_files *files);

/* Some descriptor or the working directory is a file of a mount. */
bool dfi_files_any(const struct dfi_files *files);

/* Tells the server all files that the process has: it forgets others that it gave it. 0 or a
 * negative errno; -ENOTCONN: the server is gone. */
long dfi_files_keep(struct dfi_files *files, bool executed);

/* Adds to the counts of the run what the program has asked of mounts. */
void dfi_files_count_trips(struct df_link *link);

/* ---- files_next.c ---- */

/* Goes on with what dfi_files_exec() told in the program before. 0 or a negative errno. */
long dfi_files_begin_again(struct dfi_process *process, const char *text, size_t size);

#endif
