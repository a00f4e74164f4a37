/*
 * fast.h - what the sources of directfuse._fast share: the module's constants and the small steps
 * that every hot call takes.
 *
 *     read the arguments (args.c, path.c) --odd or not ours--> the function of `os` (os.c)
 *     df_call_*() with or without the GIL (gil.h)
 *     make the result, or the OSError (error.c)
 *
 * Whatever a hot call does not understand - a wrong number of arguments, an unknown keyword, a
 * path with a NUL - it hands to the function of `os` with the arguments as they came: that one
 * raises the exception a user of `os` expects.
 *
 * Functions return a new reference, or NULL with an exception set, unless they say otherwise.
 * Only the limited API of Python 3.11 is used, so one build serves every later Python.
 */
#ifndef DF_PYTHON_FAST_H
#define DF_PYTHON_FAST_H

#include <Python.h>

#include <stdbool.h>
#include <structmember.h> /* wants Python.h first, and does not say so */
#include <sys/types.h>

#include "core/calls.h"

/* The module's constants: set once by PyInit__fast, never changed, never freed. The core is one
 * for a process, so is the module (it does not support isolated subinterpreters). */
struct df_fast {
    int64_t interpreter; /* that has imported the module first */
    PyTypeObject *stat_result;
    PyObject *unsupported; /* io.UnsupportedOperation */
    bool utf8;             /* the file system encoding is UTF-8 */

    /* types of this module */
    PyTypeObject *file_io;
    PyTypeObject *scan;
    PyTypeObject *dir_entry;
    PyTypeObject *mapping;

    /* interned names */
    PyObject *follow_symlinks;
    PyObject *name;
    PyObject *dot;
};
extern struct df_fast df_fast;

/* A variable that owns what it points to (or is NULL) owns `value` instead. */
static inline void df_fast_replace(PyObject **variable, PyObject *value)
{
    PyObject *before = *variable;

    Py_INCREF(value);
    *variable = value; /* before what was there goes: that may call anything */
    Py_XDECREF(before);
}

/* An attribute of a module: a new reference, or NULL with an exception. */
PyObject *df_fast_import(const char *module_name, const char *name);

/* Whether it is the interpreter that has imported this module first which calls. */
bool df_fast_is_first(void);

/* An attribute of a module, where `first` is what it was to that interpreter: from Python 3.12 on
 * each has its own. */
PyObject *df_fast_own(PyObject *first, const char *module_name, const char *name);

/* Our types are the same in all interpreters. The interpreter's caches of attributes, each of which
 * numbers types by itself, take only what cannot be changed for the same. */
#define DF_FAST_TYPE (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE)

#define DF_FAST_METHOD(name, function, flags, doc)                                                 \
    {name, (PyCFunction)(void (*)(void))(function), flags, PyDoc_STR(doc)}

/* ---- args.c: arguments ---- */

enum { DF_ARGS_MAX = 8 };

/* How a call may be written. `names` are interned by df_args_prepare(). */
struct df_signature {
    const char *module_name; /* NULL: os */
    const char *os_name;     /* the function it stands for */
    const char *names[DF_ARGS_MAX];
    uint8_t total;           /* arguments at most */
    uint8_t positional;      /* of these, how many may be positional */
    uint8_t positional_only; /* how many of the first must be */
    uint8_t required;
    PyObject *os_function; /* filled by df_args_prepare() */
    PyObject *keys[DF_ARGS_MAX];
};

/* The arguments of one call as Python passed them (METH_FASTCALL | METH_KEYWORDS). */
struct df_args {
    struct df_signature *signature;
    PyObject *const *values;
    Py_ssize_t count; /* positional ones */
    PyObject *names;  /* tuple of keywords, or NULL */
};

/* 0, or -1 with an exception. */
int df_args_prepare(struct df_signature *signature);

/* Sorts the arguments by the signature's order into slots (borrowed; NULL: not given). Returns
 * false, no exception set, if they do not fit: let os complain. */
bool df_args_read(const struct df_args *args, PyObject *slots[DF_ARGS_MAX]);

/* Each of these returns false when `value` is not what it takes, with an exception set only if its
 * __index__ raised one; NULL is the default, which stays in *out. */
bool df_args_fd(PyObject *value, int *fd);
bool df_args_dir_fd(PyObject *value, int *dirfd);
bool df_args_int(PyObject *value, int *out);
bool df_args_size(PyObject *value, Py_ssize_t *out);
bool df_args_offset(PyObject *value, off_t *out);
bool df_args_is_fd(PyObject *value);           /* where os takes a path, too */
bool df_args_flag(PyObject *value, bool *out); /* whether it is true, as `if value:` says */

/* ---- path.c: path arguments ---- */

struct df_path {
    const char *text;  /* as the kernel would see it; NULL: not a path we can read, let os try */
    PyObject *object;  /* the str or bytes it came from, with __fspath__ called; owned */
    PyObject *encoded; /* owner of `text` when object is not; may be NULL */
};

/* Reads a str, bytes or os.PathLike. Returns -1 with an exception only when __fspath__ raised. */
int df_path_read(struct df_path *path, PyObject *value);
void df_path_clear(struct df_path *path);

/* ---- os.c: the function of os, for what is not ours ---- */

/* Calls it with the arguments as they came, unless reading them has raised an exception. */
PyObject *df_os_call(const struct df_args *args);

/*
 * A call by path. try_ours() makes df_call_* and returns the result; or NULL with an exception; or
 * NULL with none set and request->not_ours. Then df_os_by_path() calls the function of os, with
 * the path that a walk left a mount by in place of argument `path_slot`, and once more try_ours()
 * when a real symlink may lead into a mount.
 */
struct df_request {
    struct df_args args;
    int path_slot; /* index of the path among the signature's arguments */
    bool not_ours;
    PyObject *(*try_ours)(struct df_request *request);
    /* What os gave for the path by which a walk left a mount, under the caller's own path: takes
     * `result` over. NULL: it tells no path. */
    PyObject *(*rename)(struct df_request *request, PyObject *result);
};
PyObject *df_os_by_path(struct df_request *request);

/* ---- error.c ---- */

/* Raises the OSError subclass of -result, with up to two file names (may be NULL), unless an
 * exception is set already. Returns NULL. */
PyObject *df_error_raise(ssize_t result, PyObject *filename, PyObject *second);

/* ---- stat.c ---- */

/* os.stat for what is in hand: by dirfd and text, raising with `filename`. NULL and no exception:
 * not ours. */
PyObject *df_stat_at(int dirfd, const char *text, int flags, PyObject *filename);

/* ---- fdio.c ---- */

/* read(2) (at < 0) or pread(2) of up to `size` bytes into a new bytes object. */
PyObject *df_fdio_read_bytes(int fd, Py_ssize_t size, off_t at);

/* write(2) (at < 0) or pwrite(2) of the bytes of a buffer; the count as an int. */
PyObject *df_fdio_write_buffer(int fd, PyObject *data, off_t at);

/* ---- open.c ---- */

/* close(2), giving the GIL up where needed; 0 or a negative errno. Like os.close it does not repeat
 * after EINTR: the descriptor is gone. */
int df_open_close(int fd);

/* os_open(path, flags) for any path: the descriptor as an int. */
PyObject *df_open_path(PyObject *path, int flags);

/* ---- unclosed.c ---- */

/* The ResourceWarning that a file was not closed, if anybody wants it. 0, or -1 with an exception:
 * a filter made it one. Called without an exception set. */
int df_unclosed_warn(PyObject *file);

/* Whether nobody does. */
bool df_unclosed_is_ignored(void);

/* ---- tables of functions, each in the file it names, ended by a NULL name ---- */
extern PyMethodDef df_stat_methods[];
extern PyMethodDef df_fdio_methods[];
extern PyMethodDef df_open_methods[];
extern PyMethodDef df_open_file_methods[];
extern PyMethodDef df_vector_methods[];
extern PyMethodDef df_scandir_methods[];
extern PyMethodDef df_batch_methods[];
extern PyMethodDef df_gil_methods[];
extern PyMethodDef df_listener_methods[];
extern PyMethodDef df_error_methods[];
extern PyMethodDef df_attempt_methods[];

/* Each makes what its file needs, types included: 0, or -1 with an exception. */
int df_ascii_prepare(void);
int df_stat_prepare(void);
int df_fdio_prepare(void);
int df_open_prepare(void);
int df_vector_prepare(void);
int df_open_file_prepare(void);
int df_unclosed_prepare(void);
int df_file_type_prepare(PyObject *module);
int df_scandir_prepare(PyObject *module);
int df_dir_entry_prepare(PyObject *module);
int df_mapping_prepare(PyObject *module);
int df_dormant_prepare(PyObject *module);

#endif
