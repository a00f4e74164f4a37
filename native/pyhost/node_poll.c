/*
 * node_poll.c - PollHandle: what a poll() operation may keep to say later that a file is ready.
 * pyfuse3's own would notify through the real libfuse.
 */
#include "pyhost/node.h"

#include <string.h>

struct poll_handle {
    PyObject ob_base;
    struct fuse_pollhandle *handle;
};

static PyTypeObject *poll_type;

PyObject *df_node_poll_new(struct fuse_pollhandle *handle)
{
    if (!handle)
        return Py_NewRef(Py_None);
    allocfunc allocate = (allocfunc)PyType_GetSlot(poll_type, Py_tp_alloc);
    struct poll_handle *self = (struct poll_handle *)allocate(poll_type, 0);
    if (self)
        self->handle = handle;
    else
        fuse_pollhandle_destroy(handle);
    return (PyObject *)self;
}

static PyObject *notify(PyObject *self, PyObject *unused)
{
    struct fuse_pollhandle *handle = ((struct poll_handle *)self)->handle;
    int result;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    result = fuse_lowlevel_notify_poll(handle);
    Py_END_ALLOW_THREADS;
    if (result == 0)
        Py_RETURN_NONE;
    PyErr_Format(PyExc_OSError, "fuse_lowlevel_notify_poll returned: %s", strerror(-result));
    return NULL;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    fuse_pollhandle_destroy(((struct poll_handle *)self)->handle);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"notify", notify, METH_NOARGS, PyDoc_STR("notify()\n--\n\nWakes up who polls the file.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Says once that a file is ready."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._pyhost.PollHandle",
    .basicsize = sizeof(struct poll_handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int df_node_poll_prepare(PyObject *module)
{
    poll_type = df_type_add(module, &spec);
    return poll_type ? 0 : -1;
}
