/*
 * path.c - path arguments: str, bytes and os.PathLike to what the kernel would see, without a copy
 * for text in UTF-8 (the str keeps its UTF-8 form).
 */
#include <string.h>

#include "python/fast.h"

/* Takes the bytes object over; its text unless a NUL is in it. */
static void take_bytes(struct df_path *path, PyObject *bytes)
{
    char *text;
    Py_ssize_t size;
    path->encoded = bytes;
    if (PyBytes_AsStringAndSize(bytes, &text, &size) == 0 && memchr(text, 0, (size_t)size) == NULL)
        path->text = text;
    else
        PyErr_Clear();
}

/* Text that is not UTF-8: lone surrogates stand for bytes (PEP 383), or the file system encoding
 * is another. */
static void encode_slowly(struct df_path *path, PyObject *value)
{
    PyObject *bytes = PyUnicode_EncodeFSDefault(value);
    if (bytes)
        take_bytes(path, bytes);
    else
        PyErr_Clear();
}

static void read_text(struct df_path *path, PyObject *value)
{
    Py_ssize_t size;
    const char *text = df_fast.utf8 ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (text && strlen(text) == (size_t)size) {
        path->text = text;
        return;
    }
    PyErr_Clear();
    if (!text)
        encode_slowly(path, value);
}

int df_path_read(struct df_path *path, PyObject *value)
{
    *path = (struct df_path){0};
    if (PyUnicode_Check(value) || PyBytes_Check(value)) {
        path->object = Py_NewRef(value);
    } else if (PyObject_HasAttrString((PyObject *)Py_TYPE(value), "__fspath__")) {
        path->object = PyOS_FSPath(value);
        if (!path->object)
            return -1;
    } else {
        return 0;
    }
    if (PyUnicode_Check(path->object))
        read_text(path, path->object);
    else
        take_bytes(path, Py_NewRef(path->object));
    return 0;
}

void df_path_clear(struct df_path *path)
{
    Py_CLEAR(path->object);
    Py_CLEAR(path->encoded);
}
