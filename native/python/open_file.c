/*
 * open_file.c - directfuse.open: builtins.open for files in mounts. Raw file in C, the standard
 * buffered and text layers on top; everything else goes to builtins.open itself.
 */
#include <string.h>

#include "core/fd.h"
#include "python/dormant.h"
#include "python/file_type.h"
#include "python/gil.h"

/* What builtins.open builds with. Set once. */
static struct {
    PyObject *reader;
    PyObject *writer;
    PyObject *random;
    PyObject *text;
    PyObject *mode;      /* interned "mode" */
    PyObject *read_mode; /* "r" */
    Py_ssize_t buffer_size;
} layers;

enum slot { FILE_SLOT, MODE, BUFFERING, ENCODING, ERRORS, NEWLINE, CLOSEFD, OPENER };

struct file_request {
    struct df_request request;
    PyObject *slots[DF_ARGS_MAX];
    struct df_path path;
    int open_flags; /* O_* */
    int open_mode;  /* DF_FILE_MODE_* */
    int buffering;
    bool text;
    bool closefd;
};

static bool given(PyObject *slot)
{
    return slot && slot != Py_None;
}

/* ---- the mode string ---- */

enum { /* what the letters of a mode say */
       MODE_READ = 1 << 0,
       MODE_WRITE = 1 << 1,
       MODE_CREATE_NEW = 1 << 2,
       MODE_APPEND = 1 << 3,
       MODE_KINDS = MODE_READ | MODE_WRITE | MODE_CREATE_NEW | MODE_APPEND, /* one of them */
       MODE_BYTES = 1 << 4,
       MODE_TEXT = 1 << 5,
       MODE_UPDATE = 1 << 6,
};

/* The sum of MODE_*, or -1: it is no mode. */
static int read_letters(const char *mode, Py_ssize_t size)
{
    static const char letters[] = "rwxabt+";
    unsigned sum = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        const char *letter = memchr(letters, mode[i], sizeof(letters) - 1);
        unsigned bit = letter ? 1U << (letter - letters) : 0;
        if (bit == 0 || sum & bit)
            return -1;
        sum |= bit;
    }
    bool both = sum & MODE_BYTES && sum & MODE_TEXT;
    return __builtin_popcount(sum & MODE_KINDS) == 1 && !both ? (int)sum : -1;
}

static void set_mode(struct file_request *file, int mode)
{
    bool update = mode & MODE_UPDATE, read = mode & MODE_READ;
    file->text = !(mode & MODE_BYTES);
    file->open_mode = (read || update ? DF_FILE_MODE_READ : 0) |
                      (!read || update ? DF_FILE_MODE_WRITE : 0) |
                      (mode & MODE_APPEND ? DF_FILE_MODE_APPEND : 0) |
                      (mode & MODE_CREATE_NEW ? DF_FILE_MODE_CREATE_NEW : 0);
    file->open_flags = O_CLOEXEC | (update ? O_RDWR : read ? O_RDONLY : O_WRONLY);
    if (mode & MODE_WRITE)
        file->open_flags |= O_CREAT | O_TRUNC;
    if (mode & MODE_CREATE_NEW)
        file->open_flags |= O_CREAT | O_EXCL;
    if (mode & MODE_APPEND)
        file->open_flags |= O_CREAT | O_APPEND;
}

static bool read_mode(struct file_request *file, PyObject *mode)
{
    Py_ssize_t size = 0;
    const char *text = !mode                   ? "r"
                       : PyUnicode_Check(mode) ? PyUnicode_AsUTF8AndSize(mode, &size)
                                               : NULL;
    int letters = text ? read_letters(text, mode ? size : 1) : -1;
    if (letters < 0) {
        PyErr_Clear();
        return false;
    }
    set_mode(file, letters);
    return true;
}

/* A char * of C, as builtins.open takes it. */
static bool is_string_or_none(PyObject *slot)
{
    Py_ssize_t size;
    if (!given(slot))
        return true;
    const char *text = PyUnicode_AsUTF8AndSize(slot, &size);
    if (!text)
        PyErr_Clear();
    return text && strlen(text) == (size_t)size;
}

/* False: builtins.open is to complain, which it does before it opens anything. */
static bool read_arguments(struct file_request *file)
{
    PyObject **slots = file->slots;
    if (!df_args_read(&file->request.args, slots) || !read_mode(file, slots[MODE]) ||
        !df_args_int(slots[BUFFERING], &file->buffering) ||
        !df_args_flag(slots[CLOSEFD], &file->closefd))
        return false;
    for (int i = ENCODING; i <= NEWLINE; i++) {
        if (!is_string_or_none(slots[i]) || (given(slots[i]) && !file->text))
            return false;
    }
    return true;
}

/* ---- the layers ---- */

/* After an error: closes `layer`, keeps the exception. Takes the reference. */
static PyObject *abandon(PyObject *layer)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = PyObject_CallMethod(layer, "close", NULL);
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    Py_DECREF(layer);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

/* Bytes have no lines; builtins.open says so in these words. */
static int warn_of_line_buffering(const struct file_request *file)
{
    if (file->text || file->buffering != 1)
        return 0;
    return PyErr_WarnEx(PyExc_RuntimeWarning,
                        "line buffering (buffering=1) isn't supported in binary mode, the default "
                        "buffer size will be used",
                        1);
}

static Py_ssize_t buffer_size(const struct file_request *file, Py_ssize_t block_size)
{
    if (file->buffering > 1)
        return file->buffering;
    return block_size > layers.buffer_size ? block_size : layers.buffer_size;
}

static PyObject *buffer_type(int open_mode)
{
    if ((open_mode & DF_FILE_MODE_READ) && (open_mode & DF_FILE_MODE_WRITE))
        return df_fast_own(layers.random, "io", "BufferedRandom");
    if (open_mode & DF_FILE_MODE_READ)
        return df_fast_own(layers.reader, "io", "BufferedReader");
    return df_fast_own(layers.writer, "io", "BufferedWriter");
}

static PyObject *add_buffer(const struct file_request *file, PyObject *raw, Py_ssize_t block_size)
{
    if (warn_of_line_buffering(file) < 0)
        return abandon(raw);
    PyObject *type = buffer_type(file->open_mode);
    PyObject *number = type ? PyLong_FromSsize_t(buffer_size(file, block_size)) : NULL;
    PyObject *buffer = number ? PyObject_CallFunctionObjArgs(type, raw, number, NULL) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(number);
    if (!buffer)
        return abandon(raw);
    Py_DECREF(raw);
    return buffer;
}

/* As it was given; borrowed. */
static PyObject *given_mode(const struct file_request *file)
{
    return file->slots[MODE] ? file->slots[MODE] : layers.read_mode;
}

static PyObject *add_text(const struct file_request *file, PyObject *buffer)
{
    PyObject *const *slots = file->slots;
    PyObject *type = df_fast_own(layers.text, "io", "TextIOWrapper");
    PyObject *text = type ? PyObject_CallFunctionObjArgs(
                                type, buffer, slots[ENCODING] ? slots[ENCODING] : Py_None,
                                slots[ERRORS] ? slots[ERRORS] : Py_None,
                                slots[NEWLINE] ? slots[NEWLINE] : Py_None,
                                file->buffering == 1 ? Py_True : Py_False, NULL)
                          : NULL;
    Py_XDECREF(type);
    if (!text)
        return abandon(buffer);
    Py_DECREF(buffer);
    return PyObject_SetAttr(text, layers.mode, given_mode(file)) < 0 ? abandon(text) : text;
}

static PyObject *add_layers(const struct file_request *file, PyObject *raw, Py_ssize_t block_size)
{
    if (file->buffering == 0)
        return raw;
    PyObject *buffer = add_buffer(file, raw, block_size);
    return buffer && file->text ? add_text(file, buffer) : buffer;
}

/* Opened to be read, with what io does by default, to become of the io that we have met first. */
static bool may_sleep(const struct file_request *file)
{
    PyObject *const *slots = file->slots;
    if (!df_fast_is_first() || file->open_mode != DF_FILE_MODE_READ || file->buffering == 0 ||
        file->buffering == 1)
        return false;
    return !file->text ||
           (!given(slots[ERRORS]) && !given(slots[NEWLINE]) && df_dormant_is_utf8(slots[ENCODING]));
}

static PyObject *make_dormant(const struct file_request *file, int fd, PyObject *name)
{
    struct stat st;
    if (df_file_type_check(fd, name, &st) < 0)
        return NULL;
    const struct df_dormant_plan plan = {
        .fd = fd,
        .expected = given(file->slots[OPENER]) ? -1 : st.st_size, /* it may have read of it */
        .buffer_size = buffer_size(file, st.st_blksize),
        .name = name,
        .mode = !file->text ? NULL : given_mode(file),
        .encoding = file->slots[ENCODING],
    };
    return df_dormant_new(&plan);
}

/* The file object of a virtual descriptor that is ours to close. */
static PyObject *wrap_new_descriptor(const struct file_request *file, int fd, PyObject *name)
{
    Py_ssize_t block_size;
    PyObject *dormant = NULL, *raw = NULL;
    if (may_sleep(file))
        dormant = make_dormant(file, fd, name);
    else
        raw = df_file_type_new(fd, name, file->open_mode, true, &block_size);
    if (!dormant && !raw)
        df_open_close(fd);
    return raw ? add_layers(file, raw, block_size) : dormant;
}

/* ---- by path, by descriptor, by an opener ---- */

static PyObject *try_open_file(struct df_request *request)
{
    struct file_request *file = (struct file_request *)request;
    int fd;
    DF_GIL_CALL(fd, 0, df_call_openat(AT_FDCWD, file->path.text, file->open_flags, 0666));
    request->not_ours = fd == DF_NOT_OURS;
    if (fd >= 0)
        return wrap_new_descriptor(file, fd, file->path.object);
    return request->not_ours ? NULL : df_error_raise(fd, file->path.object, NULL);
}

/* What has the name: below a text file its buffer, below that the raw file. */
static PyObject *layer_below(PyObject *file, const char *attribute)
{
    PyObject *below = PyObject_GetAttrString(file, attribute);
    if (!below)
        PyErr_Clear(); /* it is the lowest */
    PyObject *layer = below ? below : Py_NewRef(file);
    Py_DECREF(file);
    return layer;
}

/* A real file to which the path led keeps the name that it was opened by. */
static PyObject *name_as_given(struct df_request *request, PyObject *result)
{
    PyObject *raw = layer_below(layer_below(Py_NewRef(result), "buffer"), "raw");
    PyObject *name = ((struct file_request *)request)->path.object;
    if (PyObject_SetAttr(raw, df_fast.name, name) < 0)
        Py_CLEAR(result);
    Py_DECREF(raw);
    return result;
}

static PyObject *open_path(struct file_request *file)
{
    if (!file->closefd)
        return df_os_call(&file->request.args); /* ValueError: it needs a descriptor */
    if (df_path_read(&file->path, file->slots[FILE_SLOT]) < 0)
        return NULL;
    PyObject *result = NULL;
    if (!file->path.text) {
        result = df_os_call(&file->request.args);
    } else {
        result = try_open_file(&file->request);
        if (file->request.not_ours)
            result = df_os_by_path(&file->request);
    }
    df_path_clear(&file->path);
    return result;
}

/* On failure a descriptor that was given stays open, as with builtins.open. */
static PyObject *open_descriptor(struct file_request *file)
{
    PyObject *number = file->slots[FILE_SLOT];
    Py_ssize_t block_size;
    int fd;
    if (!df_args_fd(number, &fd) || !df_fd_ours(fd))
        return df_os_call(&file->request.args);
    PyObject *raw = df_file_type_new(fd, number, file->open_mode, file->closefd, &block_size);
    return raw ? add_layers(file, raw, block_size) : NULL;
}

/* An opener for builtins.open that has opened already: `self` is the descriptor. */
static PyObject *opened_already(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyMethodDef opened_method = {"opener", opened_already, METH_VARARGS, NULL};

/* The opener gave a descriptor of the kernel. */
static PyObject *open_real(struct file_request *file, PyObject *number)
{
    PyObject *const *s = file->slots;
    PyObject *opener = PyCFunction_NewEx(&opened_method, number, NULL);
    PyObject *mode = s[MODE] ? Py_NewRef(s[MODE]) : PyUnicode_FromString("r");
    PyObject *result = NULL;
    if (opener && mode)
        result = PyObject_CallFunction(
            file->request.args.signature->os_function, "OOiOOOOO", file->path.object, mode,
            file->buffering, s[ENCODING] ? s[ENCODING] : Py_None, s[ERRORS] ? s[ERRORS] : Py_None,
            s[NEWLINE] ? s[NEWLINE] : Py_None, file->closefd ? Py_True : Py_False, opener);
    Py_XDECREF(opener);
    Py_XDECREF(mode);
    return result;
}

/* The opener decides what the file is; we see by its descriptor. */
static PyObject *call_opener(struct file_request *file)
{
    PyObject *name = file->path.object;
    int fd;
    PyObject *number = PyObject_CallFunction(file->slots[OPENER], "Oi", name, file->open_flags);
    if (!number)
        return NULL;
    bool ours = df_args_fd(number, &fd) && df_fd_ours(fd);
    PyObject *result = NULL;
    if (!PyErr_Occurred())
        result = ours ? wrap_new_descriptor(file, fd, name) : open_real(file, number);
    Py_DECREF(number);
    return result;
}

/* It is given the path as text, whatever the path is. */
static PyObject *open_by_opener(struct file_request *file)
{
    if (PyIndex_Check(file->slots[FILE_SLOT]) || !file->closefd)
        return df_os_call(&file->request.args); /* a descriptor needs no opener */
    if (df_path_read(&file->path, file->slots[FILE_SLOT]) < 0)
        return NULL;
    PyObject *result =
        file->path.text ? call_opener(file) : df_os_call(&file->request.args); /* to complain */
    df_path_clear(&file->path);
    return result;
}

/* ---- the call ---- */

static struct df_signature open_signature = {
    .module_name = "builtins",
    .os_name = "open",
    .names = {"file", "mode", "buffering", "encoding", "errors", "newline", "closefd", "opener"},
    .total = 8,
    .positional = 8,
    .required = 1,
};

static PyObject *fast_open_file(PyObject *module, PyObject *const *values, Py_ssize_t count,
                                PyObject *names)
{
    (void)module;
    struct file_request file = {
        .request = {.args = {&open_signature, values, count, names},
                    .try_ours = try_open_file,
                    .rename = name_as_given},
        .buffering = -1,
        .closefd = true,
    };
    if (!read_arguments(&file))
        return df_os_call(&file.request.args);
    if (file.text && file.buffering == 0) {
        PyErr_SetString(PyExc_ValueError, "can't have unbuffered text I/O");
        return NULL;
    }
    if (given(file.slots[OPENER]))
        return open_by_opener(&file);
    return PyIndex_Check(file.slots[FILE_SLOT]) ? open_descriptor(&file) : open_path(&file);
}

/* ---- the module ---- */

int df_open_file_prepare(void)
{
    PyObject *size = df_fast_import("io", "DEFAULT_BUFFER_SIZE");
    layers.buffer_size = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    layers.reader = df_fast_import("io", "BufferedReader");
    layers.writer = df_fast_import("io", "BufferedWriter");
    layers.random = df_fast_import("io", "BufferedRandom");
    layers.text = df_fast_import("io", "TextIOWrapper");
    layers.mode = PyUnicode_InternFromString("mode");
    layers.read_mode = PyUnicode_InternFromString("r");
    if (layers.buffer_size < 0 || !layers.reader || !layers.writer || !layers.random ||
        !layers.text || !layers.mode || !layers.read_mode)
        return -1;
    return df_args_prepare(&open_signature);
}

PyMethodDef df_open_file_methods[] = {
    DF_FAST_METHOD("open", fast_open_file, METH_FASTCALL | METH_KEYWORDS,
                   "open($module, /, file, mode='r', buffering=-1, encoding=None,\n"
                   "     errors=None, newline=None, closefd=True, opener=None)\n--\n\n"
                   "builtins.open, for files in mounts too: a raw, buffered or text file object.\n"
                   "\n"
                   "fileno() of a file in a mount raises io.UnsupportedOperation. A path or\n"
                   "descriptor outside every mount gives the object of builtins.open."),
    {NULL, NULL, 0, NULL},
};
