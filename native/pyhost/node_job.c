/*
 * node_job.c - Job: a request that the event loop answers.
 *
 *     try: result = await job.call()
 *     except BaseException as error: job.fail(error)
 *     else: job.answer(result)
 *
 * A job that is dropped unanswered (the loop has ended, or lost it) answers EIO: no caller waits
 * for nothing.
 */
#include <errno.h>

#include "pyhost/node.h"

struct job {
    PyObject ob_base;
    struct df_node_request request; /* its session is referenced */
    PyObject *method;
    PyObject *args;
    bool begun;
};

static PyTypeObject *job_type;

PyObject *df_node_job_new(struct df_node_request *request, PyObject *method, PyObject *args)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(job_type, Py_tp_alloc);
    struct job *job = (struct job *)allocate(job_type, 0);
    if (!job)
        return NULL;
    job->request = *request;
    request->req = NULL;
    request->token = NULL;
    Py_INCREF((PyObject *)job->request.session);
    Py_INCREF(method);
    job->method = method;
    Py_INCREF(args);
    job->args = args;
    return (PyObject *)job;
}

/* Once; and not for who was told that it was interrupted, and asks again. */
static PyObject *call(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct job *job = (struct job *)self;
    if (job->begun || !job->request.req) {
        PyErr_SetString(PyExc_RuntimeError, "it was begun, or answered, before");
        return NULL;
    }
    job->begun = true;
    return PyObject_Call(job->method, job->args, NULL);
}

static PyObject *answer(PyObject *self, PyObject *result)
{
    struct job *job = (struct job *)self;
    if (job->request.req && df_node_reply(&job->request, result) < 0)
        df_node_reply_exception(&job->request, result);
    Py_RETURN_NONE;
}

static PyObject *fail(PyObject *self, PyObject *error)
{
    struct job *job = (struct job *)self;
    if (!job->request.req)
        Py_RETURN_NONE;
    PyObject *traceback = PyException_GetTraceback(error);
    PyObject *type = (PyObject *)Py_TYPE(error);
    Py_INCREF(type);
    Py_INCREF(error);
    PyErr_Restore(type, error, traceback);
    df_node_reply_exception(&job->request, NULL);
    Py_RETURN_NONE;
}

static void refuse_job(PyObject *self, int error)
{
    struct job *job = (struct job *)self;
    df_node_reply_error(&job->request, -error);
}

bool df_node_job_withdraw(PyObject *self, int error)
{
    struct job *job = (struct job *)self;
    if (!job->begun)
        refuse_job(self, error);
    return !job->begun;
}

static PyObject *withdraw(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool stays = df_node_is_asked_once(((struct job *)self)->request.op);
    return PyBool_FromLong(!stays && df_node_job_withdraw(self, EINTR));
}

static PyObject *refuse(PyObject *self, PyObject *number)
{
    int error = (int)PyLong_AsLong(number);
    if (error == -1 && PyErr_Occurred())
        return NULL;
    refuse_job(self, error);
    Py_RETURN_NONE;
}

static PyObject *get_operation(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(df_node_op_name(((struct job *)self)->request.op));
}

static void dealloc(PyObject *self)
{
    struct job *job = (struct job *)self;
    PyTypeObject *type = Py_TYPE(self);
    df_node_reply_error(&job->request, -EIO);
    if (job->request.token)
        df_node_token_end(job->request.token);
    Py_XDECREF(job->request.token);
    Py_XDECREF(job->args);
    Py_XDECREF(job->method);
    Py_XDECREF((PyObject *)job->request.session);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"call", call, METH_NOARGS, PyDoc_STR("call()\n--\n\nThe coroutine of the operation.")},
    {"answer", answer, METH_O, PyDoc_STR("answer(result, /)\n--\n\nReplies with its result.")},
    {"fail", fail, METH_O, PyDoc_STR("fail(error, /)\n--\n\nReplies with what it raised.")},
    {"refuse", refuse, METH_O, PyDoc_STR("refuse(errno, /)\n--\n\nReplies with an error.")},
    {"withdraw", withdraw, METH_NOARGS,
     PyDoc_STR("withdraw()\n--\n\nReplies with EINTR, if it has not begun and is asked for again: "
               "whether it did.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"operation", get_operation, NULL, "Its name.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, "A request that the event loop answers."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._pyhost.Job",
    .basicsize = sizeof(struct job),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int df_node_job_prepare(PyObject *module)
{
    job_type = df_type_add(module, &spec);
    return job_type ? 0 : -1;
}
