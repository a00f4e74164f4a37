/*
 * error.c - from a negative errno to the OSError that `os` would raise.
 */
#include <errno.h>

#include "python/fast.h"

PyObject *df_error_raise(ssize_t result, PyObject *filename, PyObject *second)
{
    if (PyErr_Occurred())
        return NULL;
    errno = (int)-result;
    return PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, filename, second);
}
