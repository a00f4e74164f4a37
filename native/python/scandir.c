/*
 * scandir.c - listdir and the iterator of scandir.
 */
#include <errno.h>
#include <string.h>

#include "core/fd.h"
#include "python/gil.h"
#include "python/scandir.h"

/* ---- reading a directory ---- */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/* The next record but "." and "..", and but those without a number, which glibc's readdir takes for
 * removed; NULL at the end, or NULL with *error < 0. */
static const struct dirent64 *next_record(struct df_reader *reader, ssize_t *error)
{
    *error = 0;
    for (;;) {
        if (reader->next >= reader->used) {
            ssize_t used;
            DF_GIL_CALL(used, 0, df_call_getdents(reader->fd, reader->buffer, DF_SCAN_BUFFER));
            if (used == -ENOENT) /* the directory was removed: it is empty (glibc's readdir) */
                used = 0;
            *error = used < 0 ? used : 0;
            if (used <= 0)
                return NULL;
            reader->next = 0;
            reader->used = (size_t)used;
        }
        const struct dirent64 *record =
            (const struct dirent64 *)(const void *)(reader->buffer + reader->next);
        reader->next += record->d_reclen;
        if (record->d_ino != 0 && !is_dots(record->d_name))
            return record;
    }
}

/* The descriptor last: other threads may run while it is closed, and must not find it here. */
static void close_reader(struct df_reader *reader)
{
    int fd = reader->fd;
    PyMem_Free(reader->buffer);
    *reader = (struct df_reader){.fd = -1};
    if (fd >= 0)
        df_open_close(fd);
}

/* Takes fd over. 0, or -1 with an exception. */
static int open_reader(struct df_reader *reader, int fd)
{
    *reader = (struct df_reader){.fd = fd, .buffer = PyMem_Malloc(DF_SCAN_BUFFER)};
    if (reader->buffer)
        return 0;
    close_reader(reader);
    PyErr_NoMemory();
    return -1;
}

/* ---- the argument of both ---- */

struct directory_request {
    struct df_request request;
    struct df_path path;
    PyObject *argument; /* as given; NULL: none */
    int given_fd;       /* a virtual descriptor was given; else -1 */
    PyObject *(*use)(struct directory_request *directory, int fd); /* takes fd over */
};

static PyObject *try_directory(struct df_request *request)
{
    struct directory_request *directory = (struct directory_request *)request;
    int fd;
    DF_GIL_CALL(
        fd, 0,
        df_call_openat(AT_FDCWD, directory->path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    request->not_ours = fd == DF_NOT_OURS;
    if (fd >= 0)
        return directory->use(directory, fd);
    return request->not_ours ? NULL : df_error_raise(fd, directory->path.object, NULL);
}

/* A duplicate of the descriptor of a directory; as fdopendir(3), ENOTDIR for any other. */
static int duplicate_directory(int given)
{
    int result;
    DF_GIL_CALL(result, 0, df_call_is_directory(given));
    if (result == 0)
        DF_GIL_CALL(result, 0, df_call_fcntl(given, F_DUPFD_CLOEXEC, DF_FD_BASE));
    return result;
}

/* Reads through a duplicate, as os does: the given descriptor stays open, its position moves. */
static PyObject *use_descriptor(struct directory_request *directory)
{
    int fd = duplicate_directory(directory->given_fd);
    if (fd < 0) /* os names none that it could not duplicate */
        return df_error_raise(fd, fd == -EBADF ? NULL : directory->argument, NULL);
    return directory->use(directory, fd);
}

static PyObject *use_path(struct directory_request *directory)
{
    PyObject *value = directory->argument ? directory->argument : df_fast.dot;
    if (df_path_read(&directory->path, value) < 0)
        return NULL;
    PyObject *result = NULL;
    if (!directory->path.text) {
        result = df_os_call(&directory->request.args);
    } else {
        result = try_directory(&directory->request);
        if (directory->request.not_ours)
            result = df_os_by_path(&directory->request);
    }
    df_path_clear(&directory->path);
    return result;
}

static PyObject *on_directory(struct directory_request *directory)
{
    PyObject *slots[DF_ARGS_MAX];
    int fd;
    if (!df_args_read(&directory->request.args, slots))
        return df_os_call(&directory->request.args);
    directory->argument = slots[0] == Py_None ? NULL : slots[0];
    if (!directory->argument || !df_args_is_fd(directory->argument))
        return use_path(directory);
    if (!df_args_fd(directory->argument, &fd) || !df_fd_ours(fd))
        return df_os_call(&directory->request.args);
    directory->given_fd = fd;
    return use_descriptor(directory);
}

/* ---- listdir ---- */

static PyObject *name_of(const struct dirent64 *record, bool as_bytes)
{
    if (as_bytes)
        return PyBytes_FromString(record->d_name);
    return PyUnicode_DecodeFSDefault(record->d_name);
}

/* 0, or -1 with an exception. */
static int list_names(struct df_reader *reader, bool as_bytes, PyObject *list)
{
    const struct dirent64 *record;
    ssize_t error;
    while ((record = next_record(reader, &error)) != NULL) {
        PyObject *name = name_of(record, as_bytes);
        int failed = name ? PyList_Append(list, name) : -1;
        Py_XDECREF(name);
        if (failed)
            return -1;
    }
    return (int)error;
}

/* Waits for whoever reads through a duplicate: they share the position. */
static void rewind_directory(int fd)
{
    off_t position;
    DF_GIL_CALL(position, 0, df_call_lseek(fd, 0, SEEK_SET));
    (void)position;
}

static PyObject *list_directory(struct directory_request *directory, int fd)
{
    struct df_reader reader;
    if (open_reader(&reader, fd) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    bool as_bytes = directory->path.object && PyBytes_Check(directory->path.object);
    int error = list ? list_names(&reader, as_bytes, list) : -1;
    if (directory->given_fd >= 0) /* the duplicate shares the position: back to the start */
        rewind_directory(fd);
    close_reader(&reader);
    if (error == 0)
        return list;
    Py_XDECREF(list);
    PyObject *name = directory->path.object ? directory->path.object : directory->argument;
    return df_error_raise(error, name, NULL);
}

static struct df_signature listdir_signature = {
    .os_name = "listdir",
    .names = {"path"},
    .total = 1,
    .positional = 1,
};

static PyObject *fast_listdir(PyObject *module, PyObject *const *values, Py_ssize_t count,
                              PyObject *names)
{
    (void)module;
    struct directory_request directory = {
        .request = {.args = {&listdir_signature, values, count, names}, .try_ours = try_directory},
        .given_fd = -1,
        .use = list_directory,
    };
    return on_directory(&directory);
}

/* ---- the iterator ---- */

struct scan {
    PyObject_HEAD struct df_reader reader;
    PyObject *real;      /* the iterator of os.scandir that is read in its place, or NULL */
    PyObject *directory; /* path given, NULL for a descriptor */
    int given_fd;        /* the descriptor given, or -1 */
    bool as_bytes;
    bool busy; /* a thread reads, perhaps without the GIL; protected by the GIL */
};

/* 0, or -1 with an exception: two threads cannot share the buffer. */
static int refuse_busy(const struct scan *scan)
{
    if (!scan->busy)
        return 0;
    PyErr_SetString(PyExc_ValueError, "another thread is reading this scandir iterator");
    return -1;
}

static struct scan *new_scan(const struct directory_request *directory)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(df_fast.scan, Py_tp_alloc);
    struct scan *scan = (struct scan *)allocate(df_fast.scan, 0);
    if (!scan)
        return NULL;
    scan->reader.fd = -1;
    scan->given_fd = directory->given_fd;
    scan->directory = Py_XNewRef(directory->path.object);
    scan->as_bytes = scan->directory && PyBytes_Check(scan->directory);
    return scan;
}

static PyObject *scan_directory(struct directory_request *directory, int fd)
{
    struct scan *scan = new_scan(directory);
    if (!scan)
        df_open_close(fd);
    else if (open_reader(&scan->reader, fd) < 0)
        Py_CLEAR(scan);
    return (PyObject *)scan;
}

/* A real directory to which the path led: its entries are found by that path. */
static PyObject *scan_real(struct df_request *request, PyObject *iterator)
{
    struct scan *scan = new_scan((struct directory_request *)request);
    if (scan)
        scan->real = iterator;
    else
        Py_DECREF(iterator);
    return (PyObject *)scan;
}

static PyObject *scan_iter(PyObject *self)
{
    return Py_NewRef(self);
}

static void close_real(struct scan *scan)
{
    PyObject *real = scan->real;
    scan->real = NULL;
    PyObject *done = real ? PyObject_CallMethod(real, "close", NULL) : NULL;
    if (real && !done)
        PyErr_WriteUnraisable(real);
    Py_XDECREF(done);
    Py_XDECREF(real);
}

/* Others find it closed from the first moment on. */
static void close_scan(struct scan *scan)
{
    close_real(scan);
    struct df_reader reader = scan->reader;
    scan->reader = (struct df_reader){.fd = -1};
    if (reader.fd >= 0 && scan->given_fd >= 0)
        rewind_directory(reader.fd);
    close_reader(&reader);
}

static PyObject *next_of_real(struct scan *scan)
{
    PyObject *real = Py_NewRef(scan->real); /* another thread may close the scan meanwhile */
    PyObject *theirs = PyIter_Next(real);
    PyObject *entry = theirs ? df_dir_entry_of_real(scan->directory, scan->as_bytes, theirs) : NULL;
    Py_XDECREF(theirs);
    Py_DECREF(real);
    return entry;
}

/* The error names what was given: a path, or the number of a descriptor. */
static PyObject *raise_of(const struct scan *scan, ssize_t error)
{
    PyObject *name = scan->directory || scan->given_fd < 0 ? Py_XNewRef(scan->directory)
                                                           : PyLong_FromLong(scan->given_fd);
    PyObject *raised = df_error_raise(error, name, NULL);
    Py_XDECREF(name);
    return raised;
}

static PyObject *scan_next(PyObject *self)
{
    struct scan *scan = (struct scan *)self;
    ssize_t error;
    if (scan->real)
        return next_of_real(scan);
    if (refuse_busy(scan) < 0 || scan->reader.fd < 0)
        return NULL;
    scan->busy = true;
    const struct dirent64 *record = next_record(&scan->reader, &error);
    scan->busy = false;
    if (record)
        return df_dir_entry_new(scan->directory, scan->given_fd, scan->as_bytes, record);
    close_scan(scan);
    return error < 0 ? raise_of(scan, error) : NULL;
}

static PyObject *scan_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (refuse_busy((struct scan *)self) < 0)
        return NULL;
    close_scan((struct scan *)self);
    Py_RETURN_NONE;
}

static PyObject *scan_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *scan_exit(PyObject *self, PyObject *exception)
{
    (void)exception;
    return scan_close(self, NULL);
}

static PyObject *refuse_pickle(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError, "cannot pickle 'directfuse.ScandirIterator' object");
    return NULL;
}

/* As that of os.scandir: forgetting to exhaust or close it is a ResourceWarning. Frees all it has,
 * so that the type needs no tp_dealloc of its own; may run twice. */
static void scan_finalize(PyObject *self)
{
    struct scan *scan = (struct scan *)self;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_CLEAR(scan->real); /* it warns of itself */
    if (scan->reader.fd >= 0 &&
        PyErr_ResourceWarning(self, 1, "unclosed scandir iterator %R", self) < 0)
        PyErr_WriteUnraisable(self);
    close_scan(scan);
    Py_CLEAR(scan->directory);
    PyErr_Restore(type, value, traceback);
}

static PyMethodDef scan_methods[] = {
    {"close", scan_close, METH_NOARGS, PyDoc_STR("close($self, /)\n--\n\nEnds the scan.")},
    {"__enter__", scan_enter, METH_NOARGS, NULL},
    {"__exit__", scan_exit, METH_VARARGS, NULL},
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot scan_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("The entries of a directory, but . and .., in its own order.")},
    {Py_tp_iter, scan_iter},
    {Py_tp_iternext, scan_next},
    {Py_tp_methods, scan_methods},
    {Py_tp_finalize, scan_finalize},
    {0, NULL},
};

static PyType_Spec scan_spec = {
    .name = "directfuse._fast.ScandirIterator",
    .basicsize = sizeof(struct scan),
    .flags = DF_FAST_TYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = scan_slots,
};

/* ---- scandir ---- */

static struct df_signature scandir_signature = {
    .os_name = "scandir",
    .names = {"path"},
    .total = 1,
    .positional = 1,
};

static PyObject *fast_scandir(PyObject *module, PyObject *const *values, Py_ssize_t count,
                              PyObject *names)
{
    (void)module;
    struct directory_request directory = {
        .request = {.args = {&scandir_signature, values, count, names},
                    .try_ours = try_directory,
                    .rename = scan_real},
        .given_fd = -1,
        .use = scan_directory,
    };
    return on_directory(&directory);
}

/* ---- the module ---- */

int df_scandir_prepare(PyObject *module)
{
    df_fast.scan = (PyTypeObject *)PyType_FromModuleAndSpec(module, &scan_spec, NULL);
    if (!df_fast.scan || PyModule_AddType(module, df_fast.scan) < 0 ||
        df_args_prepare(&listdir_signature) < 0)
        return -1;
    return df_args_prepare(&scandir_signature);
}

PyMethodDef df_scandir_methods[] = {
    DF_FAST_METHOD("listdir", fast_listdir, METH_FASTCALL | METH_KEYWORDS,
                   "listdir($module, /, path=None)\n--\n\n"
                   "os.listdir: names in a directory but . and .., bytes for a bytes path.\n\n"
                   "Source: readdir(3)."),
    DF_FAST_METHOD("scandir", fast_scandir, METH_FASTCALL | METH_KEYWORDS,
                   "scandir($module, /, path=None)\n--\n\n"
                   "os.scandir: an iterator of DirEntry, also a context manager.\n\n"
                   "Entries know their type without a stat; after the directory has changed an\n"
                   "entry still shows what was read."),
    {NULL, NULL, 0, NULL},
};
