/*
 * known.h - attributes that shared memory has, from there to the program.
 */
#ifndef DF_SYSCALLS_KNOWN_H
#define DF_SYSCALLS_KNOWN_H

#include <sys/stat.h>

#include "syscalls/way.h"

/* stat of a path that was taken from the program; `to` is the program's memory, `flags` are AT_*.
 * True: answered, by *ret. False: nothing was decided, and what is at `to` may be anything. */
bool dfi_known_stat(const struct dfi_way *way, struct stat *to, int flags, long *ret);

#endif
