/*
 * dormant.h - file objects of open(path, "rb") and open(path, "r") whose layers are not made yet.
 */
#ifndef DF_PYTHON_DORMANT_H
#define DF_PYTHON_DORMANT_H

#include "python/file_type.h"

/* What io's layers are made of, when they are: references are borrowed by df_dormant_new(). */
struct df_dormant_plan {
    int fd;
    Py_ssize_t expected; /* bytes in the file, if they can be read at once */
    Py_ssize_t buffer_size;
    PyObject *name;
    PyObject *mode;     /* of a text file, as it was given; NULL: of bytes */
    PyObject *encoding; /* of a text file: None or a name; it means UTF-8 */
};

/* An io.BufferedReader or io.TextIOWrapper that owns the descriptor. On failure that stays the
 * caller's. */
PyObject *df_dormant_new(const struct df_dormant_plan *plan);

/* Whether a text file may be dormant: its encoding (NULL, None or a name) is UTF-8 here and now. */
bool df_dormant_is_utf8(PyObject *encoding);

#endif
