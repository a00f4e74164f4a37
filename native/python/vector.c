/*
 * vector.c - readv, preadv, writev, pwritev: one call, many buffers.
 */
#include <sys/uio.h>

#include "core/fd.h"
#include "python/gil.h"

enum { ON_STACK = 8 }; /* buffers that need no allocation */

struct vector {
    struct iovec *iov;
    Py_buffer *views;
    int count;
    size_t size; /* bytes in all */
    struct iovec few_iov[ON_STACK];
    Py_buffer few_views[ON_STACK];
};

static void vector_release(struct vector *vector)
{
    for (int i = 0; i < vector->count; i++)
        PyBuffer_Release(&vector->views[i]);
    if (vector->iov != vector->few_iov) {
        PyMem_Free(vector->iov);
        PyMem_Free(vector->views);
    }
}

static int vector_allocate(struct vector *vector, Py_ssize_t count)
{
    *vector = (struct vector){.iov = vector->few_iov, .views = vector->few_views};
    if (count <= ON_STACK)
        return 0;
    vector->iov = PyMem_Calloc((size_t)count, sizeof(*vector->iov));
    vector->views = PyMem_Calloc((size_t)count, sizeof(*vector->views));
    if (vector->iov && vector->views)
        return 0;
    vector_release(vector);
    PyErr_NoMemory();
    return -1;
}

static int vector_add(struct vector *vector, PyObject *buffer, int flags)
{
    Py_buffer *view = &vector->views[vector->count];
    if (!buffer || PyObject_GetBuffer(buffer, view, flags) < 0)
        return -1;
    vector->iov[vector->count] = (struct iovec){view->buf, (size_t)view->len};
    vector->size += (size_t)view->len;
    vector->count++;
    return 0;
}

/* Takes the buffers of a sequence; flags: PyBUF_SIMPLE or PyBUF_WRITABLE. */
static int vector_read(struct vector *vector, PyObject *buffers, int flags)
{
    Py_ssize_t count = PySequence_Size(buffers);
    if (count < 0)
        return -1;
    if (count > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too many buffers");
        return -1;
    }
    if (vector_allocate(vector, count) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *buffer = PySequence_GetItem(buffers, i);
        int error = vector_add(vector, buffer, flags);
        Py_XDECREF(buffer); /* the view holds it */
        if (error < 0) {
            vector_release(vector);
            return -1;
        }
    }
    return 0;
}

static PyObject *vector_done(struct vector *vector, ssize_t count)
{
    vector_release(vector);
    if (count < 0)
        return df_error_raise(count, NULL, NULL);
    return PyLong_FromSsize_t(count);
}

/* ---- at the descriptor's position ---- */

typedef ssize_t (*transfer)(int fd, const struct iovec *iov, int count);

/* access: PyBUF_SIMPLE or PyBUF_WRITABLE. */
static PyObject *at_position(const struct df_args *args, int access, transfer move)
{
    struct vector vector;
    int fd;
    ssize_t done;
    if (args->count != 2 || !df_args_fd(args->values[0], &fd) || !df_fd_ours(fd) ||
        !PySequence_Check(args->values[1]))
        return df_os_call(args);
    if (vector_read(&vector, args->values[1], access) < 0)
        return NULL;
    DF_GIL_CALL(done, vector.size, move(fd, vector.iov, vector.count));
    return vector_done(&vector, done);
}

static struct df_signature readv_signature = {.os_name = "readv"};

static PyObject *fast_readv(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&readv_signature, values, count, NULL};
    return at_position(&args, PyBUF_WRITABLE, df_call_readv);
}

static struct df_signature writev_signature = {.os_name = "writev"};

static PyObject *fast_writev(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&writev_signature, values, count, NULL};
    return at_position(&args, PyBUF_SIMPLE, df_call_writev);
}

/* ---- at an offset ---- */

/* fd, buffers, offset, flags=0. False: let os complain. */
static bool read_positioned(const struct df_args *args, int *fd, off_t *offset, int *flags)
{
    *flags = 0;
    return args->count >= 3 && args->count <= 4 && df_args_fd(args->values[0], fd) &&
           df_fd_ours(*fd) && PySequence_Check(args->values[1]) &&
           df_args_offset(args->values[2], offset) &&
           df_args_int(args->count == 4 ? args->values[3] : NULL, flags);
}

enum { AT_POSITION = -1 }; /* preadv2(2), which os.preadv makes: the file's own */

typedef ssize_t (*transfer_at)(int fd, const struct iovec *iov, int count, off_t offset);

/* No RWF_* flag is served; the kernel answers EOPNOTSUPP to those a file system lacks. */
static PyObject *at_offset(const struct df_args *args, int access, transfer_at move_at,
                           transfer move)
{
    struct vector vector;
    int fd, flags;
    off_t offset;
    ssize_t done = -EOPNOTSUPP;
    if (!read_positioned(args, &fd, &offset, &flags))
        return df_os_call(args);
    if (vector_read(&vector, args->values[1], access) < 0)
        return NULL;
    if (flags == 0 && offset == AT_POSITION)
        DF_GIL_CALL(done, vector.size, move(fd, vector.iov, vector.count));
    else if (flags == 0)
        DF_GIL_CALL(done, vector.size, move_at(fd, vector.iov, vector.count, offset));
    return vector_done(&vector, done);
}

static struct df_signature preadv_signature = {.os_name = "preadv"};

static PyObject *fast_preadv(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&preadv_signature, values, count, NULL};
    return at_offset(&args, PyBUF_WRITABLE, df_call_preadv, df_call_readv);
}

static struct df_signature pwritev_signature = {.os_name = "pwritev"};

static PyObject *fast_pwritev(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&pwritev_signature, values, count, NULL};
    return at_offset(&args, PyBUF_SIMPLE, df_call_pwritev, df_call_writev);
}

/* ---- the module ---- */

int df_vector_prepare(void)
{
    struct df_signature *all[] = {&readv_signature, &writev_signature, &preadv_signature,
                                  &pwritev_signature};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (df_args_prepare(all[i]) < 0)
            return -1;
    }
    return 0;
}

PyMethodDef df_vector_methods[] = {
    DF_FAST_METHOD("readv", fast_readv, METH_FASTCALL,
                   "readv($module, fd, buffers, /)\n--\n\n"
                   "os.readv: reads into writable buffers, one after the other; bytes read.\n\n"
                   "Source: readv(2)."),
    DF_FAST_METHOD(
        "writev", fast_writev, METH_FASTCALL,
        "writev($module, fd, buffers, /)\n--\n\n"
        "os.writev: writes the buffers one after the other; bytes written.\n\nSource: writev(2)."),
    DF_FAST_METHOD("preadv", fast_preadv, METH_FASTCALL,
                   "preadv($module, fd, buffers, offset, flags=0, /)\n--\n\n"
                   "os.preadv: readv() from offset on; -1: the position. No RWF_* flag is\n"
                   "supported: EOPNOTSUPP.\n\n"
                   "Source: preadv2(2)."),
    DF_FAST_METHOD("pwritev", fast_pwritev, METH_FASTCALL,
                   "pwritev($module, fd, buffers, offset, flags=0, /)\n--\n\n"
                   "os.pwritev: writev() at offset; -1: the position. No RWF_* flag is supported:\n"
                   "EOPNOTSUPP.\n\n"
                   "Source: pwritev2(2)."),
    {NULL, NULL, 0, NULL},
};
