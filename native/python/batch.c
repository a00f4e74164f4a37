/*
 * batch.c - read_many: many reads, of any descriptors, in one call and one release of the GIL.
 */
#include <errno.h>

#include <directfuse.h>

#include "core/fd.h"
#include "python/gil.h"

struct batch {
    struct df_read *reads;
    Py_ssize_t count;
    size_t size;       /* bytes in all */
    bool real;         /* a descriptor of the kernel is among them: may wait for a disk */
    PyObject *results; /* list of bytes, when there is no `into` */
    Py_buffer *views;  /* exported buffers of `into` */
    Py_ssize_t view_count;
};

static void batch_clear(struct batch *batch)
{
    for (Py_ssize_t i = 0; i < batch->view_count; i++)
        PyBuffer_Release(&batch->views[i]);
    PyMem_Free(batch->views);
    PyMem_Free(batch->reads);
    Py_CLEAR(batch->results);
}

/* ---- what is asked for ---- */

static int read_request(PyObject *request, struct df_read *read)
{
    Py_ssize_t size = 0;
    off_t offset = 0;
    int fd = -1;
    PyObject *items = PySequence_Tuple(request);
    if (!items)
        return -1;
    bool good = PyTuple_Size(items) == 3 && df_args_fd(PyTuple_GetItem(items, 0), &fd) &&
                df_args_size(PyTuple_GetItem(items, 1), &size) &&
                df_args_offset(PyTuple_GetItem(items, 2), &offset);
    Py_DECREF(items);
    if (!good) {
        PyErr_Format(PyExc_TypeError, "a request is (descriptor, size, offset), not %R", request);
        return -1;
    }
    if (size < 0 || offset < 0) {
        df_error_raise(-EINVAL, NULL, NULL);
        return -1;
    }
    *read = (struct df_read){.fd = fd, .size = (size_t)size, .offset = offset};
    return 0;
}

/* `requests` is a tuple. */
static int read_requests(struct batch *batch, PyObject *requests)
{
    batch->count = PyTuple_Size(requests);
    batch->reads = PyMem_Calloc((size_t)batch->count + 1, sizeof(*batch->reads));
    if (!batch->reads) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        struct df_read *read = &batch->reads[i];
        if (read_request(PyTuple_GetItem(requests, i), read) < 0)
            return -1;
        batch->real = batch->real || read->fd < DF_FD_BASE;
        if (__builtin_add_overflow(batch->size, read->size, &batch->size)) {
            PyErr_SetString(PyExc_OverflowError, "the requests are too large together");
            return -1;
        }
    }
    return 0;
}

/* ---- where it goes ---- */

/* New bytes objects. */
static int aim_at_results(struct batch *batch)
{
    batch->results = PyList_New(batch->count);
    if (!batch->results)
        return -1;
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)batch->reads[i].size);
        if (!bytes)
            return -1;
        batch->reads[i].buf = PyBytes_AsString(bytes);
        PyList_SetItem(batch->results, i, bytes);
    }
    return 0;
}

static int add_view(struct batch *batch, PyObject *buffer)
{
    Py_buffer *view = &batch->views[batch->view_count];
    if (!buffer || PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE) < 0)
        return -1;
    batch->view_count++;
    return 0;
}

static int refuse_size(size_t needed, Py_ssize_t there)
{
    PyErr_Format(PyExc_ValueError, "%zu bytes are asked for, the buffer has %zd", needed, there);
    return -1;
}

/* One buffer, filled piece by piece: each request has its own place. */
static int aim_at_buffer(struct batch *batch, PyObject *into)
{
    batch->views = PyMem_Calloc(1, sizeof(*batch->views));
    if (!batch->views) {
        PyErr_NoMemory();
        return -1;
    }
    if (add_view(batch, into) < 0)
        return -1;
    if (batch->size > (size_t)batch->views[0].len)
        return refuse_size(batch->size, batch->views[0].len);
    char *next = batch->views[0].buf;
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        batch->reads[i].buf = next;
        next += batch->reads[i].size;
    }
    return 0;
}

/* A buffer for each request. */
static int aim_at_buffers(struct batch *batch, PyObject *into)
{
    Py_ssize_t there = PySequence_Size(into);
    if (there < 0)
        return -1;
    if (there != batch->count) {
        PyErr_Format(PyExc_ValueError, "%zd requests, but %zd buffers", batch->count, there);
        return -1;
    }
    batch->views = PyMem_Calloc((size_t)there + 1, sizeof(*batch->views));
    if (!batch->views) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < there; i++) {
        PyObject *buffer = PySequence_GetItem(into, i);
        int error = add_view(batch, buffer);
        Py_XDECREF(buffer);
        if (error < 0)
            return -1;
        if (batch->reads[i].size > (size_t)batch->views[i].len)
            return refuse_size(batch->reads[i].size, batch->views[i].len);
        batch->reads[i].buf = batch->views[i].buf;
    }
    return 0;
}

static int aim(struct batch *batch, PyObject *into)
{
    if (!into || into == Py_None)
        return aim_at_results(batch);
    if (PyList_Check(into) || PyTuple_Check(into))
        return aim_at_buffers(batch, into);
    return aim_at_buffer(batch, into);
}

/* ---- what came ---- */

/* Says in a note which request it was. */
static PyObject *raise_for(const struct batch *batch, Py_ssize_t index)
{
    const struct df_read *read = &batch->reads[index];
    df_error_raise(read->result, NULL, NULL);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *note = PyUnicode_FromFormat("request %zd: descriptor %d, %zu bytes at %lld", index,
                                          read->fd, read->size, (long long)read->offset);
    PyObject *done = note ? PyObject_CallMethod(value, "add_note", "O", note) : NULL;
    PyErr_Clear(); /* the error itself matters more than its note */
    Py_XDECREF(note);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *counts_of(const struct batch *batch)
{
    PyObject *counts = PyList_New(batch->count);
    for (Py_ssize_t i = 0; counts && i < batch->count; i++) {
        PyObject *count = PyLong_FromSsize_t(batch->reads[i].result);
        if (!count || PyList_SetItem(counts, i, count) < 0)
            Py_CLEAR(counts);
    }
    return counts;
}

static PyObject *results_of(struct batch *batch)
{
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        const struct df_read *read = &batch->reads[i];
        if (read->result == (ssize_t)read->size)
            continue;
        PyObject *shorter = PyBytes_FromStringAndSize(read->buf, read->result);
        if (!shorter || PyList_SetItem(batch->results, i, shorter) < 0)
            return NULL;
    }
    return Py_NewRef(batch->results);
}

static PyObject *batch_run(struct batch *batch)
{
    int error = 0;
    bool keep = !batch->real && df_gil_keep(batch->size);
    PyThreadState *state = keep ? NULL : PyEval_SaveThread();
    if (df_read_batch(batch->reads, (size_t)batch->count) < 0)
        error = -errno;
    if (state)
        PyEval_RestoreThread(state);
    if (error)
        return df_error_raise(error, NULL, NULL);
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        if (batch->reads[i].result < 0)
            return raise_for(batch, i);
    }
    return batch->results ? results_of(batch) : counts_of(batch);
}

/* ---- the call ---- */

static PyObject *read_many(PyObject *module, PyObject *args, PyObject *options)
{
    (void)module;
    static char *names[] = {"requests", "into", NULL};
    PyObject *requests, *into = NULL, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, options, "O|O:read_many", names, &requests, &into))
        return NULL;
    struct batch batch = {0};
    PyObject *tuple = PySequence_Tuple(requests);
    if (tuple && read_requests(&batch, tuple) == 0 && aim(&batch, into) == 0)
        result = batch_run(&batch);
    batch_clear(&batch);
    Py_XDECREF(tuple);
    return result;
}

PyMethodDef df_batch_methods[] = {
    DF_FAST_METHOD(
        "read_many", read_many, METH_VARARGS | METH_KEYWORDS,
        "read_many($module, /, requests, into=None)\n--\n\n"
        "Many reads in one call, which a plugin may overlap.\n\n"
        "requests: (descriptor, size in bytes, offset in bytes) each; real descriptors\n"
        "    serve too.\n"
        "into: None for new bytes objects; a writable buffer, filled from its start,\n"
        "    each request at the sum of the sizes before it; or a list or tuple of\n"
        "    buffers, one for each request.\n\n"
        "Returns a list: the bytes, or with `into` the count of bytes, of each request;\n"
        "fewer than asked for at the end of a file. Raises the OSError of the first\n"
        "request that failed, with a note that names it."),
    {NULL, NULL, 0, NULL},
};
