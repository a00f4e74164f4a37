/*
 * dormant.c - a file that is opened, read whole and dropped: `open(path).read()`.
 *
 * io's buffer and decoder cost several times what the file system does for such a file, and it
 * needs neither. So a file opened for reading begins as an object of a subclass of
 * io.BufferedReader or io.TextIOWrapper whose base is not initialized. It knows how to read all, to
 * close and to end. For anything else - any other attribute, iteration, repr() - it awakes: the
 * layers are made, and the object becomes one of io's own class, as an assignment to __class__ does
 * it. From then on nothing of this file is in its way.
 *
 * The fields are protected by the GIL, and used by one thread at a time, as io's buffers are: while
 * one reads or awakes without the GIL, no other closes the file under it.
 */
#include "python/dormant.h"

#include <langinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "python/ascii.h"
#include "python/gil.h"

struct dormant {
    int fd;              /* virtual descriptor; -1: closed */
    Py_ssize_t expected; /* bytes behind the position; -1: not known, it was read */
    Py_ssize_t buffer_size;
    PyObject *name;
    PyObject *mode; /* NULL: of bytes */
    PyObject *encoding;
    _Atomic(const void *) user; /* an address that only its thread has; NULL: nobody */
};

/* What the two kinds differ in. Set once. */
struct kind {
    PyTypeObject *type;
    PyTypeObject *base; /* of io */
    PyObject *init;     /* base.__init__ */
    Py_ssize_t offset;  /* of struct dormant in an object */
};

static struct kind bytes_kind, text_kind;
static PyObject *name_read, *name_close, *name_closed, *name_mode; /* interned */
static bool utf8_mode;                                             /* sys.flags.utf8_mode */
static bool warns_of_encoding; /* sys.flags.warn_default_encoding */

/* NULL: it has awoken. */
static struct kind *kind_of(PyObject *self)
{
    return Py_TYPE(self) == bytes_kind.type  ? &bytes_kind
           : Py_TYPE(self) == text_kind.type ? &text_kind
                                             : NULL;
}

static struct dormant *dormant_of(PyObject *self, const struct kind *kind)
{
    return (struct dormant *)((char *)self + kind->offset);
}

/* ---- one thread at a time ---- */

static _Thread_local char this_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who waits, and ends a use then */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;  /* a use of any file that is waited for */
static unsigned waiting;                                 /* threads; protected by the GIL */

static void await_end(const struct dormant *d)
{
    waiting++;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&lock);
    while (d->user)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS;
    waiting--;
}

/* Its fields, until end_use(). NULL: it has awoken; or, with an exception, a signal's handler came
 * here in the middle of a use. */
static struct dormant *use(PyObject *self)
{
    const struct kind *kind = kind_of(self);
    struct dormant *d = kind ? dormant_of(self, kind) : NULL;
    if (d && d->user == &this_thread) {
        PyErr_SetString(PyExc_RuntimeError, "reentrant call inside a file");
        return NULL;
    }
    while (d && d->user)
        await_end(d);
    if (!d || !kind_of(self)) /* it awoke meanwhile */
        return NULL;
    atomic_store_explicit(&d->user, &this_thread, memory_order_relaxed);
    return d;
}

static void end_use(struct dormant *d)
{
    if (waiting == 0) {
        atomic_store_explicit(&d->user, NULL, memory_order_relaxed);
        return;
    }
    pthread_mutex_lock(&lock);
    d->user = NULL;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

/* ---- awaking ---- */

static int initialize(PyObject *self, const struct kind *kind, PyObject *raw)
{
    const struct dormant *d = dormant_of(self, kind);
    PyObject *size = PyLong_FromSsize_t(d->buffer_size);
    PyObject *done = NULL;
    if (size && kind == &bytes_kind) {
        done = PyObject_CallFunctionObjArgs(kind->init, self, raw, size, NULL);
    } else if (size) {
        PyObject *buffer =
            PyObject_CallFunctionObjArgs((PyObject *)bytes_kind.base, raw, size, NULL);
        if (buffer)
            done = PyObject_CallFunctionObjArgs(kind->init, self, buffer, d->encoding, NULL);
        if (done && PyObject_GenericSetAttr(self, name_mode, d->mode) < 0)
            Py_CLEAR(done);
        Py_XDECREF(buffer);
    }
    Py_XDECREF(size);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static void forget(struct dormant *d)
{
    Py_CLEAR(d->name);
    Py_CLEAR(d->mode);
    Py_CLEAR(d->encoding);
}

/* The object counts for its class, if that is counted. */
static void become(PyObject *self, const struct kind *kind)
{
    if (PyType_GetFlags(kind->base) & Py_TPFLAGS_HEAPTYPE)
        Py_INCREF((PyObject *)kind->base);
    Py_SET_TYPE(self, kind->base);
    Py_DECREF((PyObject *)kind->type);
}

enum { NOBODYS_FD = INT_MAX }; /* one of ours by its number; never given out */

/* As io's own is after close(), which it notes beside `closed`. */
static int shut(PyObject *raw)
{
    df_raw_file_of(raw)->fd = -1;
    PyObject *done = PyObject_CallMethodObjArgs(raw, name_close, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Layers are not made over a closed file, so one is closed only afterwards. */
static int make_layers(PyObject *self, const struct kind *kind)
{
    struct dormant *d = dormant_of(self, kind);
    const bool closed = d->fd < 0;
    PyObject *raw =
        df_file_type_make(closed ? NOBODYS_FD : d->fd, d->name, DF_FILE_MODE_READ, true);
    if (!raw)
        return -1;
    int error = initialize(self, kind, raw);
    if (error < 0)
        df_raw_file_of(raw)->fd = -1;
    else if (closed)
        error = shut(raw);
    if (error == 0) {
        d->fd = -1;
        forget(d);
        become(self, kind);
    }
    Py_DECREF(raw);
    return error;
}

/* 0: it is awake. -1 with an exception: it sleeps on, with its descriptor. */
static int awake(PyObject *self)
{
    struct dormant *d = use(self);
    if (!d)
        return PyErr_Occurred() ? -1 : 0;
    int error = make_layers(self, kind_of(self));
    end_use(d);
    return error;
}

/* ---- reading all ---- */

static PyObject *wake_and_call(PyObject *self, PyObject *name, PyObject *args)
{
    PyObject *method = awake(self) < 0 ? NULL : PyObject_GetAttr(self, name);
    PyObject *result = method ? PyObject_Call(method, args, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

/* Without arguments, with None or -1. */
static bool asks_for_all(PyObject *args)
{
    int size = -1;
    if (PyTuple_Size(args) == 0)
        return true;
    if (PyTuple_Size(args) > 1)
        return false;
    PyObject *value = PyTuple_GetItem(args, 0);
    return value == Py_None || (PyLong_Check(value) && df_args_int(value, &size) && size == -1);
}

/* The decoder is to do it, from here. NULL without an exception, unless going back failed. */
static PyObject *go_back(int fd, off_t position)
{
    PyErr_Clear();
    DF_GIL_CALL(position, 0, df_call_lseek(fd, position, SEEK_SET));
    return NULL;
}

/* The str itself, if its bytes will do; consumed. */
static PyObject *finish_text(PyObject *text, const char *data, Py_ssize_t size)
{
    unsigned traits = df_ascii_look(data, (size_t)size);
    if (traits == 0)
        return text;
    PyObject *decoded = traits & DF_ASCII_RETURN ? NULL : PyUnicode_DecodeUTF8(data, size, NULL);
    Py_DECREF(text);
    return decoded;
}

/* Of a file that is as long as expected, and ASCII as a rule: read straight into the str. */
static PyObject *read_text_of(int fd, off_t position, PyObject *text, char *data, Py_ssize_t size)
{
    char more;
    const struct iovec iov[] = {{data, (size_t)size}, {&more, 1}};
    ssize_t count;
    DF_GIL_CALL(count, (size_t)size, df_call_readv(fd, iov, 2));
    if (DF_LIKELY(count == size)) {
        text = finish_text(text, data, size);
    } else {
        Py_CLEAR(text);
        if (count < 0 && count != -EAGAIN)
            return df_error_raise(count, NULL, NULL);
    }
    return text ? text : go_back(fd, position);
}

static PyObject *read_bytes_as_text(int fd, off_t position)
{
    PyObject *bytes = df_file_io_bytes_or_none(df_file_io_read_all(fd, -1));
    if (!bytes || bytes == Py_None) {
        Py_XDECREF(bytes);
        return NULL;
    }
    const char *data = PyBytes_AsString(bytes);
    Py_ssize_t size = PyBytes_Size(bytes);
    PyObject *text =
        memchr(data, '\r', (size_t)size) ? NULL : PyUnicode_DecodeUTF8(data, size, NULL);
    Py_DECREF(bytes);
    return text ? text : go_back(fd, position);
}

/* The text of what is left in the file. NULL without an exception: the decoder is to do it, from
 * the same position: it knows about lines that end in \r, about bytes that are no text, and files
 * that have nothing now. */
static PyObject *read_text(int fd, Py_ssize_t expected)
{
    char *data;
    off_t position;
    DF_GIL_CALL(position, 0, df_call_lseek(fd, 0, SEEK_CUR));
    if (position < 0) /* there would be no way back to it */
        return NULL;
    PyObject *text = df_ascii_new(expected, &data);
    if (text)
        return read_text_of(fd, position, text, data, expected);
    return PyErr_Occurred() ? NULL : read_bytes_as_text(fd, position);
}

/* As read_text(). */
static PyObject *read_all(struct dormant *d, const struct kind *kind)
{
    Py_ssize_t expected = d->expected;
    d->expected = -1;
    if (kind == &bytes_kind)
        return df_file_io_bytes_or_none(df_file_io_read_all(d->fd, expected));
    return read_text(d->fd, expected);
}

static PyObject *dormant_read(PyObject *self, PyObject *args)
{
    struct dormant *d = asks_for_all(args) ? use(self) : NULL;
    PyObject *all = d && d->fd >= 0 ? read_all(d, kind_of(self)) : NULL;
    if (d)
        end_use(d);
    return all || PyErr_Occurred() ? all : wake_and_call(self, name_read, args);
}

/* ---- the end ---- */

/* 0 or a negative errno. */
static int close_now(struct dormant *d)
{
    int fd = d->fd;
    d->fd = -1;
    return fd < 0 ? 0 : df_open_close(fd);
}

static PyObject *dormant_close(PyObject *self, PyObject *args)
{
    struct dormant *d = use(self);
    if (!d)
        return wake_and_call(self, name_close, args);
    int error = close_now(d);
    end_use(d);
    if (error < 0)
        return df_error_raise(error, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(dormant_of(self, kind_of(self))->fd < 0);
}

/* By the classes of io, which say that it was not closed. */
static void end_awake(PyObject *self, const struct kind *kind)
{
    if (awake(self) == 0) {
        destructor end = (destructor)PyType_GetSlot(kind->base, Py_tp_finalize);
        end(self);
    } else {
        PyErr_WriteUnraisable(self);
        close_now(dormant_of(self, kind));
        forget(dormant_of(self, kind));
    }
}

/* Nobody refers to it any more. An error of closing is nobody's, as with io's finalizer. */
static void finalize(PyObject *self)
{
    PyObject *type, *value, *traceback;
    const struct kind *kind = kind_of(self);
    struct dormant *d = dormant_of(self, kind);
    PyErr_Fetch(&type, &value, &traceback);
    if (d->fd >= 0 && !df_unclosed_is_ignored()) {
        end_awake(self, kind);
    } else {
        close_now(d);
        forget(d);
    }
    PyErr_Clear(); /* a signal handler's, while it was closed */
    PyErr_Restore(type, value, traceback);
}

/* ---- everything else ---- */

/* Python code has the interned names; the interpreter's own code may have others that are equal. */
static bool is_known(PyObject *name)
{
    return name == name_read || name == name_close || name == name_closed ||
           PyUnicode_CompareWithASCIIString(name, "closed") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "close") == 0;
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    if (!is_known(name) && awake(self) < 0)
        return NULL;
    return PyObject_GenericGetAttr(self, name);
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    return awake(self) < 0 ? -1 : PyObject_GenericSetAttr(self, name, value);
}

static PyObject *dormant_repr(PyObject *self)
{
    return awake(self) < 0 ? NULL : PyObject_Repr(self);
}

static PyObject *next_line(PyObject *self)
{
    if (awake(self) < 0)
        return NULL;
    iternextfunc next = (iternextfunc)PyType_GetSlot(Py_TYPE(self), Py_tp_iternext);
    return next(self);
}

/* ---- making one ---- */

bool df_dormant_is_utf8(PyObject *encoding)
{
    if (encoding && encoding != Py_None)
        return PyUnicode_CompareWithASCIIString(encoding, "utf-8") == 0 ||
               PyUnicode_CompareWithASCIIString(encoding, "utf8") == 0 ||
               PyUnicode_CompareWithASCIIString(encoding, "UTF-8") == 0;
    return !warns_of_encoding && (utf8_mode || strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
}

PyObject *df_dormant_new(const struct df_dormant_plan *plan)
{
    const struct kind *kind = plan->mode ? &text_kind : &bytes_kind;
    allocfunc allocate = (allocfunc)PyType_GetSlot(kind->type, Py_tp_alloc);
    PyObject *self = allocate(kind->type, 0);
    if (self)
        *dormant_of(self, kind) = (struct dormant){
            .fd = plan->fd,
            .expected = plan->expected,
            .buffer_size = plan->buffer_size,
            .name = Py_NewRef(plan->name),
            .mode = Py_XNewRef(plan->mode),
            .encoding = Py_NewRef(plan->encoding ? plan->encoding : Py_None),
        };
    return self;
}

/* ---- the types ---- */

static PyMethodDef methods[] = {
    {"read", dormant_read, METH_VARARGS,
     PyDoc_STR("read($self, size=-1, /)\n--\n\nAs of io's classes.")},
    {"close", dormant_close, METH_VARARGS, PyDoc_STR("close($self, /)\n--\n\nCloses the file.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"closed", get_closed, NULL, PyDoc_STR("True once the file is closed."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("What directfuse.open() returns: io's class of this name as soon "
                                  "as more than read() is wanted.")},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_getattro, get_attribute},
    {Py_tp_setattro, set_attribute},
    {Py_tp_repr, dormant_repr},
    {Py_tp_iternext, next_line},
    {Py_tp_finalize, finalize},
    {0, NULL},
};

static int make_kind(struct kind *kind, PyObject *module, const char *name, const char *base)
{
    PyObject *io = PyImport_ImportModule("io");
    kind->base = io ? (PyTypeObject *)PyObject_GetAttrString(io, base) : NULL;
    Py_XDECREF(io);
    kind->init = kind->base ? PyObject_GetAttrString((PyObject *)kind->base, "__init__") : NULL;
    PyObject *size =
        kind->init ? PyObject_GetAttrString((PyObject *)kind->base, "__basicsize__") : NULL;
    if (!size)
        return -1;
    const Py_ssize_t align = _Alignof(struct dormant);
    kind->offset = (PyLong_AsSsize_t(size) + align - 1) / align * align;
    Py_DECREF(size);
    PyType_Spec spec = {
        .name = name,
        .basicsize = (int)(kind->offset + (Py_ssize_t)sizeof(struct dormant)),
        .flags = DF_FAST_TYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    kind->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, (PyObject *)kind->base);
    return kind->type ? 0 : -1;
}

static bool flag(const char *name)
{
    PyObject *flags = PySys_GetObject("flags");
    PyObject *value = flags ? PyObject_GetAttrString(flags, name) : NULL;
    bool truth = value && PyObject_IsTrue(value) == 1;
    Py_XDECREF(value);
    PyErr_Clear();
    return truth;
}

int df_dormant_prepare(PyObject *module)
{
    name_read = PyUnicode_InternFromString("read");
    name_close = PyUnicode_InternFromString("close");
    name_closed = PyUnicode_InternFromString("closed");
    name_mode = PyUnicode_InternFromString("mode");
    utf8_mode = flag("utf8_mode");
    warns_of_encoding = flag("warn_default_encoding");
    if (!name_read || !name_close || !name_closed || !name_mode ||
        make_kind(&bytes_kind, module, "directfuse._fast.BufferedReader", "BufferedReader") < 0)
        return -1;
    return make_kind(&text_kind, module, "directfuse._fast.TextIOWrapper", "TextIOWrapper");
}
