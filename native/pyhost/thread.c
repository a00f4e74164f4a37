/*
 * thread.c - threads that call into Python: with and without the GIL, known to the interpreter or
 * not, and none any more once it ends.
 *
 * A thread made by C code has no thread state. Making one for each call costs 10 us; the one that
 * the first call makes is kept and ends with the thread.
 *
 * When the interpreter ends, a thread that asks for the GIL is stopped for good by it, with
 * whatever locks of the core it holds. So the door is closed before that (close(), called at the
 * exit of the interpreter): who comes later gets an error, who is inside is waited for.
 */
#include "pyhost/pyhost.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/*
 * What C++ uses for its thread_local objects (glibc, cxa_thread_atexit_impl.c). A destructor of a
 * pthread key would come too late: by then Python's own key is cleared.
 */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* One line shared by all threads: each of them has to take the GIL at the same moment anyway. */
static _Atomic long inside;
static _Thread_local long mine; /* of them this thread's, which may be inside more than once */
static _Atomic bool closed;

/* ---- kept states ---- */

static void end(void)
{
    mine--;
    atomic_fetch_sub(&inside, 1);
}

static bool begin(void)
{
    mine++;
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&closed))
        return true;
    end();
    return false;
}

static void end_kept_state(void *unused)
{
    (void)unused;
    if (!begin())
        return;
    PyGILState_Ensure();
    PyGILState_Release(PyGILState_LOCKED);
    PyGILState_Release(PyGILState_UNLOCKED); /* the one that was kept: frees the state */
    end();
}

/* The counter of PyGILState stays at 1, for us. */
static void keep_state(void)
{
    PyGILState_Ensure();
    __cxa_thread_atexit_impl(end_kept_state, NULL, &__dso_handle);
    PyEval_SaveThread();
}

/* ---- entering ---- */

bool df_thread_enter(struct df_thread_stay *stay)
{
    if (!begin())
        return false;
    if (!PyGILState_GetThisThreadState())
        keep_state();
    stay->state = PyGILState_Ensure();
    PyErr_Fetch(&stay->type, &stay->value, &stay->traceback);
    return true;
}

void df_thread_leave(const struct df_thread_stay *stay)
{
    PyErr_Restore(stay->type, stay->value, stay->traceback);
    PyGILState_Release(stay->state);
    end();
}

/* ---- a thread that serves, and sleeps meanwhile ---- */

PyThreadState *df_thread_rest(void)
{
    PyThreadState *state = PyEval_SaveThread();
    end();
    return state;
}

void df_thread_resume(PyThreadState *state)
{
    while (!begin())
        pause(); /* the interpreter has gone, and there is nothing to go back to */
    PyEval_RestoreThread(state);
}

/* ---- the end ---- */

static bool wait_outside(double seconds)
{
    const struct timespec moment = {0, 1000000};
    for (double waited = 0; atomic_load(&inside) > 0; waited += 0.001) {
        if (waited >= seconds)
            return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

static PyObject *close_door(PyObject *module, PyObject *seconds)
{
    (void)module;
    double patience = PyFloat_AsDouble(seconds);
    if (patience == -1 && PyErr_Occurred())
        return NULL;
    atomic_store(&closed, true);
    bool empty;
    Py_BEGIN_ALLOW_THREADS;
    empty = wait_outside(patience);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(empty);
}

/* In a forked child the other threads that were inside do not exist. */
static PyObject *after_fork(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    atomic_store(&inside, mine);
    Py_RETURN_NONE;
}

PyMethodDef df_thread_methods[] = {
    {"close", close_door, METH_O,
     PyDoc_STR("close(seconds, /)\n--\n\nLets no operation in any more; waits for those inside. "
               "False when they take longer.")},
    {"after_fork", after_fork, METH_NOARGS,
     PyDoc_STR("after_fork()\n--\n\nIn a child: forgets the threads that it does not have.")},
    {NULL, NULL, 0, NULL},
};
