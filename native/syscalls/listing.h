/*
 * listing.h - mountpoints that are not on disk, in the listings of the real directories they are
 * in.
 */
#ifndef DF_SYSCALLS_LISTING_H
#define DF_SYSCALLS_LISTING_H

#include "syscalls/files.h"

/*
 * What follows a getdents64(2) of a directory of the kernel's, which has read `got` bytes into the
 * program's buffer of `size` bytes. At the end of the directory: the bytes of more entries in
 * there, once; else what was got.
 */
long dfi_listing_next(struct dfi_files *files, int fd, long got, unsigned long program,
                      size_t size);

#endif
