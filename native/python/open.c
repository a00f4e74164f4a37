/*
 * open.c - os_open and close.
 */
#include "core/fd.h"
#include "python/gil.h"

struct open_request {
    struct df_request request;
    struct df_path path;
    int dirfd;
    int flags;
    int mode;
};

/* O_CLOEXEC as os.open, whose descriptors are never inherited (PEP 446). */
static PyObject *try_open(struct df_request *request)
{
    struct open_request *open = (struct open_request *)request;
    int fd;
    DF_GIL_CALL(
        fd, 0,
        df_call_openat(open->dirfd, open->path.text, open->flags | O_CLOEXEC, (mode_t)open->mode));
    request->not_ours = fd == DF_NOT_OURS;
    if (fd >= 0)
        return PyLong_FromLong(fd);
    return request->not_ours ? NULL : df_error_raise(fd, open->path.object, NULL);
}

static struct df_signature open_signature = {
    .os_name = "open",
    .names = {"path", "flags", "mode", "dir_fd"},
    .total = 4,
    .positional = 3,
    .required = 2,
};

static PyObject *fast_open(PyObject *module, PyObject *const *values, Py_ssize_t count,
                           PyObject *names)
{
    (void)module;
    struct open_request open = {
        .request = {.args = {&open_signature, values, count, names}, .try_ours = try_open},
        .dirfd = AT_FDCWD,
        .mode = 0777,
    };
    PyObject *slots[DF_ARGS_MAX];
    if (!df_args_read(&open.request.args, slots) || !df_args_int(slots[1], &open.flags) ||
        !df_args_int(slots[2], &open.mode) || !df_args_dir_fd(slots[3], &open.dirfd))
        return df_os_call(&open.request.args);
    if (df_path_read(&open.path, slots[0]) < 0)
        return NULL;
    PyObject *fd = NULL;
    if (!open.path.text) {
        fd = df_os_call(&open.request.args);
    } else {
        fd = try_open(&open.request);
        if (open.request.not_ours)
            fd = df_os_by_path(&open.request);
    }
    df_path_clear(&open.path);
    return fd;
}

PyObject *df_open_path(PyObject *path, int flags)
{
    PyObject *number = PyLong_FromLong(flags);
    PyObject *values[] = {path, number};
    PyObject *fd = number ? fast_open(NULL, values, 2, NULL) : NULL;
    Py_XDECREF(number);
    return fd;
}

/* ---- close ---- */

static struct df_signature close_signature = {
    .os_name = "close",
    .names = {"fd"},
    .total = 1,
    .positional = 1,
    .required = 1,
};

int df_open_close(int fd)
{
    int result;
    if (df_gil_keep(0)) {
        result = df_call_close(fd);
    } else {
        Py_BEGIN_ALLOW_THREADS result = df_call_close(fd);
        Py_END_ALLOW_THREADS
    }
    return result == -EINTR ? 0 : result;
}

static PyObject *fast_close(PyObject *module, PyObject *const *values, Py_ssize_t count,
                            PyObject *names)
{
    (void)module;
    struct df_args args = {&close_signature, values, count, names};
    PyObject *slots[DF_ARGS_MAX];
    int fd;
    if (!df_args_read(&args, slots) || !df_args_fd(slots[0], &fd) || !df_fd_ours(fd))
        return df_os_call(&args);
    int result = df_open_close(fd);
    if (result < 0)
        return df_error_raise(result, NULL, NULL);
    Py_RETURN_NONE;
}

/* ---- the module ---- */

int df_open_prepare(void)
{
    if (df_args_prepare(&open_signature) < 0)
        return -1;
    return df_args_prepare(&close_signature);
}

PyMethodDef df_open_methods[] = {
    DF_FAST_METHOD("os_open", fast_open, METH_FASTCALL | METH_KEYWORDS,
                   "os_open($module, /, path, flags, mode=511, *, dir_fd=None)\n--\n\n"
                   "os.open: opens a path with O_* flags; the descriptor, never inherited.\n\n"
                   "Source: open(2)."),
    DF_FAST_METHOD("close", fast_close, METH_FASTCALL | METH_KEYWORDS,
                   "close($module, /, fd)\n--\n\n"
                   "os.close: closes a descriptor; an error of the plugin's flush is raised.\n\n"
                   "Source: close(2)."),
    {NULL, NULL, 0, NULL},
};
