/*
 * node.h - pyfuse3 file systems: what the node_*.c share.
 *
 *   node_session.c  the Python type: a session of libfuse's low-level API and its operations object
 *   node_ops.def    the operations: number, method, request, reply
 *   node_ops.c      struct fuse_lowlevel_ops: a request becomes the arguments of a method
 *   node_call.c     the method is called: inline, or by the event loop
 *   node_job.c      a request on its way through the event loop
 *   node_reply.c    what the method returned, or raised, becomes a reply
 *   node_types.c    pyfuse3's own types, read and written where they lie in memory
 *   node_poll.c     what poll() gets to notify
 */
#ifndef DF_PYHOST_NODE_H
#define DF_PYHOST_NODE_H

#include "pyhost/pyhost.h"

#include <fuse_lowlevel.h>

enum df_node_op {
#define DF_NODE_OP(number, method, member, reply) DF_NODE_##number,
#define DF_NODE_HELPER_OP(number, method, reply)  DF_NODE_##number,
#include "pyhost/node_ops.def"
#undef DF_NODE_OP
#undef DF_NODE_HELPER_OP
    DF_NODE_OP_COUNT,
};

/* The method of an operation as it was when it was judged. */
struct df_node_method {
    PyObject *name;   /* interned */
    PyObject *judged; /* the bound method; NULL: not yet */
    bool inline_;     /* it cannot suspend, so it is driven on the caller's thread */
};

struct df_node_session {
    PyObject ob_base;
    PyObject *ops;    /* the file system */
    PyObject *helper; /* directfuse._python.nodes.Host: judges, posts to the loop, reports */
    PyObject *turn;
    struct fuse_session *fuse; /* NULL: not open */
    _Atomic unsigned telling;  /* notifications under way: until they end, it is not destroyed */
    bool writes_back;          /* the helper does what a write-back cache would: writeback.py */
    bool acls;                 /* access control lists are consulted for it: FUSE_CAP_POSIX_ACL */
    struct df_node_method methods[DF_NODE_OP_COUNT];
};

/* One request, while it is being served: on the stack, or in a job. Protected by the GIL. */
struct df_node_request {
    struct df_node_session *session;
    fuse_req_t req; /* NULL once it is answered */
    enum df_node_op op;
    size_t size;              /* bytes of room: READ, READDIR, xattrs */
    struct fuse_file_info fi; /* OPEN, CREATE, OPENDIR: to be filled */
    PyObject *token;          /* READDIR: pyfuse3.ReaddirToken; owned */
};

/* ---- node_ops.c ---- */

/* The name of a method; of the helper's, where it is not the file system's own. */
const char *df_node_op_name(enum df_node_op op);

/* The operations for which the file system has a method. -1 with an exception. */
int df_node_ops_fill(struct fuse_lowlevel_ops *table, PyObject *ops);

/* ---- node_call.c ---- */

/* Calls the method with `args` (taken; NULL: they could not be made, the exception is set), and
 * answers, or leaves that to the loop. */
void df_node_call(struct df_node_request *request, PyObject *args);

/* ---- node_job.c ---- */

/* Moves the request into a job, which answers it at the latest when it is freed. */
PyObject *df_node_job_new(struct df_node_request *request, PyObject *method, PyObject *args);

/* Whether nobody asks again who was told that it was interrupted. */
bool df_node_is_asked_once(enum df_node_op op);

/* Answers with an errno, unless it has been answered, or the loop has begun it: false then. */
bool df_node_job_withdraw(PyObject *job, int error);

/* ---- node_reply.c ---- */

/* Answers with a result (borrowed). -1 with an exception when it is no result of this operation;
 * the request is not answered then. */
int df_node_reply(struct df_node_request *request, PyObject *result);

/* Answers with the error that the exception stands for, and takes the exception. `result` is what
 * the method returned, which the exception is about; NULL: it raised. */
void df_node_reply_exception(struct df_node_request *request, PyObject *result);

/* Answers with a negative errno. */
void df_node_reply_error(struct df_node_request *request, int error);

/* ---- node_types.c ---- */

/*
 * Finds pyfuse3's types and checks, by writing through Python and reading memory and the other way
 * round, that each lies in memory as it is declared (pyfuse3 3.2 to 3.5). ImportError with the
 * version when one does not.
 */
int df_node_types_prepare(PyObject *pyfuse3);

PyObject *df_node_context(fuse_req_t req);                         /* RequestContext */
PyObject *df_node_attributes(const struct stat *attr, int to_set); /* EntryAttributes */
extern PyMethodDef df_node_types_methods[];
PyObject *df_node_fields(int to_set);                                       /* SetattrFields */
PyObject *df_node_token(fuse_req_t req, size_t size);                       /* ReaddirToken */
const char *df_node_token_data(PyObject *token, size_t room, size_t *size); /* what it holds */
void df_node_token_end(PyObject *token);

/* NULL with TypeError when it is something else. Borrowed from the object. */
const struct fuse_entry_param *df_node_entry(PyObject *object);
const struct statvfs *df_node_statvfs(PyObject *object);
int df_node_file_info(PyObject *object, struct fuse_file_info *fi);

extern PyObject *df_node_fuse_error; /* pyfuse3.FUSEError */

/* ---- node_poll.c ---- */

PyObject *df_node_poll_new(struct fuse_pollhandle *handle);

#endif
