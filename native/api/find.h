/*
 * find.h - which library the first word of a command line names.
 */
#ifndef DF_API_FIND_H
#define DF_API_FIND_H

#include <limits.h>
#include <stddef.h>

#define DF_NAME_OF_SERVER '@' /* before the name of a server that is there */

/*
 * The file to load for argv: `library` where the caller names one, else what argv[0] says: a path,
 * or the name of a file system that we ship. "" for the name of a server. Returns 0; -EINVAL: there
 * is no first word, -ENOENT: no such file system, -ENAMETOOLONG. Then `message`, of `size` bytes,
 * says what would help; it may be NULL.
 */
int df_find_library(const char *library, int argc, char *const argv[], char out[PATH_MAX],
                    char *message, size_t size);

#endif
