/*
 * pyhost.h - Python file systems as plugins: what the sources of directfuse._pyhost share.
 *
 * A Python file system is a FUSE plugin like any other: its operations are functions in a struct
 * fuse_lowlevel_ops (node_*.c: pyfuse3's coroutines) or a struct fuse_operations (path_*.c: the
 * methods of fusepy, mfusepy, refuse), given to a session of libfuse's API, which is ours
 * (native/libfuse). Nothing here knows the core, and the lanes do not know Python.
 *
 * An operation runs on the thread that made the call:
 *
 *   df_thread_enter()    takes the GIL; a thread that Python does not know gets a state that it
 *                        keeps (thread.c)
 *   df_turn_take()       pyfuse3 only: no two steps of one file system at a time (turn.c)
 *   call, drive          a coroutine that cannot suspend runs to its end (node_call.c); one that
 *                        may is handed to the event loop, and the request is answered from there
 *   fuse_reply_*         (node_reply.c)
 *
 * Locks, outermost first: those of the core and of the lanes, a file system's turn, the GIL. So
 * whoever holds the GIL gives it up before it enters the core (every mount of ours may wait, see
 * native/python/gil.h) and before it waits for a turn.
 *
 * Functions return a new reference or NULL with an exception, or 0 or -1 with an exception, unless
 * they say otherwise. Only the limited API of Python 3.11 is used.
 */
#ifndef DF_PYHOST_PYHOST_H
#define DF_PYHOST_PYHOST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FUSE_USE_VERSION 312 /* FUSE_MAKE_VERSION(3, 12) */

/* ---- thread.c ---- */

/* A stay in Python. The door may have raised before it called down (it closes what it cannot
 * return): its exception is put aside. */
struct df_thread_stay {
    PyGILState_STATE state;
    PyObject *type, *value, *traceback;
};

/* Makes the calling thread, which may hold the GIL or not, one that may call Python. False when the
 * interpreter is ending: nothing of Python may be touched any more. */
bool df_thread_enter(struct df_thread_stay *stay);
void df_thread_leave(const struct df_thread_stay *stay);

/* Around the loop of a session, in a thread that has entered: the end of the interpreter does not
 * wait for it. Resuming does not return once that has come. */
PyThreadState *df_thread_rest(void);
void df_thread_resume(PyThreadState *state);

extern PyMethodDef df_thread_methods[];

/* ---- error.c ---- */

/* The errno that the exception stands for, and takes the exception. Those of the kind `own` have
 * one; of others the helper says it, who writes them down. `result` is what the method returned,
 * which the exception is about; NULL: it raised. */
int df_error_take(PyObject *own, PyObject *helper, const char *operation, PyObject *result);

/* ---- args.c: arguments ---- */

/* A tuple of `count` references, which it takes; NULL if one of them is. */
PyObject *df_args_pack(int count, ...);

/* A path or a name as the file system encoding has it. */
PyObject *df_args_text(const char *text);

/* The value of an int of a result, at most `max`; -1 with an exception. `what` is for messages. */
int df_args_unsigned(PyObject *value, const char *what, uint64_t max, uint64_t *out);

/* The bytes of a symlink's target; NULL with an exception: no bytes, or more than a path has. */
const char *df_args_link(PyObject *target);

/* ---- run.c ---- */

extern PyMethodDef df_run_methods[];

/* argv of a session from a sequence of str. */
struct df_words {
    int count;
    char **list; /* NULL-terminated; one block with the text */
};
int df_words_read(struct df_words *words, PyObject *sequence);
void df_words_free(struct df_words *words);

/* ---- types, each in the file of its name ---- */

int df_turn_prepare(PyObject *module);
int df_node_job_prepare(PyObject *module);
int df_node_session_prepare(PyObject *module);
int df_node_poll_prepare(PyObject *module);
int df_path_session_prepare(PyObject *module);

/* Makes a heap type and adds it to the module; NULL with an exception. */
PyTypeObject *df_type_add(PyObject *module, PyType_Spec *spec);

#endif
