/*
 * proc_maps.h - /proc/self/maps, where it tells of files of mounts.
 */
#ifndef DF_SHOWN_PROC_MAPS_H
#define DF_SHOWN_PROC_MAPS_H

#include "client/files.h"

/*
 * `fd` is what the kernel has opened by that path, read-only. If it is /proc/<pid>/maps or smaps of
 * this process or of one of its threads, and some of its memory shows files of mounts: another one
 * takes its place, that has their names, and device, inode and offset, in place of those of what
 * stands in for them, as proc(5) says. It is as of now, not of each read(2). Programs find their
 * functions by it: for a backtrace, say. The descriptor; or -errno, and fd is closed. Inside a
 * record.
 */
long dfi_proc_maps(struct dfi_files *files, const char *path, int fd);

#endif
