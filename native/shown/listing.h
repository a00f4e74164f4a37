/*
 * listing.h - what differs from the kernel's own listings of real directories: mountpoints that are
 * not on disk are in those of the directories that they are in, and descriptors of ours and the
 * run's own directory are in none.
 */
#ifndef DF_SHOWN_LISTING_H
#define DF_SHOWN_LISTING_H

#include "client/files.h"

/* getdents64(2) of a directory of the kernel's, without what is ours. */
long dfi_listing_read(const struct dfi_files *files, int fd, unsigned long program, size_t size);

/* What stays of `got` bytes of a listing without the run's own directory, moved up. */
long dfi_listing_without_run(const struct dfi_files *files, int fd, unsigned long program,
                             long got);

/*
 * What follows a getdents64(2) of a directory of the kernel's, which has read `got` bytes into the
 * program's buffer of `size` bytes. At the end of the directory: the bytes of more entries in
 * there, once; else what was got.
 */
long dfi_listing_next(struct dfi_files *files, int fd, long got, unsigned long program,
                      size_t size);

#endif
