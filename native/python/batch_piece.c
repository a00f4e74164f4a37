/*
 * batch_piece.c - requests of read_many: what is asked for, opened and closed run by run.
 */
#include <errno.h>
#include <sys/stat.h>

#include <directfuse.h>

#include "core/fd.h"
#include "python/batch.h"
#include "python/gil.h"

/* ---- what is asked for ---- */

/* Unless a number in it has raised something itself; a TypeError says that it is none, as one of
 * numpy's arrays does. */
static int refuse(PyObject *request)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Format(PyExc_TypeError,
                 "a request is a path, a descriptor or (path or descriptor, offset, length), not "
                 "%R",
                 request);
    return -1;
}

/* A path or a descriptor. */
static int read_file(struct df_piece *piece, PyObject *file, PyObject *request)
{
    piece->fd = -EBADF;
    if (PyIndex_Check(file) && !PyBool_Check(file)) {
        if (!df_args_fd(file, &piece->fd))
            return refuse(request);
        piece->fd = piece->fd < 0 ? -EBADF : piece->fd;
        return 0;
    }
    if (df_path_read(&piece->path, file) < 0)
        return -1;
    return piece->path.object ? 0 : refuse(request);
}

static int read_extent(struct df_piece *piece, PyObject *request)
{
    PyObject *length = PyTuple_GetItem(request, 2);
    piece->file = Py_NewRef(PyTuple_GetItem(request, 0));
    if (!df_args_offset(PyTuple_GetItem(request, 1), &piece->offset) ||
        (length != Py_None && !df_args_size(length, &piece->size)))
        return refuse(request);
    if (piece->offset < 0 || (length != Py_None && piece->size < 0)) {
        df_error_raise(-EINVAL, NULL, NULL);
        return -1;
    }
    return read_file(piece, piece->file, request);
}

int df_piece_read(struct df_piece *piece, PyObject *request)
{
    *piece = (struct df_piece){.size = -1};
    if (PyTuple_Check(request) && PyTuple_Size(request) == 3)
        return read_extent(piece, request);
    if (!PyList_Check(request)) {
        piece->file = Py_NewRef(request);
        return read_file(piece, request, request);
    }
    PyObject *tuple = PySequence_Tuple(request);
    int result = !tuple                     ? -1
                 : PyTuple_Size(tuple) == 3 ? read_extent(piece, tuple)
                                            : refuse(request);
    Py_XDECREF(tuple);
    return result;
}

/* ---- opening ---- */

/* The rest of the file from the offset on, as fstat tells it: 0, or its error, which is the
 * result. No GIL is needed. */
static int find_size(struct df_piece *piece)
{
    struct stat st;
    piece->result = df_fstat(piece->fd, &st) < 0 ? -errno : 0;
    if (piece->result < 0)
        return (int)piece->result;
    piece->whole = true;
    piece->size = st.st_size > piece->offset ? st.st_size - piece->offset : 0;
    return 0;
}

static void open_ours(struct df_piece *piece)
{
    if (piece->path.text) {
        piece->fd = df_call_openat(AT_FDCWD, piece->path.text, O_RDONLY | O_CLOEXEC, 0);
        piece->opened = piece->fd >= 0;
    } else if (piece->path.object) {
        piece->fd = DF_NOT_OURS; /* os is to say what is wrong with it */
    }
    if (piece->fd >= 0 && piece->size < 0)
        find_size(piece);
}

/* A path of the real file system, or one that a signal interrupted: as os_open() does it. */
static int open_elsewhere(struct df_piece *piece)
{
    PyObject *fd = df_open_path(piece->file, O_RDONLY);
    if (!fd && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1; /* KeyboardInterrupt and its like end the batch */
    if (!fd) {
        PyObject *type, *traceback;
        PyErr_Fetch(&type, &piece->failure, &traceback);
        PyErr_NormalizeException(&type, &piece->failure, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
        return 0;
    }
    piece->opened = df_args_fd(fd, &piece->fd);
    Py_DECREF(fd);
    return 0;
}

/* What open_ours() has left, to be done with the GIL. -1 with an exception that ends the batch. */
static int finish_opening(struct df_piece *piece)
{
    bool elsewhere = piece->fd == DF_NOT_OURS || piece->fd == -EINTR;
    int result = 0;
    if (elsewhere && piece->path.object && open_elsewhere(piece) < 0)
        return -1;
    if (piece->fd >= 0 && piece->size < 0 && (elsewhere || piece->result == -EINTR))
        DF_GIL_CALL(result, 0, find_size(piece));
    return result == -EINTR ? -1 : 0;
}

int df_piece_open(struct df_piece *pieces, Py_ssize_t count)
{
    bool work = false;
    for (Py_ssize_t i = 0; i < count; i++)
        work = work || pieces[i].path.object || pieces[i].size < 0;
    if (!work)
        return 0;
    PyThreadState *state = df_gil_keep(0) ? NULL : PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < count; i++)
        open_ours(&pieces[i]);
    if (state)
        PyEval_RestoreThread(state);
    for (Py_ssize_t i = 0; i < count; i++)
        if (finish_opening(&pieces[i]) < 0)
            return -1;
    return 0;
}

/* ---- the end ---- */

/* Nothing was written, so nothing can be lost: errors of close() are not looked at. */
void df_piece_close(struct df_piece *pieces, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (pieces[i].opened)
            df_close(pieces[i].fd);
        pieces[i].opened = false;
    }
}

void df_piece_clear(struct df_piece *pieces, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        df_path_clear(&pieces[i].path);
        Py_CLEAR(pieces[i].failure);
        Py_CLEAR(pieces[i].file);
    }
}
