/*
 * fdio.c - calls on a descriptor that move bytes or the position: read, pread, write, pwrite,
 * lseek.
 */
#include "core/fd.h"
#include "python/gil.h"

/* ---- reading ---- */

/* The limited API cannot shrink a bytes object, so a short read costs a copy. A large buffer for a
 * small file costs little: pages that are never written are never made. */
PyObject *df_fdio_read_bytes(int fd, Py_ssize_t size, off_t at)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (!bytes)
        return NULL;
    char *data = PyBytes_AsString(bytes);
    ssize_t count;
    if (at < 0)
        DF_GIL_CALL(count, (size_t)size, df_call_read(fd, data, (size_t)size));
    else
        DF_GIL_CALL(count, (size_t)size, df_call_pread(fd, data, (size_t)size, at));
    if (DF_LIKELY(count == size))
        return bytes;
    PyObject *result =
        count < 0 ? df_error_raise(count, NULL, NULL) : PyBytes_FromStringAndSize(data, count);
    Py_DECREF(bytes);
    return result;
}

static struct df_signature read_signature = {.os_name = "read"};

static PyObject *fast_read(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&read_signature, values, count, NULL};
    int fd;
    Py_ssize_t size;
    if (count != 2 || !df_args_fd(values[0], &fd) || !df_fd_ours(fd) ||
        !df_args_size(values[1], &size))
        return df_os_call(&args);
    if (size < 0)
        return df_error_raise(-EINVAL, NULL, NULL);
    return df_fdio_read_bytes(fd, size, -1);
}

static struct df_signature pread_signature = {.os_name = "pread"};

static PyObject *fast_pread(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&pread_signature, values, count, NULL};
    int fd;
    Py_ssize_t size;
    off_t offset;
    if (count != 3 || !df_args_fd(values[0], &fd) || !df_fd_ours(fd) ||
        !df_args_size(values[1], &size) || !df_args_offset(values[2], &offset))
        return df_os_call(&args);
    if (size < 0 || offset < 0)
        return df_error_raise(-EINVAL, NULL, NULL);
    return df_fdio_read_bytes(fd, size, offset);
}

/* ---- writing ---- */

PyObject *df_fdio_write_buffer(int fd, PyObject *data, off_t at)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    size_t size = (size_t)view.len;
    ssize_t count;
    if (at < 0)
        DF_GIL_CALL(count, size, df_call_write(fd, view.buf, size));
    else
        DF_GIL_CALL(count, size, df_call_pwrite(fd, view.buf, size, at));
    PyBuffer_Release(&view);
    if (count < 0)
        return df_error_raise(count, NULL, NULL);
    return PyLong_FromSsize_t(count);
}

static struct df_signature write_signature = {.os_name = "write"};

static PyObject *fast_write(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&write_signature, values, count, NULL};
    int fd;
    if (count != 2 || !df_args_fd(values[0], &fd) || !df_fd_ours(fd))
        return df_os_call(&args);
    return df_fdio_write_buffer(fd, values[1], -1);
}

static struct df_signature pwrite_signature = {.os_name = "pwrite"};

static PyObject *fast_pwrite(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&pwrite_signature, values, count, NULL};
    int fd;
    off_t offset;
    if (count != 3 || !df_args_fd(values[0], &fd) || !df_fd_ours(fd) ||
        !df_args_offset(values[2], &offset))
        return df_os_call(&args);
    if (offset < 0)
        return df_error_raise(-EINVAL, NULL, NULL);
    return df_fdio_write_buffer(fd, values[1], offset);
}

/* ---- the position ---- */

static struct df_signature lseek_signature = {.os_name = "lseek"};

static PyObject *fast_lseek(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    (void)module;
    struct df_args args = {&lseek_signature, values, count, NULL};
    int fd, whence;
    off_t offset, result;
    if (count != 3 || !df_args_fd(values[0], &fd) || !df_fd_ours(fd) ||
        !df_args_offset(values[1], &offset) || !df_args_int(values[2], &whence))
        return df_os_call(&args);
    DF_GIL_CALL(result, 0, df_call_lseek(fd, offset, whence));
    if (result < 0)
        return df_error_raise(result, NULL, NULL);
    return PyLong_FromLongLong(result);
}

/* ---- the module ---- */

int df_fdio_prepare(void)
{
    struct df_signature *all[] = {&read_signature, &pread_signature, &write_signature,
                                  &pwrite_signature, &lseek_signature};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (df_args_prepare(all[i]) < 0)
            return -1;
    }
    return 0;
}

PyMethodDef df_fdio_methods[] = {
    DF_FAST_METHOD("read", fast_read, METH_FASTCALL,
                   "read($module, fd, length, /)\n--\n\n"
                   "os.read: at most length bytes from the descriptor's position, fewer at the "
                   "end of the file.\n\nSource: read(2)."),
    DF_FAST_METHOD(
        "pread", fast_pread, METH_FASTCALL,
        "pread($module, fd, length, offset, /)\n--\n\n"
        "os.pread: at most length bytes from offset on; the position stays.\n\nSource: pread(2)."),
    DF_FAST_METHOD("write", fast_write, METH_FASTCALL,
                   "write($module, fd, data, /)\n--\n\n"
                   "os.write: writes at the descriptor's position; the count of bytes written.\n\n"
                   "Source: write(2)."),
    DF_FAST_METHOD(
        "pwrite", fast_pwrite, METH_FASTCALL,
        "pwrite($module, fd, buffer, offset, /)\n--\n\n"
        "os.pwrite: writes at offset; the position stays. The count of bytes written.\n\n"
        "Source: pwrite(2)."),
    DF_FAST_METHOD("lseek", fast_lseek, METH_FASTCALL,
                   "lseek($module, fd, position, whence, /)\n--\n\n"
                   "os.lseek: moves the position by whence, SEEK_DATA and SEEK_HOLE too; the new "
                   "one, in bytes.\n\nSource: lseek(2)."),
    {NULL, NULL, 0, NULL},
};
