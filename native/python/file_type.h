/*
 * file_type.h - the raw file type: its fields, and making one.
 *
 * The fields are protected by the GIL. A call that releases it works on a copy of `fd`.
 */
#ifndef DF_PYTHON_FILE_TYPE_H
#define DF_PYTHON_FILE_TYPE_H

#include <sys/stat.h>

#include "python/fast.h"

enum { /* how a file was opened */
       DF_FILE_MODE_READ = 1 << 0,
       DF_FILE_MODE_WRITE = 1 << 1,
       DF_FILE_MODE_APPEND = 1 << 2,
       DF_FILE_MODE_CREATE_NEW = 1 << 3,
};

struct df_raw_file {
    int fd;        /* virtual descriptor; -1: closed */
    int open_mode; /* DF_FILE_MODE_* */
    char closefd;
    char finalizing;      /* _io's finalizer runs: warn in close() */
    signed char seekable; /* -1: not known yet */
};

/* Where the fields begin in an object: behind those of _io._RawIOBase. Set once. */
extern Py_ssize_t df_file_type_offset;

static inline struct df_raw_file *df_raw_file_of(PyObject *self)
{
    return (struct df_raw_file *)((char *)self + df_file_type_offset);
}

/*
 * A FileIO for a virtual descriptor, which it closes when `closefd`; `name` becomes its attribute
 * and stands in errors. *block_size receives st_blksize. On failure the descriptor stays the
 * caller's. A directory is EISDIR.
 */
PyObject *df_file_type_new(int fd, PyObject *name, int open_mode, bool closefd,
                           Py_ssize_t *block_size);

/* Methods of the end, in file_type.c, for the table in file_io.c. */
PyObject *df_file_type_close(PyObject *self, PyObject *unused);
PyObject *df_file_type_dealloc_warn(PyObject *self, PyObject *source);
PyObject *df_file_type_getstate(PyObject *self, PyObject *unused);

/* The same for what is known to be no directory: the object alone. The descriptor is its own. */
PyObject *df_file_type_make(int fd, PyObject *name, int open_mode, bool closefd);

/* 0 and what fstat() says, or -1 with an exception: EISDIR, or its error. */
int df_file_type_check(int fd, PyObject *name, struct stat *st);

/* ---- file_io.c ---- */

/* All bytes from the position to the end, of which there are likely as many as expected; -1: it is
 * looked up. */
PyObject *df_file_io_read_all(int fd, Py_ssize_t expected);

/* A failed read as io has it: None for EAGAIN. */
PyObject *df_file_io_bytes_or_none(PyObject *bytes);

extern PyMethodDef df_file_io_methods[];

/* The descriptor, or -1 with an exception: closed, or not open for `need` (DF_FILE_MODE_*). */
int df_file_io_descriptor(PyObject *self, int need);

#endif
