/*
 * batch.c - read_many: many reads, of any files, in one call: run by run they are opened, read by
 * one df_read_batch() that the plugin may overlap, and closed.
 */
#include <errno.h>
#include <string.h>

#include <directfuse.h>

#include "core/fd.h"
#include "python/batch.h"
#include "python/gil.h"

struct batch {
    PyObject *requests; /* a tuple */
    PyObject *results;  /* a list: bytes, counts, or exceptions */
    PyObject *buffers;  /* list or tuple of buffers, borrowed; or NULL */
    Py_buffer view;     /* of the one buffer; obj NULL: there is none */
    size_t used;        /* bytes of it that are given away */
    bool return_errors;
};

/* A run: requests first .. first + count - 1 of the batch. */
struct run {
    struct df_piece pieces[DF_BATCH_RUN];
    PyObject *bytes[DF_BATCH_RUN]; /* new objects to read into, or NULL */
    Py_buffer views[DF_BATCH_RUN]; /* of a list of buffers; obj NULL: none */
    struct df_read reads[DF_BATCH_RUN];
    Py_ssize_t at[DF_BATCH_RUN]; /* which piece a read belongs to */
    Py_ssize_t first, count;
};

static bool failed(const struct df_piece *piece)
{
    return piece->failure || piece->fd < 0 || piece->result < 0;
}

/* ---- files that tell no size ---- */

enum { SIZELESS = 64 << 10 }; /* bytes that are tried first */

/* Empty ones, mostly; but those of /proc say 0 bytes and have more. */
static bool tells_no_size(const struct df_piece *piece)
{
    return piece->whole && piece->size == 0;
}

static ssize_t read_more(const struct df_piece *piece, size_t room)
{
    ssize_t count = df_pread(piece->fd, (char *)piece->buf + piece->size, room - piece->size,
                             piece->offset + piece->size);
    return count < 0 ? -errno : count;
}

/* From what it has read on, to the end of the file or of `room`. -1 with an exception: of a
 * signal's handler. */
static int read_rest(struct df_piece *piece, size_t room)
{
    const size_t copied = df_fd_ours(piece->fd) ? room : SIZE_MAX; /* the kernel may wait */
    ssize_t count = 1;
    while (count > 0 && (size_t)piece->size < room) {
        DF_GIL_CALL(count, copied, read_more(piece, room));
        piece->size += count > 0 ? count : 0;
    }
    piece->read = true;
    piece->result = count < 0 ? count : piece->size;
    return PyErr_Occurred() ? -1 : 0;
}

/* Into bytes that grow with it: a new object, or NULL with an exception. */
static PyObject *read_growing(struct df_piece *piece)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, SIZELESS);
    for (Py_ssize_t room = SIZELESS; bytes; room = PyBytes_Size(bytes)) {
        piece->buf = PyBytes_AsString(bytes);
        if (read_rest(piece, (size_t)room) < 0)
            Py_CLEAR(bytes);
        if (!bytes || piece->result < room)
            return bytes;
        PyObject *more = PyBytes_FromStringAndSize(NULL, 2 * room);
        if (more)
            memcpy(PyBytes_AsString(more), piece->buf, (size_t)room);
        Py_DECREF(bytes);
        bytes = more;
    }
    return NULL;
}

/* ---- where it goes ---- */

static int refuse_size(Py_ssize_t index, size_t needed, size_t room)
{
    PyErr_Format(PyExc_ValueError, "request %zd is for %zu bytes, the buffer has room for %zu",
                 index, needed, room);
    return -1;
}

static int aim_at_bytes(struct run *run, Py_ssize_t i)
{
    struct df_piece *piece = &run->pieces[i];
    run->bytes[i] =
        tells_no_size(piece) ? read_growing(piece) : PyBytes_FromStringAndSize(NULL, piece->size);
    if (!run->bytes[i])
        return -1;
    piece->buf = PyBytes_AsString(run->bytes[i]);
    return 0;
}

/* The next piece of the one buffer. A file that tells no size is read now: where the one behind it
 * goes is not known before. */
static int aim_at_rest(struct batch *batch, struct run *run, Py_ssize_t i)
{
    struct df_piece *piece = &run->pieces[i];
    size_t room = (size_t)batch->view.len - batch->used;
    if ((size_t)piece->size > room)
        return refuse_size(run->first + i, (size_t)piece->size, room);
    piece->buf = (char *)batch->view.buf + batch->used;
    if (tells_no_size(piece) && read_rest(piece, room) < 0)
        return -1;
    batch->used += (size_t)piece->size;
    return 0;
}

/* Its own buffer, which a request for a whole file fills at most. */
static int aim_at_own(struct batch *batch, struct run *run, Py_ssize_t i)
{
    struct df_piece *piece = &run->pieces[i];
    PyObject *buffer = PySequence_GetItem(batch->buffers, run->first + i);
    int error = buffer ? PyObject_GetBuffer(buffer, &run->views[i], PyBUF_WRITABLE) : -1;
    Py_XDECREF(buffer);
    if (error < 0)
        return -1;
    piece->buf = run->views[i].buf;
    if (tells_no_size(piece))
        return read_rest(piece, (size_t)run->views[i].len);
    if (piece->whole)
        piece->size = run->views[i].len;
    if (piece->size > run->views[i].len)
        return refuse_size(run->first + i, (size_t)piece->size, (size_t)run->views[i].len);
    return 0;
}

static int aim(struct batch *batch, struct run *run)
{
    for (Py_ssize_t i = 0; i < run->count; i++) {
        if (failed(&run->pieces[i]))
            continue;
        int error = batch->buffers    ? aim_at_own(batch, run, i)
                    : batch->view.obj ? aim_at_rest(batch, run, i)
                                      : aim_at_bytes(run, i);
        if (error < 0)
            return -1;
    }
    return 0;
}

/* ---- reading ---- */

/* Those that are to be read: all at first, then those that a signal interrupted. */
static size_t collect(struct run *run, bool again)
{
    size_t count = 0;
    for (Py_ssize_t i = 0; i < run->count; i++) {
        const struct df_piece *piece = &run->pieces[i];
        if (piece->failure || piece->fd < 0 || piece->read ||
            (again ? piece->result != -EINTR : piece->result < 0))
            continue;
        run->at[count] = i;
        run->reads[count++] =
            (struct df_read){piece->fd, piece->buf, (size_t)piece->size, piece->offset, 0};
    }
    return count;
}

static int read_collected(struct run *run, size_t count)
{
    int error = 0;
    size_t size = 0;
    bool real = false; /* the kernel's: may wait for a disk */
    for (size_t i = 0; i < count; i++) {
        size += run->reads[i].size;
        real = real || !df_fd_ours(run->reads[i].fd);
    }
    PyThreadState *state = !real && df_gil_keep(size) ? NULL : PyEval_SaveThread();
    if (df_read_batch(run->reads, count) < 0)
        error = -errno;
    if (state)
        PyEval_RestoreThread(state);
    for (size_t i = 0; !error && i < count; i++)
        run->pieces[run->at[i]].result = run->reads[i].result;
    return error;
}

static int read_run(struct run *run)
{
    bool again = false;
    for (size_t count; (count = collect(run, again)) > 0; again = true) {
        int error = read_collected(run, count);
        if (error < 0) {
            df_error_raise(error, NULL, NULL);
            return -1;
        }
        if (PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

static void close_run(struct run *run)
{
    bool work = false, real = false;
    for (Py_ssize_t i = 0; i < run->count; i++) {
        work = work || run->pieces[i].opened;
        real = real || (run->pieces[i].opened && !df_fd_ours(run->pieces[i].fd));
    }
    if (!work)
        return;
    PyThreadState *state = !real && df_gil_keep(0) ? NULL : PyEval_SaveThread();
    df_piece_close(run->pieces, run->count);
    if (state)
        PyEval_RestoreThread(state);
}

/* ---- what came ---- */

/* The exception of a request, with a note that names it. */
static PyObject *failure_of(struct df_piece *piece, Py_ssize_t index)
{
    PyObject *type, *value, *traceback;
    if (piece->failure) {
        value = Py_NewRef(piece->failure);
    } else {
        df_error_raise(piece->result < 0 ? piece->result : piece->fd, piece->path.object, NULL);
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    PyObject *note = piece->size < 0
                         ? PyUnicode_FromFormat("request %zd: %R", index, piece->file)
                         : PyUnicode_FromFormat("request %zd: %R, %zd bytes at %lld", index,
                                                piece->file, piece->size, (long long)piece->offset);
    PyObject *done = note ? PyObject_CallMethod(value, "add_note", "O", note) : NULL;
    PyErr_Clear(); /* the error itself matters more than its note */
    Py_XDECREF(note);
    Py_XDECREF(done);
    return value;
}

static PyObject *result_of(struct run *run, Py_ssize_t i)
{
    struct df_piece *piece = &run->pieces[i];
    if (failed(piece))
        return failure_of(piece, run->first + i);
    if (!run->bytes[i])
        return PyLong_FromSsize_t(piece->result);
    if (piece->result == PyBytes_Size(run->bytes[i]))
        return Py_NewRef(run->bytes[i]);
    return PyBytes_FromStringAndSize(piece->buf, piece->result);
}

static int store_results(struct batch *batch, struct run *run)
{
    for (Py_ssize_t i = 0; i < run->count; i++) {
        PyObject *result = result_of(run, i);
        if (!result)
            return -1;
        if (failed(&run->pieces[i]) && !batch->return_errors) {
            PyErr_SetObject((PyObject *)Py_TYPE(result), result);
            Py_DECREF(result);
            return -1;
        }
        PyList_SetItem(batch->results, run->first + i, result);
    }
    return 0;
}

/* ---- a run ---- */

static int parse_run(struct batch *batch, struct run *run, Py_ssize_t first)
{
    Py_ssize_t left = PyTuple_Size(batch->requests) - first;
    Py_ssize_t wanted = left < DF_BATCH_RUN ? left : DF_BATCH_RUN;
    run->first = first;
    for (run->count = 0; run->count < wanted;) {
        PyObject *request = PyTuple_GetItem(batch->requests, first + run->count);
        if (df_piece_read(&run->pieces[run->count++], request) < 0)
            return -1;
    }
    return 0;
}

static void clear_run(struct run *run)
{
    close_run(run);
    for (Py_ssize_t i = 0; i < run->count; i++) {
        Py_CLEAR(run->bytes[i]);
        if (run->views[i].obj)
            PyBuffer_Release(&run->views[i]);
    }
    df_piece_clear(run->pieces, run->count);
}

static int do_run(struct batch *batch, struct run *run, Py_ssize_t first)
{
    memset(run->bytes, 0, sizeof(run->bytes));
    memset(run->views, 0, sizeof(run->views));
    int error = parse_run(batch, run, first);
    if (error == 0)
        error = df_piece_open(run->pieces, run->count);
    if (error == 0)
        error = aim(batch, run);
    if (error == 0)
        error = read_run(run);
    if (error == 0)
        close_run(run);
    if (error == 0)
        error = store_results(batch, run);
    if (error < 0) { /* whatever clearing does, this is the exception */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        clear_run(run);
        PyErr_Restore(type, value, traceback);
    } else {
        clear_run(run);
    }
    return error;
}

static int do_runs(struct batch *batch)
{
    struct run *run = PyMem_Malloc(sizeof(*run));
    Py_ssize_t total = PyTuple_Size(batch->requests);
    int error = 0;
    if (!run) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t first = 0; error == 0 && first < total; first += run->count)
        error = do_run(batch, run, first);
    PyMem_Free(run);
    return error;
}

/* ---- the call ---- */

static int take_into(struct batch *batch, PyObject *into)
{
    if (!into || into == Py_None)
        return 0;
    if (!PyList_Check(into) && !PyTuple_Check(into))
        return PyObject_GetBuffer(into, &batch->view, PyBUF_WRITABLE);
    Py_ssize_t there = PySequence_Size(into), wanted = PyTuple_Size(batch->requests);
    if (there != wanted) {
        PyErr_Format(PyExc_ValueError, "%zd requests, but %zd buffers", wanted, there);
        return -1;
    }
    batch->buffers = into;
    return 0;
}

static int take_errors(struct batch *batch, const char *errors)
{
    batch->return_errors = strcmp(errors, "return") == 0;
    if (batch->return_errors || strcmp(errors, "raise") == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "errors is 'raise' or 'return', not '%s'", errors);
    return -1;
}

static PyObject *read_many(PyObject *module, PyObject *args, PyObject *options)
{
    static char *names[] = {"requests", "into", "errors", NULL};
    struct batch batch = {0};
    PyObject *requests, *into = NULL;
    const char *errors = "raise";
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, options, "O|O$s:read_many", names, &requests, &into,
                                     &errors) ||
        take_errors(&batch, errors) < 0)
        return NULL;
    if (PyUnicode_Check(requests) || PyBytes_Check(requests)) {
        PyErr_SetString(PyExc_TypeError, "requests is a sequence of paths or (file, offset, "
                                         "length), not one path");
        return NULL;
    }
    batch.requests = PySequence_Tuple(requests);
    if (batch.requests && take_into(&batch, into) == 0)
        batch.results = PyList_New(PyTuple_Size(batch.requests));
    if (batch.results && do_runs(&batch) < 0)
        Py_CLEAR(batch.results);
    if (batch.view.obj)
        PyBuffer_Release(&batch.view);
    Py_XDECREF(batch.requests);
    return batch.results;
}

PyMethodDef df_batch_methods[] = {
    DF_FAST_METHOD(
        "read_many", read_many, METH_VARARGS | METH_KEYWORDS,
        "read_many($module, /, requests, into=None, *, errors='raise')\n--\n\n"
        "Many reads of many files in one call, which a plugin may overlap.\n\n"
        "requests: of each, a path or descriptor, read to its end; or (path or\n"
        "    descriptor, offset in bytes, length in bytes or None: to the end). Files of\n"
        "    the ordinary file system serve too. A path is opened for the call.\n"
        "into: None for new bytes objects; a writable buffer, filled from its start,\n"
        "    each request at the sum of the lengths before it; or a list or tuple of\n"
        "    buffers, one for each request, which a whole file fills at most.\n"
        "errors: 'raise' raises the OSError of the first request that failed, with a\n"
        "    note that names it; 'return' puts it into the list.\n\n"
        "Returns a list: the bytes, or with `into` the count of bytes, of each request;\n"
        "fewer than asked for at the end of a file."),
    {NULL, NULL, 0, NULL},
};
