/*
 * path.h - file systems with the operations of fusepy, mfusepy and refuse: what the path_*.c share.
 *
 *   path_session.c  the Python type: a main() of libfuse's high-level API for an operations object
 *   path_ops.c      struct fuse_operations: names and attributes
 *   path_file.c     struct fuse_operations: open files and directories
 *   path_types.c    dictionaries and times, read into C
 */
#ifndef DF_PYHOST_PATH_H
#define DF_PYHOST_PATH_H

#include "pyhost/pyhost.h"

#include <fuse.h>

struct df_path_session {
    PyObject ob_base;
    PyObject *ops;
    PyObject *helper;  /* directfuse._python.paths.Host: reports */
    PyObject *methods; /* names of what the file system implements */
    bool by_call;      /* operations are called as ops(name, ...), as fusepy's LoggingMixIn wants */
    bool nanoseconds;  /* times are ints, not floats: use_ns */
    bool create_flags; /* create() takes the flags of open */
    bool readdir_offset; /* readdir_with_offset() in place of readdir() */
};

/* ---- path_session.c: one operation ---- */

/* The name of a method; its key is made by the first call. */
struct df_path_name {
    const char *text;
    PyObject *key; /* interned; under the GIL */
};

struct df_path_call {
    struct df_path_session *session;
    struct df_path_name *name;
    PyObject *result; /* what the method returned; NULL: nothing yet, or it raised */
    struct df_thread_stay stay;
};

/* Of the session that the calling thread is in an operation of. False: the interpreter has gone. */
bool df_path_enter(struct df_path_call *call, struct df_path_name *name);

/* The same for a method that is named in place. */
#define df_path_begin(call, method)                                                                \
    ({                                                                                             \
        static struct df_path_name df_path_method = {method, NULL};                                \
        df_path_enter(call, &df_path_method);                                                      \
    })

/* Calls the method with the arguments, which it takes (NULL among them: the exception is set). The
 * result belongs to the call. */
enum { DF_PATH_ARGS = 5 };
PyObject *df_path_send_list(struct df_path_call *call, int count, PyObject *args[DF_PATH_ARGS + 1]);
#define DF_PATH_LIST(...)                                                                          \
    (int)(sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *)),                               \
        (PyObject * [DF_PATH_ARGS + 1])                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define df_path_send(call, ...) df_path_send_list(call, DF_PATH_LIST(__VA_ARGS__))

/* Ends the call: the negative errno of the exception, if one is set, else `result`. */
int df_path_end(struct df_path_call *call, long long result);

/* The whole of a call whose result is a number, or nothing. */
int df_path_do_list(struct df_path_call *call, int count, PyObject *args[DF_PATH_ARGS + 1]);
#define df_path_do(call, ...) df_path_do_list(call, DF_PATH_LIST(__VA_ARGS__))

/* ---- path_ops.c, path_file.c ---- */

/* Each adds its operations, for those methods that are in session->methods. */
void df_path_ops_fill(struct fuse_operations *table, const struct df_path_session *session);
void df_path_file_fill(struct fuse_operations *table, const struct df_path_session *session);
bool df_path_has(const struct df_path_session *session, const char *method);
#define DF_PATH_ADD(table, session, member)                                                        \
    do {                                                                                           \
        if (df_path_has(session, #member))                                                         \
            (table)->member = op_##member;                                                         \
    } while (0)

/* The path an operation got: None when libfuse leaves it out. */
PyObject *df_path_text(const char *path);

/* The handle as a method gets it. */
PyObject *df_path_handle(const struct fuse_file_info *fi);

/* ---- path_types.c ---- */

int df_path_read_stat(PyObject *mapping, bool nanoseconds, struct stat *st);
int df_path_read_statvfs(PyObject *mapping, struct statvfs *st);
PyObject *df_path_time(const struct timespec *time, bool nanoseconds);

int df_path_types_prepare(void);

#endif
