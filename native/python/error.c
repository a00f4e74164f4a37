/*
 * error.c - from a negative errno to the OSError that `os` would raise.
 */
#include <errno.h>

#include "python/fast.h"

static PyObject *explains; /* called with the OSError of an ENOTCONN, before it is raised */

static PyObject *explain_by(PyObject *module, PyObject *function)
{
    (void)module;
    df_fast_replace(&explains, function);
    Py_RETURN_NONE;
}

PyMethodDef df_error_methods[] = {
    {"explain_by", explain_by, METH_O,
     PyDoc_STR("explain_by(function, /)\n--\n\nFrom now on function(error) is called with each "
               "OSError of ENOTCONN before it is raised: it may add a note.")},
    {NULL, NULL, 0, NULL},
};

/* Whatever goes wrong in it, the error itself is what the caller has to see. */
static void explain(void)
{
    PyObject *type, *error, *trace;

    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    Py_XDECREF(PyObject_CallFunctionObjArgs(explains, error, NULL));
    PyErr_Restore(type, error, trace);
}

PyObject *df_error_raise(ssize_t result, PyObject *filename, PyObject *second)
{
    if (PyErr_Occurred())
        return NULL;
    errno = (int)-result;
    PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, filename, second);
    if (result == -ENOTCONN && explains)
        explain();
    return NULL;
}
