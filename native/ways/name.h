/*
 * name.h - what an open file of a mount is called by now.
 */
#ifndef DF_WAYS_NAME_H
#define DF_WAYS_NAME_H

#include "client/files.h"

/* Memory of PATH_MAX bytes for the name of a file that was opened, "" so far, which is kept for
 * all; NULL: there is no room. */
char *dfi_name_room(struct dfi_files *files, uint64_t handle);

/*
 * The absolute name of an open file, fd being what it is to native/core; inside a record. The
 * length, of a string, which is kept for all; -ENOENT: it has none, and out is the last one that is
 * known; -ENAMETOOLONG.
 */
long dfi_name_find(int fd, char out[PATH_MAX]);

/* The same as /proc/<pid>/fd shows it, with " (deleted)" behind what is no name any more. The
 * length; -ENOENT: nothing is known; -ENAMETOOLONG. */
long dfi_name_show(int fd, char out[PATH_MAX]);

#endif
