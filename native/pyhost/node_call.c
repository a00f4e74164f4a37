/*
 * node_call.c - the method of a pyfuse3 file system is called: inline, or by its event loop.
 *
 * The helper judges a method once, and again when the file system has another one (a test may have
 * replaced it): can its coroutine suspend? If it cannot it is driven here, to its end, on the
 * thread that made the call and in the file system's turn. A coroutine that touches trio outside of
 * its loop fails, perhaps after it has done half of its work, so there is no trying.
 */
#include <errno.h>

#include "pyhost/node.h"
#include "pyhost/turn.h"

/* ---- judging ---- */

static int judge(struct df_node_session *session, struct df_node_method *known, PyObject *method)
{
    PyObject *verdict = PyObject_CallMethod(session->helper, "judge", "OO", known->name, method);
    int truth = verdict ? PyObject_IsTrue(verdict) : -1;
    Py_XDECREF(verdict);
    if (truth < 0)
        return -1;
    Py_INCREF(method);
    Py_XDECREF(known->judged);
    known->judged = method;
    known->inline_ = truth;
    return 0;
}

/* Each look-up makes another bound method; equal ones have the same function and object. */
static int is_known(const struct df_node_method *known, PyObject *method)
{
    if (!known->judged)
        return 0;
    return PyObject_RichCompareBool(known->judged, method, Py_EQ);
}

static PyObject *find_method(struct df_node_request *request)
{
    struct df_node_session *session = request->session;
    struct df_node_method *known = &session->methods[request->op];
    PyObject *owner = request->op == DF_NODE_SETXATTR_FLAGS ? session->helper : session->ops;
    PyObject *method = PyObject_GetAttr(owner, known->name);
    int same = method ? is_known(known, method) : -1;

    if (same == 0)
        same = judge(session, known, method);
    if (same < 0)
        Py_CLEAR(method);
    return method;
}

/* ---- inline ---- */

/* It was judged wrongly: nobody may drive it any further. */
static void note_suspension(struct df_node_request *request, PyObject *coroutine)
{
    PyObject *closed = PyObject_CallMethod(coroutine, "close", NULL);
    if (!closed)
        PyErr_Clear();
    Py_XDECREF(closed);
    request->session->methods[request->op].inline_ = false;
    PyErr_Format(PyExc_RuntimeError,
                 "%s suspended, though nothing in its code says that it could; from now on the "
                 "event loop runs it",
                 df_node_op_name(request->op));
}

/* Takes the coroutine. */
static PyObject *drive(struct df_node_request *request, PyObject *coroutine)
{
    PyObject *result = NULL;
    if (PyIter_Send(coroutine, Py_None, &result) == PYGEN_NEXT) {
        Py_CLEAR(result);
        note_suspension(request, coroutine);
    }
    Py_DECREF(coroutine);
    return result;
}

static void call_inline(struct df_node_request *request, PyObject *method, PyObject *args)
{
    PyObject *turn = request->session->turn;
    df_turn_take(turn);
    PyObject *result = PyObject_Call(method, args, NULL);
    if (result && (result != Py_None || request->op != DF_NODE_FORGET)) /* forget may be plain */
        result = drive(request, result);
    df_turn_give(turn);
    if (!result || df_node_reply(request, result) < 0)
        df_node_reply_exception(request, result);
    Py_XDECREF(result);
}

/* ---- by the loop ---- */

bool df_node_is_asked_once(enum df_node_op op)
{
    return op == DF_NODE_RELEASE || op == DF_NODE_RELEASEDIR || op == DF_NODE_FORGET;
}

/* Whether the loop has it, which begins it once. Where a signal's handler has raised something on
 * the way there, what is not asked for again would be lost, and goes there once more; the exception
 * is left set. */
static bool post(enum df_node_op op, PyObject *helper, PyObject *job)
{
    PyObject *type, *value, *traceback;
    PyObject *posted = PyObject_CallMethod(helper, "post", "O", job);
    if (!posted && df_node_is_asked_once(op)) {
        PyErr_Fetch(&type, &value, &traceback);
        posted = PyObject_CallMethod(helper, "post", "O", job);
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(posted);
    return posted;
}

static void call_later(struct df_node_request *request, PyObject *method, PyObject *args)
{
    PyObject *helper = request->session->helper;
    const char *name = df_node_op_name(request->op);
    PyObject *job = df_node_job_new(request, method, args);
    bool posted = job && post(request->op, helper, job);
    if (!job) {
        df_node_reply_exception(request, NULL);
    } else if (PyErr_Occurred()) {
        int error = df_error_take(df_node_fuse_error, helper, name, NULL);
        if (!posted) /* unless it has been answered, or the loop is about it */
            df_node_job_withdraw(job, error);
    }
    Py_XDECREF(job);
}

/* ---- by the file system itself ---- */

/* The thread that makes the call is inside of the file system: while it waits for the answer
 * nothing else can run that would give it. */
static void refuse(struct df_node_request *request)
{
    PyObject *error = Py_BuildValue(
        "(is)", EDEADLK, "the file system called into its own mount, and would wait for itself");
    if (error)
        PyErr_SetObject(PyExc_OSError, error);
    Py_XDECREF(error);
    df_node_reply_exception(request, NULL);
}

void df_node_call(struct df_node_request *request, PyObject *args)
{
    PyObject *method = args ? find_method(request) : NULL;
    if (!method)
        df_node_reply_exception(request, NULL);
    else if (df_turn_is_mine(request->session->turn))
        refuse(request);
    else if (request->session->methods[request->op].inline_)
        call_inline(request, method, args);
    else
        call_later(request, method, args);
    Py_XDECREF(method);
    Py_XDECREF(args);
    if (request->token) {
        df_node_token_end(request->token);
        Py_CLEAR(request->token);
    }
}
