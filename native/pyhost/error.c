/*
 * error.c - what an exception of an operation is to its caller: an errno; or, if the caller itself
 * is meant, the exception.
 *
 * A signal is handled in the main thread, wherever that is in Python: in the middle of an
 * operation, if it has made the call. What the handler raises then is for whoever called. So it is
 * run again there: the operation ends with EINTR, and nothing of Python may run before that.
 */
#include <errno.h>
#include <signal.h>

#include "pyhost/pyhost.h"

enum { ERRNO_MAX = 4095 };

static bool is_errno(long number)
{
    return number > 0 && number <= ERRNO_MAX;
}

/* The file systems' own way of saying it, and most of all exceptions: no need to ask the helper. 0:
 * it is still set. */
static int errno_of(PyObject *own)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(own))
        return 0;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *number = value ? PyObject_GetAttrString(value, "errno") : NULL;
    long error = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    PyErr_Restore(type, value, traceback);
    if (!is_errno(error))
        return 0;
    PyErr_Clear();
    return (int)error;
}

/* helper.report(operation, exception[, result]): the errno, or minus the number of a signal. */
static long ask_helper(PyObject *helper, const char *operation, PyObject *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *number = value ? PyObject_CallMethod(helper, "report", result ? "sOO" : "sO",
                                                   operation, value, result)
                             : NULL;
    long said = number ? PyLong_AsLong(number) : EIO;
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(helper);
        said = EIO;
    }
    Py_XDECREF(number);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return said;
}

int df_error_take(PyObject *own, PyObject *helper, const char *operation, PyObject *result)
{
    int error = errno_of(own);
    long said;
    if (error)
        return error;
    said = ask_helper(helper, operation, result);
    if (said >= 0 || PyErr_SetInterruptEx((int)-said) < 0)
        return is_errno(said) ? (int)said : EIO;
    return EINTR;
}
