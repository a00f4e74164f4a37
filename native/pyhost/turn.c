/*
 * turn.c - one step of a file system at a time; see turn.h.
 */
#include "pyhost/turn.h"

#include <stdatomic.h>

struct turn {
    PyObject ob_base;
    PyThread_type_lock lock;
    _Atomic(const void *) owner; /* whose: an address that only that thread has; NULL: nobody's */
};

static PyTypeObject *turn_type;
static _Thread_local char self;

bool df_turn_is_mine(PyObject *object)
{
    struct turn *turn = (struct turn *)object;
    return atomic_load_explicit(&turn->owner, memory_order_relaxed) == &self;
}

void df_turn_take(PyObject *object)
{
    struct turn *turn = (struct turn *)object;
    if (PyThread_acquire_lock(turn->lock, NOWAIT_LOCK) != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS;
        PyThread_acquire_lock(turn->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS;
    }
    atomic_store_explicit(&turn->owner, &self, memory_order_relaxed);
}

void df_turn_give(PyObject *object)
{
    struct turn *turn = (struct turn *)object;
    atomic_store_explicit(&turn->owner, NULL, memory_order_relaxed);
    PyThread_release_lock(turn->lock);
}

/* ---- the type ---- */

static PyObject *take(PyObject *self_object, PyObject *unused)
{
    (void)unused;
    if (df_turn_is_mine(self_object)) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has the turn already");
        return NULL;
    }
    df_turn_take(self_object);
    Py_RETURN_NONE;
}

static PyObject *give(PyObject *self_object, PyObject *unused)
{
    (void)unused;
    if (df_turn_is_mine(self_object)) {
        df_turn_give(self_object);
        Py_RETURN_NONE;
    }
    PyErr_SetString(PyExc_RuntimeError, "this thread does not have the turn");
    return NULL;
}

static PyObject *is_mine(PyObject *self_object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(df_turn_is_mine(self_object));
}

/* In a forked child: whoever had it does not exist, unless it is this thread. */
static PyObject *renew(PyObject *self_object, PyObject *unused)
{
    (void)unused;
    struct turn *turn = (struct turn *)self_object;
    if (df_turn_is_mine(self_object))
        Py_RETURN_FALSE;
    bool was_taken = turn->owner != NULL;
    PyThread_type_lock lock = PyThread_allocate_lock();
    if (!lock)
        return PyErr_NoMemory();
    turn->lock = lock; /* the former one cannot be freed: its state is another thread's */
    atomic_store_explicit(&turn->owner, NULL, memory_order_relaxed);
    return PyBool_FromLong(was_taken);
}

PyObject *df_turn_new(void)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(turn_type, Py_tp_alloc);
    struct turn *turn = (struct turn *)allocate(turn_type, 0);
    if (!turn)
        return NULL;
    turn->lock = PyThread_allocate_lock();
    if (turn->lock)
        return (PyObject *)turn;
    Py_DECREF(turn);
    return PyErr_NoMemory();
}

static PyObject *new_turn(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    return df_turn_new();
}

static void dealloc(PyObject *object)
{
    struct turn *turn = (struct turn *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (turn->lock)
        PyThread_free_lock(turn->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"take", take, METH_NOARGS, PyDoc_STR("take()\n--\n\nWaits for the turn.")},
    {"give", give, METH_NOARGS, PyDoc_STR("give()\n--\n\nEnds it.")},
    {"is_mine", is_mine, METH_NOARGS, PyDoc_STR("is_mine()\n--\n\nWhether this thread has it.")},
    {"renew", renew, METH_NOARGS,
     PyDoc_STR("renew()\n--\n\nIn a forked child: nobody else has it. Whether somebody had.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new_turn},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "One step of a file system at a time."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._pyhost.Turn",
    .basicsize = sizeof(struct turn),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int df_turn_prepare(PyObject *module)
{
    turn_type = df_type_add(module, &spec);
    return turn_type ? 0 : -1;
}
