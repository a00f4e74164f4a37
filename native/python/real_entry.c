/*
 * real_entry.c - the entries of a real directory to which a path through a mount led: those of os,
 * under the path that the caller gave. An os.DirEntry cannot be made with another path.
 */
#include <string.h>

#include "python/scandir.h"

/* 1 or 0; -1 with an exception. */
static int says(PyObject *entry, const char *method)
{
    PyObject *answer = PyObject_CallMethod(entry, method, NULL);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

/* Asked in this order, none of them follows a link. 0, or -1 with an exception. */
static int read_type(PyObject *entry, unsigned char *type)
{
    static const struct {
        const char *method;
        unsigned char type;
    } questions[] = {{"is_symlink", DT_LNK}, {"is_dir", DT_DIR}, {"is_file", DT_REG}};
    int truth = 0;
    *type = DT_UNKNOWN;
    for (size_t i = 0; truth == 0 && i < sizeof(questions) / sizeof(*questions); i++) {
        truth = says(entry, questions[i].method);
        if (truth > 0)
            *type = questions[i].type;
    }
    return truth < 0 ? -1 : 0;
}

static int read_inode(PyObject *entry, ino64_t *ino)
{
    PyObject *number = PyObject_CallMethod(entry, "inode", NULL);
    *ino = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_name(PyObject *entry, char name[256])
{
    PyObject *value = PyObject_GetAttrString(entry, "name"), *bytes = NULL;
    if (value && PyUnicode_FSConverter(value, &bytes)) {
        strncpy(name, PyBytes_AsString(bytes), 255); /* NAME_MAX */
        Py_DECREF(bytes);
    }
    Py_XDECREF(value);
    return bytes ? 0 : -1;
}

PyObject *df_dir_entry_of_real(PyObject *directory, bool as_bytes, PyObject *entry)
{
    struct dirent64 record = {.d_ino = 0};
    if (read_name(entry, record.d_name) < 0 || read_inode(entry, &record.d_ino) < 0 ||
        read_type(entry, &record.d_type) < 0)
        return NULL;
    return df_dir_entry_new(directory, -1, as_bytes, &record);
}
