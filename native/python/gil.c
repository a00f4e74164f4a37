/*
 * gil.c - what the mounting side tells about a mount and the GIL; the rule is in gil.h.
 */
#include "python/gil.h"

#include "core/gate.h"

int df_gil_wanted;

static _Thread_local bool forking; /* this thread has closed the gate, and counts as one of those */

static PyObject *expect_mount(PyObject *module, PyObject *arg)
{
    (void)module;
    int truth = PyObject_IsTrue(arg);
    if (truth < 0)
        return NULL;
    df_gil_wanted += truth ? 1 : -1;
    Py_RETURN_NONE;
}

static PyObject *declare_prompt(PyObject *module, PyObject *arg)
{
    (void)module;
    int id = 0;
    if (!df_args_int(arg, &id)) {
        PyErr_SetString(PyExc_TypeError, "declare_prompt() takes the number of a mount");
        return NULL;
    }
    df_mount_set_prompt(id);
    Py_RETURN_NONE;
}

/* pthread_atfork's handlers run with the GIL held, for which a call that is inside a Python file
 * system would wait. So the gate is closed before them, without it; they open it again. Who finds
 * it closed meanwhile must not keep the GIL, though all mounts may be prompt by now. */
static PyObject *quiesce(PyObject *module, PyObject *arg)
{
    (void)module;
    double seconds = PyFloat_AsDouble(arg);
    if (seconds == -1 && PyErr_Occurred())
        return NULL;
    df_gil_wanted += !forking;
    forking = true;
    Py_BEGIN_ALLOW_THREADS;
    df_gate_close((int64_t)(seconds * 1e9));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *forked(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    df_gil_wanted -= forking;
    forking = false;
    Py_RETURN_NONE;
}

PyMethodDef df_gil_methods[] = {
    {"quiesce", quiesce, METH_O,
     PyDoc_STR("quiesce(seconds, /)\n--\n\nJust before os.fork(): no call begins any more; waits "
               "for those of other threads.")},
    {"forked", forked, METH_NOARGS,
     PyDoc_STR("forked()\n--\n\nAfter os.fork(), in both processes, whether quiesce() was called "
               "or not.")},
    {"expect_mount", expect_mount, METH_O,
     PyDoc_STR("expect_mount(begin, /)\n--\n\nTells that a df_mount() begins, or has ended.")},
    {"declare_prompt", declare_prompt, METH_O,
     PyDoc_STR("declare_prompt(mount_id, /)\n--\n\nTells that the mount's plugin never sleeps.")},
    {NULL, NULL, 0, NULL},
};
