/*
 * known.h - calls by path that are answered by the attributes that shared memory has.
 */
#ifndef DF_WAYS_KNOWN_H
#define DF_WAYS_KNOWN_H

#include <sys/stat.h>

#include "ways/way.h"

/* stat of a path that was taken from the program; `to` is the program's memory, `flags` are AT_*.
 * True: answered, by *ret. False: nothing was decided, and what is at `to` may be anything. */
bool dfi_known_stat(const struct dfi_way *way, struct stat *to, int flags, long *ret);

/* access(2) of such a path. False: nothing was decided, for example because it is not permitted. */
bool dfi_known_access(const struct dfi_way *way, int mode, int flags, long *ret);

#endif
