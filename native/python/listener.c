/*
 * listener.c - what the library has to tell of its own (a mount server or a file system that died),
 * for Python's logging.
 *
 * The library tells it in the middle of a call, in any thread. So it is handed to the main thread,
 * which says it between two instructions, outside of every call.
 */
#include <stdlib.h>
#include <string.h>

#include "directfuse.h"
#include "python/fast.h"

static PyObject *said_by; /* called with the words */

static int say(void *argument)
{
    char *words = argument;
    PyObject *text = PyUnicode_DecodeFSDefault(words);
    PyObject *done = text ? PyObject_CallFunctionObjArgs(said_by, text, NULL) : NULL;

    free(words);
    Py_XDECREF(text);
    if (!done)
        return -1;
    Py_DECREF(done);
    return 0;
}

/* Too many at once (32), or an interpreter that has ended: nobody is told. */
static void hear(int mount, const char *words)
{
    char *copy = Py_IsInitialized() ? strdup(words) : NULL;

    (void)mount;
    if (copy && Py_AddPendingCall(say, copy) < 0)
        free(copy);
}

static PyObject *listen_by(PyObject *module, PyObject *function)
{
    (void)module;
    df_fast_replace(&said_by, function);
    df_set_listener(hear);
    Py_RETURN_NONE;
}

PyMethodDef df_listener_methods[] = {
    {"listen_by", listen_by, METH_O,
     PyDoc_STR("listen_by(function, /)\n--\n\nFrom now on function(words) is called, in the main "
               "thread, when a mount server or a file system is gone, or does not answer.")},
    {NULL, NULL, 0, NULL},
};
