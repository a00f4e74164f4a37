/*
 * scandir.h - what a scan, listdir and their entries share.
 */
#ifndef DF_PYTHON_SCANDIR_H
#define DF_PYTHON_SCANDIR_H

#include <dirent.h>

#include "python/fast.h"

enum { DF_SCAN_BUFFER = 32 << 10 }; /* bytes for one getdents; as glibc's opendir */

/* An open directory being read. */
struct df_reader {
    int fd;      /* -1: closed */
    size_t next; /* the next record in buffer */
    size_t used; /* bytes in buffer */
    char *buffer;
};

/* A directory entry. `directory` is the path given to scandir, NULL for a descriptor, whose number
 * is `dirfd`; `as_bytes` tells the type of name and path. */
PyObject *df_dir_entry_new(PyObject *directory, int dirfd, bool as_bytes,
                           const struct dirent64 *record);

/* That of an os.DirEntry, under the path of another way to its directory. */
PyObject *df_dir_entry_of_real(PyObject *directory, bool as_bytes, PyObject *entry);

#endif
