/*
 * file_io.c - the methods of FileIO that move bytes or the position, and those that tell what it
 * can do. The type itself is in file_type.c.
 */
#include <sys/stat.h>
#include <sys/uio.h>

#include "core/fd.h"
#include "python/file_type.h"
#include "python/gil.h"

/* ---- checks ---- */

static PyObject *raise_closed(void)
{
    PyErr_SetString(PyExc_ValueError, "I/O operation on closed file");
    return NULL;
}

static void raise_unsupported(const char *text)
{
    PyObject *type = df_fast_own(df_fast.unsupported, "io", "UnsupportedOperation");
    if (type)
        PyErr_SetString(type, text);
    Py_XDECREF(type);
}

int df_file_io_descriptor(PyObject *self, int need)
{
    const struct df_raw_file *file = df_raw_file_of(self);
    if (file->fd < 0) {
        raise_closed();
        return -1;
    }
    if ((file->open_mode & need) != need) {
        raise_unsupported(need & DF_FILE_MODE_READ ? "File not open for reading"
                                                   : "File not open for writing");
        return -1;
    }
    return file->fd;
}

/* A count; None when a non-blocking file has nothing now (io.RawIOBase); or the error. */
static PyObject *count_or_none(ssize_t count)
{
    if (count >= 0)
        return PyLong_FromSsize_t(count);
    if (count == -EAGAIN)
        Py_RETURN_NONE;
    return df_error_raise(count, NULL, NULL);
}

PyObject *df_file_io_bytes_or_none(PyObject *bytes)
{
    if (bytes || !PyErr_ExceptionMatches(PyExc_BlockingIOError))
        return bytes;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* ---- reading ---- */

static PyObject *file_readinto(PyObject *self, PyObject *buffer)
{
    Py_buffer view;
    ssize_t count;
    int fd = df_file_io_descriptor(self, DF_FILE_MODE_READ);
    if (fd < 0)
        return NULL;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) < 0) /* io has one error for all of it */
        return PyErr_Format(PyExc_TypeError,
                            "readinto() argument must be read-write bytes-like object, not %R",
                            (PyObject *)Py_TYPE(buffer));
    DF_GIL_CALL(count, (size_t)view.len, df_call_read(fd, view.buf, (size_t)view.len));
    PyBuffer_Release(&view);
    return count_or_none(count);
}

/* Bytes between the position and the end of the file, 0 when that cannot be told. */
static Py_ssize_t bytes_left(int fd)
{
    struct stat st;
    off_t position = df_call_lseek(fd, 0, SEEK_CUR);
    if (position < 0 || df_call_fstat(fd, &st) < 0 || st.st_size <= position)
        return 0;
    return (Py_ssize_t)(st.st_size - position);
}

enum { GROWTH = 64 << 10 }; /* bytes read at a time when the size of a file is not known */

/* Appends what remains of the file to `data`, a bytearray. 0, or -1 with an exception. */
static int read_rest(int fd, PyObject *data)
{
    for (;;) {
        Py_ssize_t used = PyByteArray_Size(data);
        if (PyByteArray_Resize(data, used + GROWTH + used / 2) < 0)
            return -1;
        size_t room = (size_t)(PyByteArray_Size(data) - used);
        char *to = PyByteArray_AsString(data) + used;
        ssize_t count;
        DF_GIL_CALL(count, room, df_call_read(fd, to, room));
        if (PyByteArray_Resize(data, used + (count > 0 ? count : 0)) < 0)
            return -1;
        if (count == 0 || (count == -EAGAIN && used > 0))
            return 0;
        if (count < 0) {
            df_error_raise(count, NULL, NULL);
            return -1;
        }
    }
}

/* `first` is what was read so far; consumed. */
static PyObject *read_growing(int fd, PyObject *first)
{
    PyObject *data = PyByteArray_FromObject(first);
    PyObject *result = NULL;
    Py_DECREF(first);
    if (data && read_rest(fd, data) == 0)
        result = PyBytes_FromStringAndSize(PyByteArray_AsString(data), PyByteArray_Size(data));
    Py_XDECREF(data);
    return result;
}

/* What was read is not what was expected: `count` bytes of `bytes`, which is consumed, and `more`
 * behind them. */
static PyObject *read_on(int fd, PyObject *bytes, Py_ssize_t count, char more)
{
    Py_ssize_t size = PyBytes_Size(bytes);
    PyObject *first =
        PyBytes_FromStringAndSize(PyBytes_AsString(bytes), count < size ? count : size);
    Py_DECREF(bytes);
    if (first && count > size)
        PyBytes_ConcatAndDel(&first, PyBytes_FromStringAndSize(&more, 1)); /* NULL when more is */
    return first && count > 0 ? read_growing(fd, first) : first;
}

/* The expected bytes and one that is not there: so that was the end. Sizes are promises only. */
PyObject *df_file_io_read_all(int fd, Py_ssize_t expected)
{
    ssize_t count = expected;
    char more = 0;
    if (count < 0)
        DF_GIL_CALL(count, 0, bytes_left(fd));
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, count);
    if (!bytes)
        return NULL;
    const Py_ssize_t size = count;
    const struct iovec iov[] = {{PyBytes_AsString(bytes), (size_t)size}, {&more, 1}};
    DF_GIL_CALL(count, (size_t)size, df_call_readv(fd, iov, 2));
    if (DF_LIKELY(count == size))
        return bytes;
    if (count >= 0)
        return read_on(fd, bytes, count, more);
    Py_DECREF(bytes);
    return df_error_raise(count, NULL, NULL);
}

static PyObject *file_readall(PyObject *self, PyObject *unused)
{
    (void)unused;
    int fd = df_file_io_descriptor(self, DF_FILE_MODE_READ);
    return fd < 0 ? NULL : df_file_io_bytes_or_none(df_file_io_read_all(fd, -1));
}

/* An optional size argument: -1 for none, None or anything negative. */
static int read_optional_size(PyObject *const *values, Py_ssize_t count, Py_ssize_t *size)
{
    *size = -1;
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "read expected at most 1 argument, got %zd", count);
        return -1;
    }
    if (count == 0 || values[0] == Py_None)
        return 0;
    *size = PyNumber_AsSsize_t(values[0], PyExc_OverflowError);
    return *size == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *file_read(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    Py_ssize_t size;
    int fd = df_file_io_descriptor(self, DF_FILE_MODE_READ);
    if (fd < 0 || read_optional_size(values, count, &size) < 0)
        return NULL;
    return df_file_io_bytes_or_none(size < 0 ? df_file_io_read_all(fd, -1)
                                             : df_fdio_read_bytes(fd, size, -1));
}

/* ---- writing ---- */

static PyObject *file_write(PyObject *self, PyObject *data)
{
    int fd = df_file_io_descriptor(self, DF_FILE_MODE_WRITE);
    return fd < 0 ? NULL : df_file_io_bytes_or_none(df_fdio_write_buffer(fd, data, -1));
}

static PyObject *current_position(int fd)
{
    off_t position;
    DF_GIL_CALL(position, 0, df_call_lseek(fd, 0, SEEK_CUR));
    if (position < 0)
        return df_error_raise(position, NULL, NULL);
    return PyLong_FromLongLong(position);
}

static PyObject *truncate_to(int fd, PyObject *size)
{
    int result;
    long long length = PyLong_AsLongLong(size);
    if (length == -1 && PyErr_Occurred())
        return NULL;
    DF_GIL_CALL(result, 0, df_call_ftruncate(fd, length));
    if (result < 0)
        return df_error_raise(result, NULL, NULL);
    return Py_NewRef(size);
}

static PyObject *file_truncate(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    int fd = df_file_io_descriptor(self, DF_FILE_MODE_WRITE);
    if (fd < 0)
        return NULL;
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "truncate expected at most 1 argument, got %zd", count);
        return NULL;
    }
    bool here = count == 0 || values[0] == Py_None;
    PyObject *size = here ? current_position(fd) : PyNumber_Index(values[0]);
    PyObject *result = size ? truncate_to(fd, size) : NULL;
    Py_XDECREF(size);
    return result;
}

/* ---- the position ---- */

static PyObject *file_seek(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    int fd = df_file_io_descriptor(self, 0);
    if (fd < 0)
        return NULL;
    if (count < 1 || count > 2) {
        PyErr_Format(PyExc_TypeError, "seek expected 1 or 2 arguments, got %zd", count);
        return NULL;
    }
    PyObject *index = PyNumber_Index(values[0]);
    long long offset = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    long whence = count == 2 && !PyErr_Occurred() ? PyLong_AsLong(values[1]) : SEEK_SET;
    if (PyErr_Occurred())
        return NULL;
    if (whence < INT_MIN || whence > INT_MAX)
        return df_error_raise(-EINVAL, NULL, NULL);
    off_t result;
    DF_GIL_CALL(result, 0, df_call_lseek(fd, offset, (int)whence));
    if (result < 0)
        return df_error_raise(result, NULL, NULL);
    return PyLong_FromLongLong(result);
}

static PyObject *file_tell(PyObject *self, PyObject *unused)
{
    (void)unused;
    int fd = df_file_io_descriptor(self, 0);
    return fd < 0 ? NULL : current_position(fd);
}

static PyObject *file_seekable(PyObject *self, PyObject *unused)
{
    (void)unused;
    int fd = df_file_io_descriptor(self, 0);
    if (fd < 0)
        return NULL;
    if (df_raw_file_of(self)->seekable < 0) {
        PyObject *position = current_position(fd);
        df_raw_file_of(self)->seekable = position != NULL;
        Py_XDECREF(position);
        PyErr_Clear();
    }
    return PyBool_FromLong(df_raw_file_of(self)->seekable);
}

/* ---- what it is ---- */

static PyObject *file_readable(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (df_file_io_descriptor(self, 0) < 0)
        return NULL;
    return PyBool_FromLong(df_raw_file_of(self)->open_mode & DF_FILE_MODE_READ);
}

static PyObject *file_writable(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (df_file_io_descriptor(self, 0) < 0)
        return NULL;
    return PyBool_FromLong(df_raw_file_of(self)->open_mode & DF_FILE_MODE_WRITE);
}

static PyObject *file_isatty(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (df_file_io_descriptor(self, 0) < 0)
        return NULL;
    Py_RETURN_FALSE;
}

/* Programs hand the number to the kernel (mmap, select, child processes): only a real one will do.
 */
static PyObject *file_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (df_file_io_descriptor(self, 0) < 0)
        return NULL;
    raise_unsupported(
        "fileno: a file in a mount has no descriptor of the kernel (in a program that is "
        "started by `directfuse run` it has); for functions of directfuse take the "
        "attribute `descriptor` of the raw file");
    return NULL;
}

PyMethodDef df_file_io_methods[] = {
    DF_FAST_METHOD("read", file_read, METH_FASTCALL,
                   "read($self, size=-1, /)\n--\n\nAt most size bytes; all when negative."),
    {"readall", file_readall, METH_NOARGS,
     PyDoc_STR("readall($self, /)\n--\n\nAll bytes up to the end of the file.")},
    {"readinto", file_readinto, METH_O,
     PyDoc_STR("readinto($self, buffer, /)\n--\n\nReads into a writable buffer; bytes read.")},
    {"write", file_write, METH_O,
     PyDoc_STR("write($self, b, /)\n--\n\nWrites at the position; bytes written.")},
    DF_FAST_METHOD("truncate", file_truncate, METH_FASTCALL,
                   "truncate($self, size=None, /)\n--\n\n"
                   "Sets the size in bytes, by default to the position; the new size."),
    DF_FAST_METHOD("seek", file_seek, METH_FASTCALL,
                   "seek($self, pos, whence=0, /)\n--\n\nMoves the position; the new one."),
    {"tell", file_tell, METH_NOARGS, PyDoc_STR("tell($self, /)\n--\n\nThe position in bytes.")},
    {"seekable", file_seekable, METH_NOARGS,
     PyDoc_STR("seekable($self, /)\n--\n\nWhether the position can be moved.")},
    {"readable", file_readable, METH_NOARGS,
     PyDoc_STR("readable($self, /)\n--\n\nWhether it was opened for reading.")},
    {"writable", file_writable, METH_NOARGS,
     PyDoc_STR("writable($self, /)\n--\n\nWhether it was opened for writing.")},
    {"isatty", file_isatty, METH_NOARGS, PyDoc_STR("isatty($self, /)\n--\n\nFalse.")},
    {"fileno", file_fileno, METH_NOARGS,
     PyDoc_STR("fileno($self, /)\n--\n\nRaises io.UnsupportedOperation: no real descriptor.")},
    {"close", df_file_type_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\nCloses the file.")},
    {"_dealloc_warn", df_file_type_dealloc_warn, METH_O, NULL},
    {"__getstate__", df_file_type_getstate, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
