/*
 * fdinfo.h - what the kernel tells of descriptors, for those that are files of mounts.
 */
#ifndef DF_SHOWN_FDINFO_H
#define DF_SHOWN_FDINFO_H

#include "client/files.h"

/*
 * `fd` is what the kernel has opened, read-only. If it is /proc/<pid>/fdinfo/5 and its like, of a
 * file of a mount: another one takes its place, with position, flags and inode of the file (as they
 * are now) instead of those of what stands in for it. -errno, and fd is closed: there is no memory.
 */
long dfi_proc_fdinfo(const struct dfi_files *files, int fd);

#endif
