/*
 * unclosed.c - the ResourceWarning of a file that was forgotten: `open(path).read()`.
 *
 * By default these are ignored, which the interpreter finds out after it has made the text and
 * looked for the line: twice as much work as the rest of such a read. So the filters are asked
 * first: one that ignores the category whatever the text and the place ends it here.
 */
#include <string.h>

#include "python/fast.h"

static PyObject *warnings; /* interned names */
static PyObject *filters;
static bool filters_are_all; /* no context variable has others (Python 3.14 and later may) */

enum { ACTION, MESSAGE, CATEGORY, MODULE, LINE, FIELDS }; /* of a filter: a tuple */

enum verdict { OF_ANOTHER, IGNORES, NOT_THAT_SIMPLE };

static enum verdict judge(PyObject *filter)
{
    if (!PyTuple_Check(filter) || PyTuple_Size(filter) != FIELDS)
        return NOT_THAT_SIMPLE;
    PyObject *category = PyTuple_GetItem(filter, CATEGORY);
    if (!PyType_Check(category))
        return NOT_THAT_SIMPLE;
    if (!PyType_IsSubtype((PyTypeObject *)PyExc_ResourceWarning, (PyTypeObject *)category))
        return OF_ANOTHER;
    PyObject *action = PyTuple_GetItem(filter, ACTION);
    PyObject *line = PyTuple_GetItem(filter, LINE);
    bool any = PyTuple_GetItem(filter, MESSAGE) == Py_None &&
               PyTuple_GetItem(filter, MODULE) == Py_None && PyLong_Check(line) &&
               PyLong_AsLong(line) == 0;
    return any && PyUnicode_Check(action) && PyUnicode_CompareWithASCIIString(action, "ignore") == 0
               ? IGNORES
               : NOT_THAT_SIMPLE;
}

/* What was judged last, and the verdict: filters are tuples, so the same ones say the same. */
enum { KNOWN_MAX = 16 };

static struct {
    PyObject *filters[KNOWN_MAX]; /* owned */
    Py_ssize_t count;             /* 0: nothing was judged */
    bool ignores;
} known;

static bool is_known(PyObject *list, Py_ssize_t count)
{
    Py_ssize_t i = 0;
    while (i < count && count == known.count && PyList_GetItem(list, i) == known.filters[i])
        i++;
    return i == count && count > 0;
}

/* The references that are dropped may run code of the program's: last of all. */
static void know(PyObject *list, Py_ssize_t count, bool ignores)
{
    PyObject *before[KNOWN_MAX];
    const Py_ssize_t dropped = known.count;
    memcpy(before, known.filters, sizeof(before));
    known.count = count <= KNOWN_MAX ? count : 0;
    known.ignores = ignores;
    for (Py_ssize_t i = 0; i < known.count; i++)
        known.filters[i] = Py_NewRef(PyList_GetItem(list, i));
    for (Py_ssize_t i = 0; i < dropped; i++)
        Py_DECREF(before[i]);
}

/* The first filter of the category decides, as in `warnings`. */
static bool judge_list(PyObject *list, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        enum verdict verdict = judge(PyList_GetItem(list, i));
        if (verdict != OF_ANOTHER)
            return verdict == IGNORES;
    }
    return false;
}

static bool list_ignores(PyObject *list)
{
    const Py_ssize_t count = PyList_Size(list);
    if (is_known(list, count))
        return known.ignores;
    const bool ignores = judge_list(list, count);
    know(list, count, ignores);
    return ignores;
}

/* The modules of an interpreter that ends go before the last files, and who asks for them then ends
 * the process. Only of the main one it can be seen. */
static bool has_modules(void)
{
    return Py_IsInitialized() && PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
}

bool df_unclosed_is_ignored(void)
{
    PyObject *modules = filters_are_all && has_modules() ? PyImport_GetModuleDict() : NULL;
    PyObject *module = modules ? PyDict_GetItemWithError(modules, warnings) : NULL;
    bool real = module && PyModule_CheckExact(module);
    PyObject *list = real ? PyDict_GetItemWithError(PyModule_GetDict(module), filters) : NULL;
    bool ignored = list && PyList_Check(list) && list_ignores(list); /* all is borrowed */
    PyErr_Clear();
    return ignored;
}

int df_unclosed_warn(PyObject *file)
{
    return df_unclosed_is_ignored() ? 0 : PyErr_ResourceWarning(file, 1, "unclosed file %R", file);
}

/* sys.flags.context_aware_warnings, where there is such a thing. */
static bool contexts_have_filters(void)
{
    PyObject *flags = PySys_GetObject("flags");
    PyObject *aware = flags ? PyObject_GetAttrString(flags, "context_aware_warnings") : NULL;
    bool truth = aware && PyObject_IsTrue(aware);
    Py_XDECREF(aware);
    PyErr_Clear();
    return truth;
}

int df_unclosed_prepare(void)
{
    warnings = PyUnicode_InternFromString("warnings");
    filters = PyUnicode_InternFromString("filters");
    filters_are_all = !contexts_have_filters();
    return warnings && filters ? 0 : -1;
}
