/*
 * args.c - arguments of operations, and numbers in their results.
 */
#include <limits.h>

#include "pyhost/pyhost.h"

PyObject *df_args_pack(int count, ...)
{
    PyObject *tuple = PyTuple_New(count);
    va_list list;

    va_start(list, count);
    for (int i = 0; i < count; i++) {
        PyObject *item = va_arg(list, PyObject *);
        if (tuple && item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_XDECREF(item);
        if (!item)
            Py_CLEAR(tuple);
    }
    va_end(list);
    return tuple;
}

PyObject *df_args_text(const char *text)
{
    return PyUnicode_DecodeFSDefault(text);
}

int df_args_unsigned(PyObject *value, const char *what, uint64_t max, uint64_t *out)
{
    PyObject *number = PyNumber_Index(value);
    if (!number) {
        PyErr_Format(PyExc_TypeError, "%s: an int was expected, not %R", what,
                     (PyObject *)Py_TYPE(value));
        return -1;
    }
    *out = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (*out == (uint64_t)-1 && PyErr_Occurred())
        return -1;
    if (*out <= max)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %llu is more than the %llu there can be", what,
                 (unsigned long long)*out, (unsigned long long)max);
    return -1;
}

const char *df_args_link(PyObject *target)
{
    const char *text = PyBytes_AsString(target);
    if (!text || PyBytes_Size(target) < PATH_MAX)
        return text;
    PyErr_Format(PyExc_ValueError, "readlink: a target has at most %d bytes, not %zd", PATH_MAX - 1,
                 PyBytes_Size(target));
    return NULL;
}
