/*
 * batch.h - what the two halves of read_many share: a run of requests, opened and closed together.
 *
 * A run is short, so that a million paths need neither a million descriptors nor a large array, and
 * long enough that a plugin can overlap its reads.
 */
#ifndef DF_PYTHON_BATCH_H
#define DF_PYTHON_BATCH_H

#include "python/fast.h"

enum { DF_BATCH_RUN = 64 };

/* One request. */
struct df_piece {
    PyObject *file;      /* as given, a new reference: a path or a descriptor */
    struct df_path path; /* of it; object NULL: a descriptor */
    off_t offset;        /* bytes */
    Py_ssize_t size;     /* bytes; -1: to the end of the file */
    bool whole;          /* it was -1; `size` is now what fstat said */
    bool read;           /* already; `result` says how it went */
    bool opened;         /* `fd` is ours to close */
    int fd;              /* or a negative errno */
    PyObject *failure;   /* the exception, when opening failed in another way; owned */
    void *buf;
    ssize_t result; /* bytes read, or a negative errno */
};

/* Reads a request: a path or descriptor, or (file, offset, length). Returns -1 with an exception.
 */
int df_piece_read(struct df_piece *piece, PyObject *request);

/* Opens those of a run that are paths and finds the size of those to be read whole. What fails is
 * in `fd`, `result` or `failure` of its piece. Returns -1 with an exception that ends the batch. */
int df_piece_open(struct df_piece *pieces, Py_ssize_t count);

/* Closes what was opened. The GIL may be released. */
void df_piece_close(struct df_piece *pieces, Py_ssize_t count);

/* Gives references back. */
void df_piece_clear(struct df_piece *pieces, Py_ssize_t count);

#endif
