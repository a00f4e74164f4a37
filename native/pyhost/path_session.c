/*
 * path_session.c - PathSession: a main() of libfuse's high-level API for the operations of fusepy,
 * mfusepy and refuse; and what each of their operations does first and last.
 *
 * Unlike pyfuse3 these libraries promise nothing: operations run on several threads at a time,
 * unless -s is among the words.
 */
#include "pyhost/path.h"

static struct df_path_session *session_of(PyObject *self)
{
    return (struct df_path_session *)self;
}

/* ---- one operation ---- */

static bool enter(struct df_path_call *call, struct df_path_session *session,
                  struct df_path_name *name)
{
    call->session = session;
    call->name = name;
    call->result = NULL;
    return df_thread_enter(&call->stay);
}

bool df_path_enter(struct df_path_call *call, struct df_path_name *name)
{
    return enter(call, fuse_get_context()->private_data, name);
}

static PyObject *key_of(struct df_path_name *name)
{
    if (!name->key)
        name->key = PyUnicode_InternFromString(name->text);
    return name->key;
}

static PyObject *by_name(const struct df_path_call *call, int count, PyObject *args[])
{
    PyObject *all = PyTuple_New(count + 1);
    PyObject *result = NULL;
    if (all) {
        PyTuple_SetItem(all, 0, Py_NewRef(call->name->key));
        for (int i = 0; i < count; i++)
            PyTuple_SetItem(all, i + 1, Py_NewRef(args[i]));
        result = PyObject_Call(call->session->ops, all, NULL);
    }
    Py_XDECREF(all);
    return result;
}

PyObject *df_path_send_list(struct df_path_call *call, int count, PyObject *args[DF_PATH_ARGS + 1])
{
    bool complete = key_of(call->name) != NULL;

    for (int i = 0; i < count; i++)
        complete = complete && args[i];
    if (complete && call->session->by_call)
        call->result = by_name(call, count, args);
    else if (complete) /* the first that is NULL ends the list */
        call->result = PyObject_CallMethodObjArgs(call->session->ops, call->name->key, args[0],
                                                  args[1], args[2], args[3], args[4], NULL);
    for (int i = 0; i < count; i++)
        Py_XDECREF(args[i]);
    return complete ? call->result : NULL;
}

/* Takes the exception: OSError is these libraries' way to fail. */
static int failure(const struct df_path_call *call)
{
    return -df_error_take(PyExc_OSError, call->session->helper, call->name->text, call->result);
}

int df_path_end(struct df_path_call *call, long long result)
{
    int done = PyErr_Occurred() ? failure(call) : (int)result;
    Py_XDECREF(call->result);
    df_thread_leave(&call->stay);
    return done;
}

/* The number that a method returned; 0: nothing, or what is false, as these libraries take it.
 * Anything else is a mistake, such as the coroutine of a method that is `async`. */
static long number_of(PyObject *result)
{
    if (PyLong_Check(result))
        return PyLong_AsLong(result);
    if (PyObject_IsTrue(result) > 0)
        PyErr_Format(PyExc_TypeError, "an int or None was expected, not %R",
                     (PyObject *)Py_TYPE(result));
    return 0;
}

int df_path_do_list(struct df_path_call *call, int count, PyObject *args[DF_PATH_ARGS + 1])
{
    PyObject *result = df_path_send_list(call, count, args);
    return df_path_end(call, result ? number_of(result) : 0);
}

/* ---- the table ---- */

bool df_path_has(const struct df_path_session *session, const char *method)
{
    PyObject *name = PyUnicode_FromString(method);
    int found = name ? PySequence_Contains(session->methods, name) : -1;
    Py_XDECREF(name);
    if (found < 0)
        PyErr_Clear();
    return found > 0;
}

/* The file system's own init has run before this: it may refuse the mount. */
static struct df_path_name init_name = {"init", NULL}, destroy_name = {"destroy", NULL};

static void *op_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    struct df_path_call call;
    PyObject *self = fuse_get_context()->private_data;

    if (enter(&call, session_of(self), &init_name)) {
        PyObject *options = PyObject_CallMethod(call.session->helper, "settings", NULL);
        int number = 0, inode = 0, direct = 0, hard = 0, truncates = 0;
        if (options &&
            PyArg_ParseTuple(options, "ppppp", &number, &inode, &direct, &hard, &truncates)) {
            config->use_ino = number;
            config->readdir_ino = inode;
            config->direct_io = direct;
            config->hard_remove = hard;
            if (truncates)
                conn->want &= ~(unsigned)FUSE_CAP_ATOMIC_O_TRUNC;
        }
        Py_XDECREF(options);
        df_path_end(&call, 0);
    }
    return self;
}

static void op_destroy(void *self)
{
    struct df_path_call call;
    if (!enter(&call, session_of(self), &destroy_name))
        return;
    df_path_do(&call, df_args_text("/"));
}

static PyObject *run(PyObject *self, PyObject *list)
{
    struct df_path_session *session = session_of(self);
    struct fuse_operations table = {.init = op_init};
    struct df_words words;

    if (df_words_read(&words, list) < 0)
        return NULL;
    df_path_ops_fill(&table, session);
    df_path_file_fill(&table, session);
    if (df_path_has(session, "destroy"))
        table.destroy = op_destroy;
    PyThreadState *state = df_thread_rest();
    int status = fuse_main(words.count, words.list, &table, session);
    df_thread_resume(state);
    df_words_free(&words);
    return PyLong_FromLong(status);
}

/* ---- the type ---- */

static int init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"ops",         "helper",       "methods",        "by_call",
                            "nanoseconds", "create_flags", "readdir_offset", NULL};
    struct df_path_session *session = session_of(self);
    PyObject *ops, *helper, *methods;
    int by_call = 0, nanoseconds = 0, create_flags = 0, readdir_offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|$pppp", names, &ops, &helper, &methods,
                                     &by_call, &nanoseconds, &create_flags, &readdir_offset))
        return -1;
    session->ops = Py_NewRef(ops);
    session->helper = Py_NewRef(helper);
    session->methods = Py_NewRef(methods);
    session->by_call = by_call;
    session->nanoseconds = nanoseconds;
    session->create_flags = create_flags;
    session->readdir_offset = readdir_offset;
    return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(session_of(self)->ops);
    Py_VISIT(session_of(self)->helper);
    Py_VISIT(session_of(self)->methods);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(session_of(self)->ops);
    Py_CLEAR(session_of(self)->helper);
    Py_CLEAR(session_of(self)->methods);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"run", run, METH_O,
     PyDoc_STR("run(words, /)\n--\n\nfuse_main() with these words; returns its status after the "
               "unmount. On a plugin's thread.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "PathSession(ops, helper, methods): a path-keyed file system, to be mounted."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._pyhost.PathSession",
    .basicsize = sizeof(struct df_path_session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int df_path_session_prepare(PyObject *module)
{
    if (df_path_types_prepare() < 0)
        return -1;
    return df_type_add(module, &spec) ? 0 : -1;
}
