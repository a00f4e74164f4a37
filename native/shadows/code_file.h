/*
 * code_file.h - files of mounts that are executed, or mapped as a library's: a whole copy that all
 * who do so share, as they do the pages of the kernel's cache.
 *
 *   x/<mount>.<ino>.<id>.<written>   in the shadow directory; named as what is kept (shadow_kept.h)
 *
 * Nobody changes it. A file that is written to has other numbers, and its copy another name; who
 * runs the old one goes on with that. It is made by whoever wants the same bytes for the second
 * time: the first one takes a copy of its own, which costs less and is the only one of most files.
 */
#ifndef DF_SHADOWS_CODE_FILE_H
#define DF_SHADOWS_CODE_FILE_H

#include "client/files.h"

/* A descriptor of it, to read, for the caller to close (dfi_brief_close()). -ENOENT: there is none,
 * for whatever reason; who asks makes a copy, of `wanted` bytes. Where these are few of the file,
 * as of a library with debug information, none is made. */
long dfi_code_file(struct dfi_files *files, uint64_t handle, size_t wanted);

#endif
