/*
 * mapping.c - Mapping: the memory of df_mmap() as an object with the buffer protocol.
 *
 * Unlike a kernel mapping it is lent by the plugin or copied (include/directfuse.h, df_mmap);
 * flush() and close() write a shared writable one back. The GIL protects the fields; the memory
 * cannot go while a buffer is exported.
 */
#include <sys/mman.h>

#include "core/fd.h"
#include "python/gil.h"

struct mapping {
    PyObject_HEAD void *address; /* NULL: closed, or nothing is mapped */
    Py_ssize_t size;
    Py_ssize_t exports; /* buffers handed out and not released */
    bool writable;
    bool closed;
};

/* df_mmap() of no bytes is an error; an empty file is not. */
static char nothing[1];

static struct mapping *mapping_of(PyObject *self)
{
    return (struct mapping *)self;
}

static int check_open(const struct mapping *mapping)
{
    if (!mapping->closed)
        return 0;
    PyErr_SetString(PyExc_ValueError, "mapping closed or invalid");
    return -1;
}

/* ---- making one ---- */

static int map(struct mapping *mapping, int fd, int prot, int flags, off_t offset)
{
    int result;
    void *address = NULL;
    if (mapping->size == 0)
        return 0;
    DF_GIL_CALL(result, (size_t)mapping->size,
                df_call_mmap(&address, (size_t)mapping->size, prot, flags, fd, offset));
    if (result == DF_NOT_OURS) /* of no file, or of one of the kernel's */
        result = df_fd_ours(fd) ? -EINVAL : -EBADF;
    if (result < 0) {
        df_error_raise(result, NULL, NULL);
        return -1;
    }
    mapping->address = address;
    return 0;
}

static PyObject *mapping_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *names[] = {"fd", "length", "prot", "flags", "offset", NULL};
    int fd, prot = PROT_READ, flags = MAP_SHARED;
    long long offset = 0;
    Py_ssize_t length;
    if (!PyArg_ParseTupleAndKeywords(args, options, "in|iiL:Mapping", names, &fd, &length, &prot,
                                     &flags, &offset))
        return NULL;
    if (length < 0 || offset < 0)
        return df_error_raise(-EINVAL, NULL, NULL);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct mapping *mapping = (struct mapping *)allocate(type, 0);
    if (!mapping)
        return NULL;
    mapping->size = length;
    mapping->writable = prot & PROT_WRITE;
    if (map(mapping, fd, prot, flags, offset) < 0)
        Py_CLEAR(mapping);
    return (PyObject *)mapping;
}

/* ---- the buffer ---- */

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct mapping *mapping = mapping_of(self);
    view->obj = NULL;
    if (check_open(mapping) < 0)
        return -1;
    void *bytes = mapping->address ? mapping->address : nothing;
    if (PyBuffer_FillInfo(view, self, bytes, mapping->size, !mapping->writable, flags) < 0)
        return -1;
    mapping->exports++;
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    mapping_of(self)->exports--;
}

static Py_ssize_t length_of(PyObject *self)
{
    return check_open(mapping_of(self)) < 0 ? -1 : mapping_of(self)->size;
}

/* By way of a memoryview: an int for an index, bytes for a slice, as mmap.mmap. */
static PyObject *subscript(PyObject *self, PyObject *key)
{
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *item = view ? PyObject_GetItem(view, key) : NULL;
    Py_XDECREF(view);
    if (!item || PyLong_Check(item))
        return item;
    PyObject *bytes = PyObject_Bytes(item);
    Py_DECREF(item);
    return bytes;
}

static int assign_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "a mapping cannot lose bytes");
        return -1;
    }
    PyObject *view = PyMemoryView_FromObject(self);
    int error = view ? PyObject_SetItem(view, key, value) : -1;
    Py_XDECREF(view);
    return error;
}

/* ---- writing back, closing ---- */

static PyObject *mapping_flush(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct mapping *mapping = mapping_of(self);
    int result = 0;
    if (check_open(mapping) < 0)
        return NULL;
    mapping->exports++; /* another thread cannot close it meanwhile */
    if (mapping->address)
        DF_GIL_CALL(result, (size_t)mapping->size,
                    df_call_msync(mapping->address, (size_t)mapping->size, MS_SYNC));
    mapping->exports--;
    if (result < 0)
        return df_error_raise(result, NULL, NULL);
    Py_RETURN_NONE;
}

/* As DF_GIL_CALL; but what a signal's handler raises does not end it: it is set behind the end. */
static int unmap_all(void *address, size_t size)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    int result;
    for (;;) {
        DF_GIL_CALL(result, size, df_call_munmap(address, size));
        if (result != -EINTR)
            break;
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        PyErr_Fetch(&type, &value, &traceback);
    }
    PyErr_Restore(type, value, traceback);
    return result;
}

/* 0 or the negative errno of writing back, and perhaps an exception; the memory is gone. */
static int unmap(struct mapping *mapping)
{
    void *address = mapping->address;
    mapping->address = NULL;
    mapping->closed = true;
    return address ? unmap_all(address, (size_t)mapping->size) : 0;
}

static PyObject *mapping_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct mapping *mapping = mapping_of(self);
    if (mapping->exports > 0) {
        PyErr_SetString(PyExc_BufferError, "cannot close exported pointers exist");
        return NULL;
    }
    int result = unmap(mapping);
    if (result < 0 || PyErr_Occurred())
        return df_error_raise(result, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *mapping_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return check_open(mapping_of(self)) < 0 ? NULL : Py_NewRef(self);
}

static PyObject *mapping_exit(PyObject *self, PyObject *exception)
{
    (void)exception;
    return mapping_close(self, NULL);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(mapping_of(self)->closed);
}

static PyObject *mapping_repr(PyObject *self)
{
    const struct mapping *mapping = mapping_of(self);
    if (mapping->closed)
        return PyUnicode_FromString("<directfuse.Mapping closed>");
    return PyUnicode_FromFormat("<directfuse.Mapping %zd bytes, %s>", mapping->size,
                                mapping->writable ? "writable" : "read-only");
}

static PyObject *refuse_pickle(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError, "cannot pickle 'directfuse.Mapping' object");
    return NULL;
}

/* close() tells of an error, as close(2) and munmap(2) at exit do not. */
static void mapping_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject *error, *value, *traceback;
    PyErr_Fetch(&error, &value, &traceback);
    unmap(mapping_of(self));
    if (PyErr_Occurred())
        PyErr_WriteUnraisable((PyObject *)type);
    PyErr_Restore(error, value, traceback);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    {"flush", mapping_flush, METH_NOARGS,
     PyDoc_STR("flush($self, /)\n--\n\nWrites a shared writable mapping back to the file.")},
    {"close", mapping_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\n"
               "Writes back and gives the memory up; BufferError while views of it exist.")},
    {"__enter__", mapping_enter, METH_NOARGS, NULL},
    {"__exit__", mapping_exit, METH_VARARGS, NULL},
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"closed", get_closed, NULL, PyDoc_STR("True once it is closed."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Mapping(fd, length, prot=1, flags=1, offset=0)\n--\n\n"
                                  "Bytes of a file as memory: use it as a buffer (memoryview).")},
    {Py_tp_new, mapping_new},
    {Py_tp_dealloc, mapping_dealloc},
    {Py_tp_repr, mapping_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_mp_length, length_of},
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, assign_subscript},
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._fast.Mapping",
    .basicsize = sizeof(struct mapping),
    .flags = DF_FAST_TYPE,
    .slots = slots,
};

int df_mapping_prepare(PyObject *module)
{
    df_fast.mapping = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return df_fast.mapping ? PyModule_AddType(module, df_fast.mapping) : -1;
}
