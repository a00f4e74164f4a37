/*
 * node_reply.c - what a method of a pyfuse3 file system returned or raised, as libfuse's reply.
 *
 * Each request is answered once. A result of the wrong type, or with too many bytes, is the file
 * system's error: EIO, and the helper writes it down.
 */
#include <errno.h>
#include <string.h>

#include "pyhost/node.h"

/* What libfuse says to a reply: the request is answered in any case. */
static int answered(struct df_node_request *request, int result)
{
    request->req = NULL;
    if (result == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: the result does not fit the request: %s",
                 df_node_op_name(request->op), strerror(-result));
    return -1;
}

/* ---- by kind of result ---- */

static int reply_nothing(struct df_node_request *request, PyObject *result)
{
    (void)result; /* pyfuse3 looks at none either */
    return answered(request, fuse_reply_err(request->req, 0));
}

static int reply_entry(struct df_node_request *request, PyObject *result)
{
    const struct fuse_entry_param *entry = df_node_entry(result);
    return entry ? answered(request, fuse_reply_entry(request->req, entry)) : -1;
}

static int reply_attr(struct df_node_request *request, PyObject *result)
{
    const struct fuse_entry_param *entry = df_node_entry(result);
    if (!entry)
        return -1;
    return answered(request, fuse_reply_attr(request->req, &entry->attr, entry->attr_timeout));
}

static int reply_link(struct df_node_request *request, PyObject *result)
{
    const char *target = df_args_link(result);
    return target ? answered(request, fuse_reply_readlink(request->req, target)) : -1;
}

static int reply_open(struct df_node_request *request, PyObject *result)
{
    if (df_node_file_info(result, &request->fi) < 0)
        return -1;
    return answered(request, fuse_reply_open(request->req, &request->fi));
}

static int reply_opendir(struct df_node_request *request, PyObject *result)
{
    if (df_args_unsigned(result, "opendir", UINT64_MAX, &request->fi.fh) < 0)
        return -1;
    return answered(request, fuse_reply_open(request->req, &request->fi));
}

static int reply_create(struct df_node_request *request, PyObject *result)
{
    PyObject *info = PySequence_GetItem(result, 0);
    PyObject *attributes = info ? PySequence_GetItem(result, 1) : NULL;
    const struct fuse_entry_param *entry = attributes ? df_node_entry(attributes) : NULL;
    int done = -1;

    if (entry && df_node_file_info(info, &request->fi) == 0)
        done = answered(request, fuse_reply_create(request->req, entry, &request->fi));
    Py_XDECREF(info);
    Py_XDECREF(attributes);
    return done;
}

static int too_many(const char *op, Py_ssize_t size, size_t room)
{
    PyErr_Format(PyExc_ValueError, "%s returned %zd bytes where at most %zu were asked for", op,
                 size, room);
    return -1;
}

static int reply_data(struct df_node_request *request, PyObject *result)
{
    Py_buffer data;
    int done;

    if (PyObject_GetBuffer(result, &data, PyBUF_CONTIG_RO) < 0)
        return -1;
    if ((size_t)data.len > request->size)
        done = too_many("read", data.len, request->size);
    else
        done = answered(request, fuse_reply_buf(request->req, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return done;
}

static int reply_written(struct df_node_request *request, PyObject *result)
{
    uint64_t size;
    if (df_args_unsigned(result, "write", request->size, &size) < 0)
        return -1;
    return answered(request, fuse_reply_write(request->req, (size_t)size));
}

static int reply_readdir(struct df_node_request *request, PyObject *result)
{
    size_t size;
    const char *data = df_node_token_data(request->token, request->size, &size);
    (void)result;
    return answered(request, fuse_reply_buf(request->req, data, size));
}

static int reply_statfs(struct df_node_request *request, PyObject *result)
{
    const struct statvfs *stat = df_node_statvfs(result);
    return stat ? answered(request, fuse_reply_statfs(request->req, stat)) : -1;
}

static int reply_sized(struct df_node_request *request, const char *data, size_t size)
{
    if (request->size == 0)
        return answered(request, fuse_reply_xattr(request->req, size));
    if (size > request->size)
        return answered(request, fuse_reply_err(request->req, ERANGE));
    return answered(request, fuse_reply_buf(request->req, data, size));
}

static int reply_getxattr(struct df_node_request *request, PyObject *result)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(result, &data, &size) < 0)
        return -1;
    return reply_sized(request, data, (size_t)size);
}

/* Names, each with the NUL that ends it: joined with one more, empty name at the end. */
static int reply_listxattr(struct df_node_request *request, PyObject *result)
{
    PyObject *names = PySequence_List(result);
    PyObject *empty = PyBytes_FromString("");
    PyObject *separator = PyBytes_FromStringAndSize("\0", 1);
    PyObject *joined = NULL;
    int done = -1;

    if (names && empty && separator) {
        if (PyList_Size(names) == 0 || PyList_Append(names, empty) == 0)
            joined = PyObject_CallMethod(separator, "join", "O", names);
    }
    if (joined)
        done = reply_sized(request, PyBytes_AsString(joined), (size_t)PyBytes_Size(joined));
    Py_XDECREF(joined);
    Py_XDECREF(separator);
    Py_XDECREF(empty);
    Py_XDECREF(names);
    return done;
}

static int reply_access(struct df_node_request *request, PyObject *result)
{
    int allowed = PyObject_IsTrue(result);
    if (allowed < 0)
        return -1;
    return answered(request, fuse_reply_err(request->req, allowed ? 0 : EACCES));
}

static int reply_poll(struct df_node_request *request, PyObject *result)
{
    uint64_t events = 0;
    if (result != Py_None && df_args_unsigned(result, "poll", UINT32_MAX, &events) < 0)
        return -1;
    return answered(request, fuse_reply_poll(request->req, (unsigned)events));
}

static int reply_forget(struct df_node_request *request, PyObject *result)
{
    (void)result;
    fuse_reply_none(request->req);
    request->req = NULL;
    return 0;
}

static int (*const replies[DF_NODE_OP_COUNT])(struct df_node_request *, PyObject *) = {
#define DF_NODE_OP(number, method, member, reply) [DF_NODE_##number] = reply_##reply,
#define DF_NODE_HELPER_OP(number, method, reply)  [DF_NODE_##number] = reply_##reply,
#include "pyhost/node_ops.def"
#undef DF_NODE_OP
#undef DF_NODE_HELPER_OP
};

int df_node_reply(struct df_node_request *request, PyObject *result)
{
    return replies[request->op](request, result);
}

/* ---- errors ---- */

void df_node_reply_error(struct df_node_request *request, int error)
{
    if (!request->req)
        return; /* libfuse has told the caller already */
    if (request->op == DF_NODE_FORGET)
        fuse_reply_none(request->req);
    else
        fuse_reply_err(request->req, -error);
    request->req = NULL;
}

void df_node_reply_exception(struct df_node_request *request, PyObject *result)
{
    int error = df_error_take(df_node_fuse_error, request->session->helper,
                              df_node_op_name(request->op), result);
    df_node_reply_error(request, -error);
}
