/*
 * gil.c - what the mounting side tells about a mount and the GIL; the rule is in gil.h.
 */
#include "python/gil.h"

#include "core/gate.h"

int df_gil_mounts_expected;

static PyObject *expect_mount(PyObject *module, PyObject *arg)
{
    (void)module;
    int truth = PyObject_IsTrue(arg);
    if (truth < 0)
        return NULL;
    df_gil_mounts_expected += truth ? 1 : -1;
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
 * system would wait. So the gate is closed before them, without it; they open it again. */
static PyObject *quiesce(PyObject *module, PyObject *arg)
{
    (void)module;
    double seconds = PyFloat_AsDouble(arg);
    if (seconds == -1 && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    df_gate_close((int64_t)(seconds * 1e9));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyMethodDef df_gil_methods[] = {
    {"quiesce", quiesce, METH_O,
     PyDoc_STR("quiesce(seconds, /)\n--\n\nJust before os.fork(): no call begins any more; waits "
               "for those of other threads.")},
    {"expect_mount", expect_mount, METH_O,
     PyDoc_STR("expect_mount(begin, /)\n--\n\nTells that a df_mount() begins, or has ended.")},
    {"declare_prompt", declare_prompt, METH_O,
     PyDoc_STR("declare_prompt(mount_id, /)\n--\n\nTells that the mount's plugin never sleeps.")},
    {NULL, NULL, 0, NULL},
};
