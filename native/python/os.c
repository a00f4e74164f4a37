/*
 * os.c - the function of `os`, for paths and descriptors that are not ours and for arguments we do
 * not understand: its behaviour, exceptions and audit events are then the operating system's own.
 */
#include <errno.h>

#include "core/route.h"
#include "python/fast.h"

static PyObject *positional_tuple(const struct df_args *args)
{
    PyObject *tuple = PyTuple_New(args->count);
    for (Py_ssize_t i = 0; tuple && i < args->count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(args->values[i]));
    return tuple;
}

/* NULL with no exception: there are no keywords. */
static PyObject *keyword_dict(const struct df_args *args)
{
    if (!args->names)
        return NULL;
    PyObject *dict = PyDict_New();
    Py_ssize_t count = PyTuple_Size(args->names);
    for (Py_ssize_t i = 0; dict && i < count; i++) {
        PyObject *key = PyTuple_GetItem(args->names, i);
        if (PyDict_SetItem(dict, key, args->values[args->count + i]) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *call_with_keywords(const struct df_args *args)
{
    PyObject *tuple = positional_tuple(args);
    PyObject *dict = keyword_dict(args);
    PyObject *result = NULL;
    if (tuple && !PyErr_Occurred())
        result = PyObject_Call(args->signature->os_function, tuple, dict);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

PyObject *df_os_call(const struct df_args *args)
{
    PyObject *function = args->signature->os_function;
    PyObject *const *v = args->values;
    if (PyErr_Occurred())
        return NULL;
    if (args->names)
        return call_with_keywords(args);
    switch (args->count) { /* the limited API has a call without a tuple only in this form */
    case 1:
        return PyObject_CallFunctionObjArgs(function, v[0], NULL);
    case 2:
        return PyObject_CallFunctionObjArgs(function, v[0], v[1], NULL);
    case 3:
        return PyObject_CallFunctionObjArgs(function, v[0], v[1], v[2], NULL);
    default:
        return call_with_keywords(args);
    }
}

/* ---- calls by path ---- */

/* The path that a walk left a mount by, as str, or as bytes when the caller's path is bytes, or an
 * os.PathLike of bytes. */
static PyObject *left_path(const char *text, PyObject *given)
{
    PyObject *path = PyOS_FSPath(given);
    if (!path)
        return NULL;
    bool as_bytes = PyBytes_Check(path);
    Py_DECREF(path);
    return as_bytes ? PyBytes_FromString(text) : PyUnicode_DecodeFSDefault(text);
}

/* Where the path is among args->values, or -1: it was not given. */
static Py_ssize_t index_of_path(const struct df_request *request)
{
    const struct df_args *args = &request->args;
    if (request->path_slot < args->count)
        return request->path_slot;
    Py_ssize_t keywords = args->names ? PyTuple_Size(args->names) : 0;
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *key = PyTuple_GetItem(args->names, i);
        const char *name = args->signature->names[request->path_slot];
        if (PyUnicode_CompareWithASCIIString(key, name) == 0)
            return args->count + i;
    }
    return -1;
}

/* An OSError names the path as the caller gave it. */
static void name_in_error(PyObject *path)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_OSError))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *name = PyOS_FSPath(path);
    if (!name || PyObject_SetAttrString(value, "filename", name) < 0)
        PyErr_Clear(); /* the error itself matters more than its name */
    Py_XDECREF(name);
    PyErr_Restore(type, value, traceback);
}

static PyObject *call_with_path(struct df_request *request, const char *text)
{
    PyObject *values[DF_ARGS_MAX];
    struct df_args args = request->args;
    Py_ssize_t index = index_of_path(request);
    Py_ssize_t total = args.count + (args.names ? PyTuple_Size(args.names) : 0);
    for (Py_ssize_t i = 0; i < total; i++)
        values[i] = args.values[i];
    PyObject *given = values[index];
    PyObject *path = left_path(text, given);
    if (!path)
        return NULL;
    values[index] = path;
    args.values = values;
    PyObject *result = df_os_call(&args);
    Py_DECREF(path);
    if (!result)
        name_in_error(given);
    return result && request->rename ? request->rename(request, result) : result;
}

/* The errno of the exception that is set, or 0. */
static int errno_of_exception(void)
{
    if (!PyErr_ExceptionMatches(PyExc_FileNotFoundError) &&
        !PyErr_ExceptionMatches(PyExc_NotADirectoryError))
        return 0;
    return PyErr_ExceptionMatches(PyExc_NotADirectoryError) ? ENOTDIR : ENOENT;
}

/* Where the last walk of the request has left a mount; NULL: nowhere. */
static const char *left_of(const struct df_request *request)
{
    return index_of_path(request) >= 0 ? df_left_path(0) : NULL;
}

/* os has failed: a real symlink on the way may lead into a mount, and from there out again: *left
 * is set then. */
static PyObject *retry_ours(struct df_request *request, int error, const char **left)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = NULL;
    request->not_ours = true;
    if (df_retry_begin(error)) {
        request->not_ours = false;
        result = request->try_ours(request);
        *left = !result && request->not_ours ? left_of(request) : NULL;
        df_retry_end();
    }
    if (!result && request->not_ours && !*left) {
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return result;
}

PyObject *df_os_by_path(struct df_request *request)
{
    const char *left = left_of(request);
    PyObject *result = left ? call_with_path(request, left) : df_os_call(&request->args);
    int error = result ? 0 : errno_of_exception();
    if (!error)
        return result;
    left = NULL;
    result = retry_ours(request, error, &left);
    return left ? call_with_path(request, left) : result;
}
