/*
 * node_session.c - NodeSession: a session of libfuse's low-level API for a pyfuse3 file system.
 *
 *     session = NodeSession(ops, helper, pyfuse3, writes_back, acls)
 *     session.open(words, mountpoint)    fuse_session_new, fuse_session_mount; the plugin's thread
 *     session.loop()                     until the unmount
 *     session.close()
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "libfuse/turn.h"
#include "pyhost/node.h"
#include "pyhost/turn.h"

static struct df_node_session *session_of(PyObject *self)
{
    return (struct df_node_session *)self;
}

/* ---- life ---- */

static int init(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct df_node_session *session = session_of(self);
    PyObject *ops, *helper, *pyfuse3;
    int writes_back, acls;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OOOpp", &ops, &helper, &pyfuse3, &writes_back, &acls) ||
        df_node_types_prepare(pyfuse3) < 0)
        return -1;
    session->ops = Py_NewRef(ops);
    session->helper = Py_NewRef(helper);
    session->writes_back = writes_back;
    session->acls = acls;
    session->turn = df_turn_new();
    for (int i = 0; session->turn && i < DF_NODE_OP_COUNT; i++) {
        session->methods[i].name = PyUnicode_InternFromString(df_node_op_name(i));
        if (!session->methods[i].name)
            return -1;
    }
    return session->turn ? 0 : -1;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct df_node_session *session = session_of(self);
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(session->ops);
    Py_VISIT(session->helper);
    for (int i = 0; i < DF_NODE_OP_COUNT; i++)
        Py_VISIT(session->methods[i].judged);
    return 0;
}

static int clear(PyObject *self)
{
    struct df_node_session *session = session_of(self);
    Py_CLEAR(session->ops);
    Py_CLEAR(session->helper);
    for (int i = 0; i < DF_NODE_OP_COUNT; i++)
        Py_CLEAR(session->methods[i].judged);
    return 0;
}

static void dealloc(PyObject *self)
{
    struct df_node_session *session = session_of(self);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    for (int i = 0; i < DF_NODE_OP_COUNT; i++)
        Py_CLEAR(session->methods[i].name);
    Py_CLEAR(session->turn);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ---- opening, serving, closing ---- */

static bool is_my_turn(void *turn)
{
    return df_turn_is_mine(turn);
}

/* libfuse has said why in the plugin's log. */
static PyObject *failed(const char *what)
{
    return PyErr_Format(PyExc_RuntimeError, "%s failed", what);
}

static int make_fuse(struct df_node_session *session, PyObject *list)
{
    struct fuse_lowlevel_ops table;
    struct df_words words;

    if (df_node_ops_fill(&table, session->ops) < 0 || df_words_read(&words, list) < 0)
        return -1;
    struct fuse_args args = FUSE_ARGS_INIT(words.count, words.list);
    session->fuse = fuse_session_new(&args, &table, sizeof(table), session);
    fuse_opt_free_args(&args);
    df_words_free(&words);
    if (!session->fuse) {
        failed("fuse_session_new()");
        return -1;
    }
    df3_session_turn(session->fuse, is_my_turn, session->turn);
    return 0;
}

static int mount_fuse(struct df_node_session *session, const char *mountpoint)
{
    int error;

    Py_BEGIN_ALLOW_THREADS;
    error = fuse_session_mount(session->fuse, mountpoint);
    if (error)
        fuse_session_destroy(session->fuse);
    Py_END_ALLOW_THREADS;
    if (!error)
        return 0;
    session->fuse = NULL;
    failed("fuse_session_mount()");
    return -1;
}

static PyObject *open_session(PyObject *self, PyObject *args)
{
    struct df_node_session *session = session_of(self);
    PyObject *list, *mountpoint;

    if (session->fuse)
        return PyErr_Format(PyExc_RuntimeError, "the session is open");
    if (!PyArg_ParseTuple(args, "OO&", &list, PyUnicode_FSConverter, &mountpoint))
        return NULL;
    bool open =
        make_fuse(session, list) == 0 && mount_fuse(session, PyBytes_AsString(mountpoint)) == 0;
    Py_DECREF(mountpoint);
    if (!open)
        return NULL;
    Py_INCREF(self); /* userdata; until close() */
    Py_RETURN_NONE;
}

static bool is_open(const struct df_node_session *session)
{
    if (session->fuse)
        return true;
    PyErr_SetString(PyExc_RuntimeError, "the session is not open");
    return false;
}

static PyObject *loop(PyObject *self, PyObject *unused)
{
    struct df_node_session *session = session_of(self);
    (void)unused;
    if (!is_open(session))
        return NULL;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    PyThreadState *state = df_thread_rest();
    int result = fuse_session_loop_mt(session->fuse, config);
    df_thread_resume(state);
    fuse_loop_cfg_destroy(config);
    return PyLong_FromLong(result);
}

static PyObject *exit_session(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!is_open(session_of(self)))
        return NULL;
    fuse_session_exit(session_of(self)->fuse);
    Py_RETURN_NONE;
}

/* Of other threads; they are short. */
static void await_notifications(struct df_node_session *session)
{
    const struct timespec moment = {0, 1000000};
    while (atomic_load(&session->telling) > 0)
        nanosleep(&moment, NULL);
}

static PyObject *close_session(PyObject *self, PyObject *unused)
{
    struct fuse_session *fuse = session_of(self)->fuse;
    (void)unused;
    if (!fuse)
        Py_RETURN_NONE;
    session_of(self)->fuse = NULL;
    PyThreadState *state = df_thread_rest();
    fuse_session_unmount(fuse);
    await_notifications(session_of(self));
    fuse_session_destroy(fuse);
    df_thread_resume(state);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

/* ---- notifications ---- */

/* The session, which stays until told(); NULL with an exception: it is not open. */
static struct fuse_session *tell(struct df_node_session *session)
{
    if (!is_open(session))
        return NULL;
    atomic_fetch_add(&session->telling, 1);
    return session->fuse;
}

/* The errno, 0 for none. */
static PyObject *told(struct df_node_session *session, int result)
{
    atomic_fetch_sub(&session->telling, 1);
    return PyLong_FromLong(-result);
}

static PyObject *invalidate_inode(PyObject *self, PyObject *args)
{
    struct df_node_session *session = session_of(self);
    struct fuse_session *fuse;
    unsigned long long ino;
    int attr_only, result;
    if (!PyArg_ParseTuple(args, "Kp", &ino, &attr_only) || !(fuse = tell(session)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    result = fuse_lowlevel_notify_inval_inode(fuse, ino, attr_only ? -1 : 0, 0);
    Py_END_ALLOW_THREADS;
    return told(session, result);
}

static PyObject *invalidate_entry(PyObject *self, PyObject *args)
{
    struct df_node_session *session = session_of(self);
    struct fuse_session *fuse;
    unsigned long long parent, deleted;
    const char *name;
    Py_ssize_t size;
    int result;
    if (!PyArg_ParseTuple(args, "Ky#K", &parent, &name, &size, &deleted) || !(fuse = tell(session)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    result = deleted ? fuse_lowlevel_notify_delete(fuse, parent, deleted, name, (size_t)size)
                     : fuse_lowlevel_notify_inval_entry(fuse, parent, name, (size_t)size);
    Py_END_ALLOW_THREADS;
    return told(session, result);
}

static PyObject *store(PyObject *self, PyObject *args)
{
    struct df_node_session *session = session_of(self);
    struct fuse_session *fuse;
    unsigned long long ino;
    long long offset;
    Py_buffer data;
    int result;
    if (!PyArg_ParseTuple(args, "KLy*", &ino, &offset, &data))
        return NULL;
    if (!(fuse = tell(session))) {
        PyBuffer_Release(&data);
        return NULL;
    }
    struct fuse_bufvec vector = FUSE_BUFVEC_INIT((size_t)data.len);
    vector.buf[0].mem = data.buf;
    Py_BEGIN_ALLOW_THREADS;
    result = fuse_lowlevel_notify_store(fuse, ino, offset, &vector, 0);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&data);
    return told(session, result);
}

/* ---- the type ---- */

static PyObject *get_turn(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(session_of(self)->turn);
}

static PyMethodDef methods[] = {
    {"open", open_session, METH_VARARGS,
     PyDoc_STR("open(words, mountpoint, /)\n--\n\nMakes the session; mounts when loop() runs.")},
    {"loop", loop, METH_NOARGS, PyDoc_STR("loop()\n--\n\nServes until the unmount.")},
    {"exit", exit_session, METH_NOARGS, PyDoc_STR("exit()\n--\n\nEnds the mount.")},
    {"close", close_session, METH_NOARGS, PyDoc_STR("close()\n--\n\nEnds the session.")},
    {"invalidate_inode", invalidate_inode, METH_VARARGS,
     PyDoc_STR("invalidate_inode(ino, attr_only, /)\n--\n\nThe errno.")},
    {"invalidate_entry", invalidate_entry, METH_VARARGS,
     PyDoc_STR("invalidate_entry(parent, name, deleted, /)\n--\n\nThe errno.")},
    {"store", store, METH_VARARGS, PyDoc_STR("store(ino, offset, data, /)\n--\n\nThe errno.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"turn", get_turn, NULL, "One step of the file system at a time.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc,
     "NodeSession(ops, helper, pyfuse3, writes_back, acls): a pyfuse3 file system, to be mounted."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._pyhost.NodeSession",
    .basicsize = sizeof(struct df_node_session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int df_node_session_prepare(PyObject *module)
{
    return df_type_add(module, &spec) ? 0 : -1;
}
