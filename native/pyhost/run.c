/*
 * run.c - a Python function in the place of a program's main(): mounting.
 */
#include "pyhost/pyhost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directfuse.h"
#include "libfuse/turn.h"

enum {
    MESSAGE_SIZE = 16384, /* bytes of what a file system says while it mounts */
    STATUS_FAILED = 1,    /* what main returns when Python raised */
};

/* ---- words ---- */

/* The encoded words, and the size of all of them. */
static PyObject *encode(PyObject *sequence, size_t *size)
{
    PyObject *encoded = PySequence_List(sequence);
    Py_ssize_t count = encoded ? PyList_Size(encoded) : 0;

    *size = ((size_t)count + 1) * sizeof(char *);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *word = NULL;
        if (!PyUnicode_FSConverter(PyList_GetItem(encoded, i), &word)) {
            Py_DECREF(encoded);
            return NULL;
        }
        *size += (size_t)PyBytes_Size(word) + 1;
        PyList_SetItem(encoded, i, word);
    }
    return encoded;
}

int df_words_read(struct df_words *words, PyObject *sequence)
{
    size_t size;
    PyObject *encoded = encode(sequence, &size);
    if (!encoded)
        return -1;
    words->list = malloc(size);
    if (!words->list) {
        Py_DECREF(encoded);
        PyErr_NoMemory();
        return -1;
    }
    words->count = (int)PyList_Size(encoded);
    char *text = (char *)(words->list + words->count + 1);
    for (int i = 0; i < words->count; i++) {
        words->list[i] = text;
        text = stpcpy(text, PyBytes_AsString(PyList_GetItem(encoded, i))) + 1;
    }
    words->list[words->count] = NULL;
    Py_DECREF(encoded);
    return 0;
}

void df_words_free(struct df_words *words)
{
    free(words->list);
}

/* ---- main ---- */

/* What is to be run, of mount() and of the plugin's thread. Protected by the GIL. */
struct program {
    PyObject *function;
    bool begun; /* the thread has got so far */
    int holders;
};

static struct program *program_new(PyObject *function)
{
    struct program *program = malloc(sizeof(*program));
    if (program)
        *program = (struct program){.function = Py_NewRef(function), .holders = 2};
    return program;
}

static void program_put(struct program *program, int holders)
{
    program->holders -= holders;
    if (program->holders > 0)
        return;
    Py_DECREF(program->function);
    free(program);
}

static int status_of(PyObject *function)
{
    int status = STATUS_FAILED;
    PyObject *result = PyObject_CallNoArgs(function);
    if (result && PyLong_Check(result))
        status = (int)PyLong_AsLong(result) & 0xff;
    else if (!result)
        PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    return status;
}

/* On the plugin's thread. What the function raises it has written down itself. */
static int run_python(int argc, char *argv[], void *data)
{
    struct program *program = data;
    struct df_thread_stay stay;

    (void)argc, (void)argv;
    if (!df_thread_enter(&stay))
        return STATUS_FAILED;
    program->begun = true;
    int status = status_of(program->function);
    program_put(program, 1);
    df_thread_leave(&stay);
    return status;
}

/* After df_mount_function(). A thread that has not begun comes no more, unless it is late only. */
static void let_go(struct program *program, int id)
{
    bool comes_no_more = id < 0 && id != -ETIMEDOUT && !program->begun;

    program_put(program, comes_no_more ? 2 : 1);
}

/* `made` has the number for the end of the interpreter: who called may never hear of it. */
static int note(PyObject *made, int id)
{
    PyObject *number = PyLong_FromLong(id);
    int failed = number ? PyList_Append(made, number) : -1;
    Py_XDECREF(number);
    return failed;
}

/* The exception stays set. */
static void end(int id)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_BEGIN_ALLOW_THREADS;
    df_unmount(id, DF_UNMOUNT_LAZY);
    Py_END_ALLOW_THREADS;
    PyErr_Restore(type, value, traceback);
}

/* Signals come while a file system is mounted, and who is interrupted by one has no mount. */
static int keep(PyObject *made, int id)
{
    if (id < 0 || (note(made, id) == 0 && PyErr_CheckSignals() == 0))
        return 0;
    end(id);
    return -1;
}

static PyObject *mount(PyObject *module, PyObject *args)
{
    PyObject *list, *function, *made;
    unsigned flags;
    struct df_words words;
    char *message = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOIO!", &list, &function, &flags, &PyList_Type, &made) ||
        df_words_read(&words, list) < 0)
        return NULL;
    message = calloc(1, MESSAGE_SIZE);
    struct program *program = message ? program_new(function) : NULL;
    if (!program) {
        free(message);
        df_words_free(&words);
        return PyErr_NoMemory();
    }
    int id;
    Py_BEGIN_ALLOW_THREADS;
    id = df_mount_function(run_python, program, words.count, words.list, flags, message,
                           MESSAGE_SIZE);
    if (id < 0)
        id = -errno;
    Py_END_ALLOW_THREADS;
    let_go(program, id);
    PyObject *text = NULL;
    if (keep(made, id) == 0)
        text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    df_words_free(&words);
    free(message);
    return text ? Py_BuildValue("iN", id, text) : NULL;
}

/* ---- threads of a program ---- */

static PyObject *program_here(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromVoidPtr(df3_program());
}

static PyObject *program_enter(PyObject *module, PyObject *number)
{
    (void)module;
    void *program = PyLong_AsVoidPtr(number);
    return PyErr_Occurred() ? NULL : PyLong_FromVoidPtr(df3_program_enter(program));
}

static PyObject *program_exit(PyObject *module, PyObject *number)
{
    (void)module;
    void *program = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred())
        return NULL;
    df3_program_exit(program);
    Py_RETURN_NONE;
}

PyMethodDef df_run_methods[] = {
    {"mount", mount, METH_VARARGS,
     PyDoc_STR(
         "mount(words, function, flags, made, /)\n--\n\nRuns function() as a program's main on "
         "a thread of its own and returns when it has mounted: the number of the mount, which "
         "the list `made` gets, too, and what was said; or minus the errno, and why.")},
    {"program", program_here, METH_NOARGS,
     PyDoc_STR("program()\n--\n\nThe number of the program whose main's thread this is; or 0.")},
    {"program_enter", program_enter, METH_O,
     PyDoc_STR("program_enter(number, /)\n--\n\nMakes this thread the program's, as long as its "
               "main has not returned; returns whose it was.")},
    {"program_exit", program_exit, METH_O,
     PyDoc_STR("program_exit(number, /)\n--\n\nEnds the program's mount.")},
    {NULL, NULL, 0, NULL},
};
