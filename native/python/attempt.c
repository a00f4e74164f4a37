/*
 * attempt.c - a raw call for directfuse/_call.py, with what has to be asked and set within it: in
 * Python a signal's handler may run between any two steps, and its own calls would change that.
 */
#include <errno.h>

#include "core/route.h"
#include "python/fast.h"

/* Numbers of what is given to attempt(). */
enum { ERROR, FUNCTION, ARGUMENTS };

static int call(PyObject *given, long *result)
{
    PyObject *arguments = PyTuple_GetSlice(given, ARGUMENTS, PyTuple_Size(given));
    PyObject *number =
        arguments ? PyObject_Call(PyTuple_GetItem(given, FUNCTION), arguments, NULL) : NULL;
    *result = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(arguments);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

/* Following real symlinks where the kernel could not, if it has failed with `error`. */
static int call_after(PyObject *given, int error, long *result)
{
    *result = DF_NOT_OURS;
    if (error && !df_retry_begin(error))
        return 0;
    int failed = call(given, result);
    if (error)
        df_retry_end();
    return failed;
}

/* No allocation before both are copied may be one that collects garbage: that makes calls. */
static PyObject *with_left_paths(long result)
{
    const char *left[] = {df_left_path(0), df_left_path(1)};
    PyObject *first = left[0] ? PyBytes_FromString(left[0]) : Py_NewRef(Py_None);
    PyObject *second = left[1] ? PyBytes_FromString(left[1]) : Py_NewRef(Py_None);
    if (first && second)
        return Py_BuildValue("lNN", result, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return NULL;
}

static PyObject *attempt(PyObject *module, PyObject *given)
{
    (void)module;
    long result;
    int error = (int)PyLong_AsLong(PyTuple_GetItem(given, ERROR));
    do {
        if (call_after(given, error, &result) < 0)
            return NULL;
    } while (result == -EINTR && PyErr_CheckSignals() == 0);
    return PyErr_Occurred() ? NULL : with_left_paths(result);
}

PyMethodDef df_attempt_methods[] = {
    {"attempt", attempt, METH_VARARGS,
     PyDoc_STR("attempt(error, function, *arguments)\n--\n\nThe result of a raw call; after "
               "NOT_OURS also where its first and second path have left a mount, or None. error: "
               "0, or the errno of the kernel for a path whose real symlinks may lead into a "
               "mount.")},
    {NULL, NULL, 0, NULL},
};
