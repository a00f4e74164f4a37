/*
 * file_type.c - FileIO: the raw, unbuffered file of the io module for a virtual descriptor.
 *
 * It derives from _io._RawIOBase, so iteration, readlines, the context manager and closing at
 * finalization are the standard ones. The limited API hides the size of that base; it is asked for
 * at run time and our fields lie behind it. What the methods do is in file_io.c.
 */
#include "python/file_type.h"
#include "core/fd.h"
#include "python/gil.h"

Py_ssize_t df_file_type_offset;

/* _io._RawIOBase.close, which marks the object as closed for _io. */
static PyObject *base_close;

/* ---- making one ---- */

int df_file_type_check(int fd, PyObject *name, struct stat *st)
{
    int result;
    DF_GIL_CALL(result, 0, df_call_fstat(fd, st));
    if (result == 0 && S_ISDIR(st->st_mode))
        result = -EISDIR;
    if (result == 0)
        return 0;
    df_error_raise(result, name, NULL);
    return -1;
}

/* An append file starts at its end, as FileIO's does. A stream has no position: no error. */
static int seek_to_end(int fd, PyObject *name)
{
    off_t result;
    DF_GIL_CALL(result, 0, df_call_lseek(fd, 0, SEEK_END));
    if (result >= 0 || result == -ESPIPE)
        return 0;
    df_error_raise(result, name, NULL);
    return -1;
}

PyObject *df_file_type_make(int fd, PyObject *name, int open_mode, bool closefd)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(df_fast.file_io, Py_tp_alloc);
    PyObject *self = allocate(df_fast.file_io, 0);
    if (!self)
        return NULL;
    /* Without the descriptor until nothing can fail: who called closes it then. */
    *df_raw_file_of(self) = (struct df_raw_file){-1, open_mode, closefd, false, -1};
    if (name && PyObject_SetAttr(self, df_fast.name, name) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    df_raw_file_of(self)->fd = fd;
    return self;
}

PyObject *df_file_type_new(int fd, PyObject *name, int open_mode, bool closefd,
                           Py_ssize_t *block_size)
{
    struct stat st;
    if (df_file_type_check(fd, name, &st) < 0 ||
        ((open_mode & DF_FILE_MODE_APPEND) && seek_to_end(fd, name) < 0))
        return NULL;
    *block_size = st.st_blksize;
    return df_file_type_make(fd, name, open_mode, closefd);
}

/* ---- what it is ---- */

static const char *mode_text(const struct df_raw_file *file)
{
    bool read = file->open_mode & DF_FILE_MODE_READ;
    if (file->open_mode & DF_FILE_MODE_CREATE_NEW)
        return read ? "xb+" : "xb";
    if (file->open_mode & DF_FILE_MODE_APPEND)
        return read ? "ab+" : "ab";
    if (read && (file->open_mode & DF_FILE_MODE_WRITE))
        return "rb+";
    return read ? "rb" : "wb";
}

static PyObject *get_mode(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mode_text(df_raw_file_of(self)));
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(df_raw_file_of(self)->fd < 0);
}

static PyObject *get_closefd(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(df_raw_file_of(self)->closefd);
}

static PyObject *get_descriptor(PyObject *self, void *unused)
{
    (void)unused;
    int fd = df_file_io_descriptor(self, 0);
    return fd < 0 ? NULL : PyLong_FromLong(fd);
}

static PyObject *file_repr(PyObject *self)
{
    const struct df_raw_file *file = df_raw_file_of(self);
    if (file->fd < 0)
        return PyUnicode_FromString("<directfuse.FileIO [closed]>");
    PyObject *name = PyObject_GetAttr(self, df_fast.name);
    if (!name) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return NULL;
        PyErr_Clear();
        name = PyLong_FromLong(file->fd);
    }
    PyObject *text =
        name ? PyUnicode_FromFormat("<directfuse.FileIO name=%R mode='%s' closefd=%s>", name,
                                    mode_text(file), file->closefd ? "True" : "False")
             : NULL;
    Py_XDECREF(name);
    return text;
}

PyObject *df_file_type_getstate(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError, "cannot pickle 'directfuse.FileIO' object: an open file "
                                     "belongs to its process; pickle the path");
    return NULL;
}

/* ---- the end ---- */

/* BufferedReader and its like call this on the raw file they finalize. */
PyObject *df_file_type_dealloc_warn(PyObject *self, PyObject *source)
{
    const struct df_raw_file *file = df_raw_file_of(self);
    if (file->fd >= 0 && file->closefd && df_unclosed_warn(source) < 0)
        PyErr_WriteUnraisable(self);
    Py_RETURN_NONE;
}

static int close_descriptor(PyObject *self)
{
    struct df_raw_file *file = df_raw_file_of(self);
    int fd = file->fd;
    file->fd = -1;
    return fd >= 0 && file->closefd ? df_open_close(fd) : 0;
}

/* The first error counts: flush's (in the base), then close's. */
PyObject *df_file_type_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *result = PyObject_CallFunctionObjArgs(base_close, self, NULL);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (df_raw_file_of(self)->finalizing) {
        PyObject *none = df_file_type_dealloc_warn(self, self);
        Py_XDECREF(none);
    }
    int error = close_descriptor(self);
    if (!result) {
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    if (error < 0) {
        Py_DECREF(result);
        return df_error_raise(error, NULL, NULL);
    }
    return result;
}

/* ---- the type ---- */

static PyGetSetDef properties[] = {
    {"closed", get_closed, NULL, PyDoc_STR("True once the file is closed."), NULL},
    {"closefd", get_closefd, NULL, PyDoc_STR("True if close() closes the descriptor."), NULL},
    {"mode", get_mode, NULL, PyDoc_STR("How the file was opened."), NULL},
    {"descriptor", get_descriptor, NULL,
     PyDoc_STR("The virtual descriptor, for directfuse.fstat() and its like."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"_finalizing", T_BOOL, 0, 0, NULL}, /* offset: df_file_type_prepare() */
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("The raw file behind directfuse.open(): an io.RawIOBase.")},
    {Py_tp_methods, df_file_io_methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_repr, file_repr},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._fast.FileIO",
    .flags = DF_FAST_TYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static int make_type(PyObject *module, PyObject *base)
{
    PyObject *size = PyObject_GetAttrString(base, "__basicsize__");
    df_file_type_offset = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    base_close = PyObject_GetAttrString(base, "close");
    if (df_file_type_offset < 0 || !base_close)
        return -1;
    const Py_ssize_t align = _Alignof(struct df_raw_file);
    df_file_type_offset = (df_file_type_offset + align - 1) / align * align;
    members[0].offset = df_file_type_offset + (Py_ssize_t)offsetof(struct df_raw_file, finalizing);
    spec.basicsize = (int)(df_file_type_offset + (Py_ssize_t)sizeof(struct df_raw_file));
    df_fast.file_io = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, base);
    return df_fast.file_io ? PyModule_AddType(module, df_fast.file_io) : -1;
}

int df_file_type_prepare(PyObject *module)
{
    PyObject *base = df_fast_import("_io", "_RawIOBase");
    int error = base ? make_type(module, base) : -1;
    Py_XDECREF(base);
    return error;
}
