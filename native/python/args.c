/*
 * args.c - reads the arguments of a hot call, without building a tuple or a dict. Says "no" and
 * raises nothing when they do not fit: the function of `os` finds the right words. What an argument
 * itself raises stays set.
 */
#include <limits.h>

#include <fcntl.h>

#include "python/fast.h"

int df_args_prepare(struct df_signature *signature)
{
    const char *module_name = signature->module_name ? signature->module_name : "os";
    PyObject *module = PyImport_ImportModule(module_name);
    signature->os_function = module ? PyObject_GetAttrString(module, signature->os_name) : NULL;
    Py_XDECREF(module);
    if (!signature->os_function)
        return -1;
    for (int i = 0; i < signature->total; i++) {
        signature->keys[i] = PyUnicode_InternFromString(signature->names[i]);
        if (!signature->keys[i])
            return -1;
    }
    return 0;
}

/* The slot of a keyword, or -1. Keywords written in source code are interned: the first loop finds
 * those. */
static int slot_of(const struct df_signature *signature, PyObject *key)
{
    for (int i = signature->positional_only; i < signature->total; i++) {
        if (signature->keys[i] == key)
            return i;
    }
    for (int i = signature->positional_only; i < signature->total; i++) {
        if (PyUnicode_CompareWithASCIIString(key, signature->names[i]) == 0)
            return i;
    }
    return -1;
}

static bool read_keywords(const struct df_args *args, PyObject **slots)
{
    Py_ssize_t count = PyTuple_Size(args->names);
    for (Py_ssize_t i = 0; i < count; i++) {
        int slot = slot_of(args->signature, PyTuple_GetItem(args->names, i));
        if (slot < 0 || slots[slot])
            return false;
        slots[slot] = args->values[args->count + i];
    }
    return true;
}

bool df_args_read(const struct df_args *args, PyObject *slots[DF_ARGS_MAX])
{
    const struct df_signature *signature = args->signature;
    if (args->count > signature->positional)
        return false;
    for (int i = 0; i < signature->total; i++)
        slots[i] = i < args->count ? args->values[i] : NULL;
    if (args->names && !read_keywords(args, slots))
        return false;
    for (int i = 0; i < signature->required; i++) {
        if (!slots[i])
            return false;
    }
    return true;
}

/* PyLong_AsLong, for PyLong_AsLongLong is slow for numbers of more than 30 bits, as virtual
 * descriptors are. */
static bool read_int(PyObject *value, off_t *out)
{
    _Static_assert(sizeof(long) == sizeof(off_t), "a long holds an offset");
    long number = PyLong_AsLong(value);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    *out = number;
    return true;
}

bool df_args_offset(PyObject *value, off_t *out)
{
    if (!value)
        return true;
    if (PyLong_Check(value))
        return read_int(value, out);
    PyObject *index = PyIndex_Check(value) ? PyNumber_Index(value) : NULL;
    bool fits = index && read_int(index, out);
    Py_XDECREF(index);
    return fits;
}

bool df_args_int(PyObject *value, int *out)
{
    off_t number = *out;
    if (!df_args_offset(value, &number) || number < INT_MIN || number > INT_MAX)
        return false;
    *out = (int)number;
    return true;
}

bool df_args_fd(PyObject *value, int *fd)
{
    return df_args_int(value, fd);
}

bool df_args_is_fd(PyObject *value)
{
    return PyLong_Check(value) ||
           (!PyUnicode_Check(value) && !PyBytes_Check(value) && PyIndex_Check(value));
}

bool df_args_dir_fd(PyObject *value, int *dirfd)
{
    if (!value || value == Py_None)
        return true;
    return df_args_int(value, dirfd);
}

bool df_args_size(PyObject *value, Py_ssize_t *out)
{
    off_t number = *out;
    if (!df_args_offset(value, &number))
        return false;
    *out = (Py_ssize_t)number;
    return true;
}

bool df_args_flag(PyObject *value, bool *out)
{
    if (!value)
        return true;
    int truth = PyObject_IsTrue(value);
    *out = truth > 0;
    return truth >= 0;
}
